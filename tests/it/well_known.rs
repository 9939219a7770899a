//! Well-known URIs (RFC 8615).

use std::time::{Duration, SystemTime};

use support::client::Reply;
use support::harness::{Server, output, petstore};

fn ask(server: &Server, path: &str) -> Reply {
    server.ask("GET", path, "")
}

#[test]
fn catalog_leads_to_the_description() {
    for (words, root) in [
        (&[][..], ""),
        (
            &["--base-url", "https://pets.example/v1"],
            "https://pets.example",
        ),
    ] {
        let server = Server::start_with(|command| command.args(words));
        let reply = ask(&server, "/.well-known/api-catalog");
        let kind = reply.expect(200).header("Content-Type").unwrap();
        assert!(kind.starts_with("application/linkset+json"), "{kind}");
        let links = &reply.json()["linkset"][0];
        assert_eq!(links["anchor"], format!("{root}/v1"));
        assert_eq!(
            links["service-desc"][0]["href"],
            format!("{root}/openapi.json")
        );
        assert_eq!(links["service-doc"].is_array(), cfg!(feature = "site"));
        let link = format!("<{root}/.well-known/api-catalog>; rel=\"api-catalog\"");
        let head = server.ask("HEAD", "/.well-known/api-catalog", "");
        assert_eq!(head.expect(200).header("Link"), Some(link.as_str()));
    }
}

#[test]
fn contact_is_there_if_it_is_set_and_expires_within_a_year() {
    let server = Server::start();
    ask(&server, "/.well-known/security.txt").expect_error(404, "not_found", "path");
    let words = ["--security-contact", "mailto:security@example.com"];
    let server = Server::start_with(|command| command.args(words));
    let reply = ask(&server, "/.well-known/security.txt");
    assert_eq!(
        reply.expect(200).header("Content-Type"),
        Some("text/plain; charset=utf-8")
    );
    let text = String::from_utf8(reply.body.clone()).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    let [contact, expires] = lines[..] else {
        panic!("{text}")
    };
    assert_eq!(contact, "Contact: mailto:security@example.com");
    // Such times are in order as text.
    let [earliest, latest] = [200, 365].map(|days| {
        let then = SystemTime::now() + Duration::from_secs(days * 86_400);
        humantime::format_rfc3339_seconds(then).to_string()
    });
    let expires = expires.strip_prefix("Expires: ").unwrap();
    assert!(*earliest < *expires && *expires < *latest, "{text}");
    let refused = output(petstore(&["serve"]).args(["--security-contact", "security@example.com"]));
    assert_eq!(refused.status.code(), Some(2), "{refused:?}");
}
