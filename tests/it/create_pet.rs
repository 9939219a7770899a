//! `POST /v1/pets`.

use serde_json::json;

use crate::idempotency::create;
use support::client::{Reply, post};
use support::harness::{KEY, Server};

const REX: &str = r#"{"name":"Rex","categoryId":3}"#;

/// A create with further header fields.
fn create_with(server: &Server, fields: &str, body: &str) -> Reply {
    server.send(create(fields, body))
}

#[test]
fn created_pet_has_an_id_and_a_location() {
    let server = Server::start();
    let reply = server.create(r#"{"name":"Rex","categoryId":3,"status":"available"}"#);
    assert_eq!(
        reply.expect(201).json(),
        json!({"id": 1, "name": "Rex", "categoryId": 3, "status": "available"})
    );
    assert_eq!(reply.header("Location"), Some("/v1/pets/1"));
    let pet = server.get("/v1/pets/1");
    assert_eq!(pet.json(), reply.json());
    assert_eq!(reply.header("ETag"), pet.header("ETag"));
}

#[test]
fn location_has_the_path_before_v1_of_the_public_url() {
    for (url, location) in [
        ("https://pets.example/v1", "/v1/pets/1"),
        ("http://[::1]:8080/v1", "/v1/pets/1"),
        ("https://example.com/pet-shop/a/v1", "/pet-shop/a/v1/pets/1"),
    ] {
        let server = Server::start_with(|command| command.args(["--base-url", url]));
        let reply = create_with(&server, "Idempotency-Key: x\r\n", REX);
        assert_eq!(reply.expect(201).header("Location"), Some(location));
        let again = create_with(&server, "Idempotency-Key: x\r\n", REX);
        assert_eq!(again.expect(201).header("Location"), Some(location));
        assert_eq!(again.header("ETag"), reply.header("ETag"));
    }
}

#[test]
fn unknown_members_and_an_id_are_ignored() {
    let server = Server::start();
    let body = r#"{"id":77,"name":"Rex","categoryId":3,"unknown":{"r":[1,2]},"Name":"x"}"#;
    assert_eq!(
        server.create(body).expect(201).json(),
        json!({"id": 1, "name": "Rex", "categoryId": 3})
    );
}

#[test]
fn category_is_an_integer_however_it_is_written() {
    let server = Server::start();
    for (written, read) in [
        ("1.0", 1),
        ("1e2", 100),
        ("-0", 0),
        ("9007199254740993.0", 9_007_199_254_740_993_i64),
    ] {
        let reply = server.create(&format!(r#"{{"name":"x","categoryId":{written}}}"#));
        assert_eq!(reply.expect(201).json()["categoryId"], read, "{written}");
    }
}

#[test]
fn wrong_bodies_are_400_and_named() {
    let server = Server::start();
    for (body, code, named) in [
        ("", "invalid_json", "empty"),
        ("{", "invalid_json", "JSON"),
        ("[]", "invalid_json", "JSON object"),
        ("null", "invalid_json", "JSON object"),
        (
            "{\"name\":\"x\",\"categoryId\":1} x",
            "invalid_json",
            "JSON",
        ),
        ("{\"name\":\"x\",\"categoryId\":01}", "invalid_json", "JSON"),
        (
            "{\"name\":\"x\",\"categoryId\":NaN}",
            "invalid_json",
            "JSON",
        ),
        (
            "{\"name\":\"\\ud800\",\"categoryId\":1}",
            "invalid_member",
            "'name'",
        ),
        (
            "{\"name\":\"a\nb\",\"categoryId\":1}",
            "invalid_json",
            "JSON",
        ),
        (r#"{"categoryId":1}"#, "missing_member", "'name'"),
        (r#"{"name":"x"}"#, "missing_member", "'categoryId'"),
        (
            r#"{"name":null,"categoryId":1}"#,
            "invalid_member",
            "'name'",
        ),
        (r#"{"name":5,"categoryId":1}"#, "invalid_member", "'name'"),
        (
            r#"{"name":"x","categoryId":"1"}"#,
            "invalid_member",
            "'categoryId'",
        ),
        (
            r#"{"name":"x","categoryId":1.5}"#,
            "invalid_member",
            "'categoryId'",
        ),
        (
            r#"{"name":"x","categoryId":1e19}"#,
            "invalid_member",
            "'categoryId'",
        ),
        (
            r#"{"name":"x","categoryId":9223372036854775808}"#,
            "invalid_member",
            "'categoryId'",
        ),
        (
            r#"{"name":"x","categoryId":1,"status":null}"#,
            "invalid_member",
            "'status'",
        ),
        (
            r#"{"name":"x","categoryId":1,"status":"gone"}"#,
            "invalid_member",
            "'status'",
        ),
        (
            r#"{"name":"x","categoryId":1,"name":"x"}"#,
            "duplicate_member",
            "'name'",
        ),
        (
            r#"{"name":"x","categoryId":1,"x":1,"x":1}"#,
            "duplicate_member",
            "'x'",
        ),
    ] {
        server.create(body).expect_error(400, code, named);
    }
    assert_eq!(server.get("/v1/pets").body, b"[]", "nothing was kept");
}

#[test]
fn body_that_is_no_utf8_is_400() {
    let server = Server::start();
    let marked = create("", r#"{"name":"?","categoryId":1}"#).into_bytes();
    let request: Vec<u8> = marked
        .into_iter()
        .map(|byte| if byte == b'?' { 0xff } else { byte })
        .collect();
    server
        .send(request)
        .expect_error(400, "invalid_json", "UTF-8");
}

#[test]
fn invalid_creation_leaves_its_neighbours_alone() {
    let server = Server::start();
    let mut connection = server.connect();
    let request = |body| post("/v1/pets", KEY, body);
    let good = request(r#"{"name":"x","categoryId":1}"#);
    connection.send([good.clone(), request("{}"), good].concat());
    assert_eq!(connection.reply().expect(201).json()["id"], 1);
    connection
        .reply()
        .expect_error(400, "missing_member", "'name'");
    assert_eq!(connection.reply().expect(201).json()["id"], 2);
}

#[test]
fn media_types_other_than_json_are_415() {
    let server = Server::start();
    let body = r#"{"name":"x","categoryId":1}"#;
    for taken in [
        "application/json",
        "Application/JSON; charset=utf-8",
        "application/json;x=\"y\"",
    ] {
        create_with(&server, &format!("Content-Type: {taken}\r\n"), body).expect(201);
    }
    create_with(&server, "", body).expect(201);
    for refused in [
        "text/plain",
        "application/x-www-form-urlencoded",
        "application/jsonx",
        "application/problem+json",
        "",
    ] {
        let reply = create_with(&server, &format!("Content-Type: {refused}\r\n"), body);
        reply.expect_error(
            415,
            "unsupported_media_type",
            "application/json; with curl, send it with --json",
        );
        assert_eq!(reply.header("Accept"), Some("application/json"));
    }
}

#[test]
fn content_codings_are_415() {
    let server = Server::start();
    let body = r#"{"name":"x","categoryId":1}"#;
    create_with(&server, "Content-Encoding: Identity\r\n", body).expect(201);
    for refused in ["gzip", "br", "identity, gzip", "x"] {
        let reply = create_with(&server, &format!("Content-Encoding: {refused}\r\n"), body);
        reply.expect_error(415, "unsupported_content_encoding", "Content-Encoding");
        assert_eq!(reply.header("Accept-Encoding"), Some("identity"));
    }
}

#[test]
fn body_may_be_64_kib_and_no_more() {
    let server = Server::start();
    let frame = r#"{"name":"","categoryId":1}"#.len();
    let body = |size: usize| {
        format!(
            r#"{{"name":"{}","categoryId":1}}"#,
            "x".repeat(size - frame)
        )
    };
    server.create(&body(65_536)).expect(201);
    server
        .send(create("", "").replace("Content-Length: 0", "Content-Length: 65537"))
        .expect_error(413, "content_too_large", "65536");
}

#[test]
fn concurrent_creations_have_ids_of_their_own() {
    let server = Server::start();
    let ids: Vec<i64> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..8)
            .map(|_| {
                scope.spawn(|| {
                    let mut connection = server.connect();
                    let body = r#"{"name":"x","categoryId":1}"#;
                    let create = |_| {
                        connection.post("/v1/pets", KEY, body).expect(201).json()["id"]
                            .as_i64()
                            .unwrap()
                    };
                    let ids: Vec<i64> = (0..50).map(create).collect();
                    assert!(ids.is_sorted());
                    ids
                })
            })
            .collect();
        threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect()
    });
    let mut sorted = ids;
    sorted.sort_unstable();
    assert_eq!(sorted, (1..=400).collect::<Vec<_>>());
}
