//! API keys (RFC 6750): missing, wrong, and without the scope.

use support::harness::{KEY, Server};

const CHALLENGE: &str = "Bearer realm=\"petstore\"";

#[test]
fn missing_key_is_401_with_a_bare_challenge() {
    let server = Server::start();
    for headers in [
        "",
        "Authorization:\r\n",
        "Authorization: Bearer\r\n",
        "Authorization: Basic dTpw\r\n",
    ] {
        let reply = server.ask("GET", "/v1/pets", headers);
        reply.expect_error(401, "unauthorized", "API key");
        assert_eq!(
            reply.header("WWW-Authenticate"),
            Some(CHALLENGE),
            "{headers}"
        );
    }
}

#[test]
fn wrong_key_is_401_with_the_error_and_no_echo() {
    let server = Server::start();
    for headers in [
        "Authorization: Bearer not-the-secret\r\n",
        "Authorization: Bearer test-key x\r\n",
        "Authorization: Bearer TEST-KEY\r\n",
        "Authorization: Bearer test-key\r\nAuthorization: Bearer test-key\r\n",
        "Authorization: Bearer \u{e9}\r\n",
    ] {
        let reply = server.ask("GET", "/v1/pets", headers);
        reply.expect_error(401, "unauthorized", "unknown, expired or revoked");
        let challenge = reply.header("WWW-Authenticate").unwrap();
        assert!(challenge.starts_with(CHALLENGE), "{challenge}");
        assert!(challenge.contains("error=\"invalid_token\""), "{challenge}");
        assert!(
            challenge.contains("error_description=\"The API key is unknown, expired or revoked\""),
            "{challenge}"
        );
        assert!(!format!("{reply:?}").contains("not-the-secret"));
    }
}

#[test]
fn scheme_is_case_insensitive() {
    let server = Server::start();
    for scheme in ["Bearer", "bearer", "BEARER"] {
        server
            .ask(
                "GET",
                "/v1/pets",
                &format!("authorization: {scheme} {KEY}\r\n"),
            )
            .expect(200);
        server
            .ask(
                "GET",
                "/v1/pets",
                &format!("Authorization:{scheme}   {KEY}  \r\n"),
            )
            .expect(200);
    }
}

#[test]
fn everything_below_v1_asks_for_the_key_first() {
    let server = Server::start();
    for (method, target) in [
        ("GET", "/v1/pets"),
        ("GET", "/v1/pets?limit=0"),
        ("GET", "/v1/pets/1"),
        ("GET", "/v1/pets/x"),
        ("GET", "/v1/store/orders"),
        ("GET", "/v1/nowhere"),
        ("GET", "/v1"),
        ("GET", "/%76%31/pets"),
        ("POST", "/v1/pets"),
        ("DELETE", "/v1/pets"),
        ("BREW", "/v1/pets"),
        ("HEAD", "/v1/pets"),
    ] {
        server.ask(method, target, "").expect(401);
    }
}

#[test]
fn key_in_the_query_is_not_read() {
    let server = Server::start();
    server
        .ask(
            "GET",
            &format!("/v1/pets?access_token={KEY}&api_key={KEY}"),
            "",
        )
        .expect(401);
}
