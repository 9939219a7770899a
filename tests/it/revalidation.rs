//! Entity tags of lists and pets: a client that has the current body gets 304 (RFC 9110, section 13.1.2).

use support::client::Reply;
use support::harness::{KEY, Server};

/// Asks with these values of If-None-Match, each in a field of its own.
fn ask(server: &Server, method: &str, target: &str, known: &[&str]) -> Reply {
    let known: String = known
        .iter()
        .map(|tags| format!("If-None-Match: {tags}\r\n"))
        .collect();
    server.ask(
        method,
        target,
        &format!("Authorization: Bearer {KEY}\r\n{known}"),
    )
}

fn tag(reply: &Reply) -> String {
    reply.expect(200).header("ETag").expect("a tag").to_owned()
}

/// A client that keeps the body alone still finds the next page.
fn links(reply: &Reply) -> Vec<&(String, String)> {
    reply
        .headers
        .iter()
        .filter(|(name, _)| name == "Link")
        .collect()
}

#[test]
fn client_that_names_the_current_tag_gets_304() {
    let server = Server::start();
    server.fill(["Rex", "Tom"]);
    for target in [
        "/v1/pets",
        "/v1/pets?limit=1",
        "/v1/pets?status=sold",
        "/v1/pets/2",
    ] {
        let first = ask(&server, "GET", target, &[]);
        let tag = tag(&first);
        assert!(
            tag.len() == 34 && tag.starts_with('"') && tag.ends_with('"'),
            "{tag}"
        );
        // A proxy that compressed a pet would weaken its tag, which If-Match compares.
        let caching = if target == "/v1/pets/2" {
            "private, no-cache, no-transform"
        } else {
            "private, no-cache"
        };
        assert_eq!(first.header("Cache-Control"), Some(caching));
        let (weak, among) = (format!("W/{tag}"), format!("\"a\", {tag} ,\"b\""));
        for known in [
            &[tag.as_str()][..],
            &[&weak],
            &[&among],
            &["*"],
            &["\"a\"", &tag],
        ] {
            let reply = ask(&server, "GET", target, known);
            assert_eq!(
                (reply.status, reply.body.len()),
                (304, 0),
                "{target} {known:?}"
            );
            assert_eq!(reply.header("ETag"), Some(tag.as_str()));
            assert_eq!(reply.header("Cache-Control"), Some(caching));
            assert_eq!(
                (links(&reply), reply.header("Content-Type")),
                (links(&first), None)
            );
            assert_eq!(ask(&server, "HEAD", target, known).status, 304);
        }
        for known in ["\"a\"", "", "a", &tag[..33], &tag.to_uppercase()] {
            let reply = ask(&server, "GET", target, &[known]);
            assert_eq!(
                (reply.status, &reply.body),
                (200, &first.body),
                "{target} {known:?}"
            );
        }
    }
    for target in [
        "/v1/pets/3",
        "/v1/pets?limit=0",
        "/v1/store/orders",
        "/healthz",
    ] {
        let reply = ask(&server, "GET", target, &["*"]);
        assert_ne!(reply.status, 304, "{target}");
        assert_eq!(reply.header("Cache-Control"), Some("no-store"), "{target}");
    }
}

#[test]
fn tag_changes_when_the_answer_does() {
    let server = Server::start();
    server.fill(["Rex"]);
    let (page, whole) = ("/v1/pets?limit=1", "/v1/pets");
    let before = [page, whole].map(|target| tag(&ask(&server, "GET", target, &[])));
    server.fill(["Tom"]);
    // The body of the page is the same, but another page follows now.
    let reply = ask(&server, "GET", page, &[&before[0]]);
    assert!(reply.expect(200).header("Link").is_some(), "{reply:?}");
    assert_ne!(tag(&ask(&server, "GET", whole, &[&before[1]])), before[1]);
}

#[test]
fn tag_is_the_same_after_a_restart_and_on_another_instance() {
    let (one, other) = (Server::start(), Server::start());
    for server in [&one, &other] {
        server.fill(["Rex", "Tom"]);
    }
    let tags = |server: &Server| {
        ["/v1/pets", "/v1/pets/1"].map(|target| tag(&ask(server, "GET", target, &[])))
    };
    let first = tags(&one);
    assert_eq!(tags(&other), first);
    assert_eq!(
        tags(&Server::start_in(one.kill(), |command| command)),
        first
    );
}
