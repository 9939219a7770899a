//! `GET /v1/pets/{petId}`, which is deprecated.

use serde_json::json;

use support::client::Reply;
use support::harness::Server;

#[track_caller]
fn expect_deprecated(reply: &Reply) {
    assert_eq!(
        reply.header("Sunset"),
        Some("Thu, 05 Dec 2030 00:00:00 GMT")
    );
    assert_eq!(reply.header("Deprecation"), Some("@1795219200"));
    let links: Vec<&str> = reply
        .headers
        .iter()
        .filter(|(name, _)| name == "Link")
        .map(|(_, value)| value.as_str())
        .collect();
    assert_eq!(
        links,
        [
            "</v1/pets>; rel=\"successor-version\", </docs/deprecations>; rel=\"deprecation\"; type=\"text/html\""
        ]
    );
}

#[test]
fn pet_is_found_by_its_id() {
    let server = Server::start();
    server.fill(["Rex", "Tom"]);
    for target in [
        "/v1/pets/2",
        "/v1/pets/%32",
        "/%76%31/pets/2?x=y",
        "/v1/pets/002",
    ] {
        let reply = server.get(target);
        assert_eq!(
            reply.expect(200).json(),
            json!({"id": 2, "name": "Tom", "categoryId": 1}),
            "{target}"
        );
        expect_deprecated(&reply);
    }
}

#[test]
fn ids_that_no_pet_has_are_404() {
    let server = Server::start();
    server.fill(["Rex"]);
    for id in [
        "2",
        "0",
        "-1",
        "9223372036854775807",
        "9223372036854775808",
        "1.0",
        "abc",
        "+1",
        "1%20",
        "%00",
    ] {
        let reply = server.get(&format!("/v1/pets/{id}"));
        reply.expect_error(404, "not_found", "pet");
        expect_deprecated(&reply);
    }
}

#[test]
fn deprecation_is_announced_only_past_authentication() {
    let server = Server::start();
    let reply = server.connect().get("/v1/pets/1", "wrong");
    assert_eq!(reply.expect(401).header("Sunset"), None);
    assert_eq!(server.get("/v1/pets").header("Deprecation"), None);
}
