//! Scripts of other origins (Fetch standard, section 3.2).

use crate::harness::{KEY, Server};

const APP: &str = "https://app.example";

fn allowing(origins: &[&str]) -> Server {
    Server::start_with(|command| command.args(origins.iter().flat_map(|origin| ["--allow-origin", origin])))
}

#[test]
fn allowed_origin_may_read_every_response() {
    let server = allowing(&["http://localhost:3000", APP]);
    let fields = format!("Origin: {APP}\r\nAccept: */*\r\nAuthorization: Bearer {KEY}\r\n");
    for (method, target, fields, status) in [
        ("GET", "/v1/pets", fields.as_str(), 200),
        ("GET", "/v1/pets/1", fields.as_str(), 404),
        ("GET", "/v1/pets", "Origin: https://app.example\r\n", 401),
        ("GET", "/v1/pets", "Origin: https://app.example\r\nContent-Length: x\r\n", 400),
        ("GET", "/openapi.json", "Origin: https://app.example\r\n", 200),
    ] {
        let reply = server.ask(method, target, fields);
        reply.expect(status);
        assert_eq!(reply.header("Access-Control-Allow-Origin"), Some(APP), "{reply:?}");
        let exposed = reply.header("Access-Control-Expose-Headers").unwrap();
        for name in
            ["Link", "Location", "Deprecation", "Sunset", "Retry-After", "X-Request-Id", "ETag", "Allow"]
        {
            assert!(exposed.split(", ").any(|word| word == name), "{name}");
        }
        assert!(reply.headers.iter().any(|(name, value)| name == "Vary" && value == "Origin"), "{reply:?}");
    }
}

#[test]
fn preflight_needs_no_key() {
    let server = allowing(&["*"]);
    let fields = format!(
        "Origin: {APP}\r\nAccess-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n"
    );
    let reply = server.ask("OPTIONS", "/v1/pets", &fields);
    reply.expect(204);
    assert_eq!(reply.header("Access-Control-Allow-Origin"), Some("*"));
    assert_eq!(reply.header("Access-Control-Allow-Methods"), Some("GET, HEAD, POST, OPTIONS"));
    let headers = reply.header("Access-Control-Allow-Headers").unwrap();
    assert!(headers.contains("Authorization") && headers.contains("Content-Type"), "{headers}");
    assert_eq!(reply.header("Access-Control-Max-Age"), Some("600"));
    assert_eq!(reply.header("Vary"), None, "all may read it");
}

#[test]
fn other_origins_may_read_nothing() {
    for server in [Server::start(), allowing(&[APP])] {
        for origin in ["https://evil.example", "null", "http://app.example"] {
            let fields = format!("Origin: {origin}\r\nAccess-Control-Request-Method: POST\r\n");
            for method in ["GET", "OPTIONS"] {
                let reply = server.ask(method, "/v1/pets", &fields);
                let is_told = reply.headers.iter().any(|(name, _)| name.starts_with("Access-Control-"));
                assert!(!is_told, "{reply:?}");
            }
        }
    }
}
