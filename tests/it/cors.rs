//! Scripts of other origins (Fetch standard, section 3.2).

use support::harness::{KEY, Server};
use support::openapi::{document, resolve};

const APP: &str = "https://app.example";

fn allowing(origins: &[&str]) -> Server {
    Server::start_with(|command| {
        command.args(origins.iter().flat_map(|origin| ["--allow-origin", origin]))
    })
}

#[test]
fn allowed_origin_may_read_every_response() {
    let server = allowing(&["http://localhost:3000", APP]);
    let fields = format!("Origin: {APP}\r\nAccept: */*\r\nAuthorization: Bearer {KEY}\r\n");
    for (method, target, fields, status) in [
        ("GET", "/v1/pets", fields.as_str(), 200),
        ("GET", "/v1/pets/1", fields.as_str(), 404),
        ("GET", "/v1/pets", "Origin: https://app.example\r\n", 401),
        (
            "GET",
            "/v1/pets",
            "Origin: https://app.example\r\nContent-Length: x\r\n",
            400,
        ),
        (
            "GET",
            "/openapi.json",
            "Origin: https://app.example\r\n",
            200,
        ),
    ] {
        let reply = server.ask(method, target, fields);
        reply.expect(status);
        assert_eq!(
            reply.header("Access-Control-Allow-Origin"),
            Some(APP),
            "{reply:?}"
        );
        let exposed = reply.header("Access-Control-Expose-Headers").unwrap();
        for name in [
            "Link",
            "Location",
            "Deprecation",
            "Sunset",
            "Retry-After",
            "X-Request-Id",
            "ETag",
            "Allow",
        ] {
            assert!(exposed.split(", ").any(|word| word == name), "{name}");
        }
        let vary = reply.header("Vary").unwrap();
        let is_compressed = target == "/openapi.json";
        assert_eq!(
            vary,
            if is_compressed {
                "Origin, Accept-Encoding"
            } else {
                "Origin"
            },
            "{reply:?}"
        );
    }
}

/// Requests with these header fields that are refused before their heads are whole, and the statuses.
fn refused_early(fields: &str) -> Vec<(String, u16)> {
    let long = "x".repeat(8192);
    let lines = [
        (format!("GET /{long} HTTP/1.1"), 414),
        ("GET / HTTP/2.0".into(), 505),
        ("GET /a b HTTP/1.1".into(), 400),
    ];
    let mut requests: Vec<(String, u16)> = lines
        .map(|(line, status)| (format!("{line}\r\n{fields}\r\n"), status))
        .into();
    for (rest, status) in [
        ("X: y\r\n".repeat(100), 431),
        (format!("X: {}\r\n", "x".repeat(16_384)), 431),
        ("X: a\0b\r\n".to_owned(), 400),
        ("X: y\n".to_owned(), 400),
    ] {
        requests.push((format!("GET / HTTP/1.1\r\n{fields}{rest}\r\n"), status));
    }
    requests
}

#[test]
fn refusal_before_the_head_is_whole_can_be_read_too() {
    let server = allowing(&["http://localhost:3000", APP]);
    let fields = format!("Host: h\r\norigin:{APP} \r\n");
    for (request, status) in refused_early(&fields) {
        let reply = server.send(&request);
        assert_eq!(
            reply.expect(status).header("Access-Control-Allow-Origin"),
            Some(APP),
            "{request:.100}"
        );
        assert_eq!(reply.header("Vary"), Some("Origin"));
    }
    for (request, status) in refused_early("Host: h\r\nOrigin: https://evil.example\r\n") {
        assert_eq!(
            server
                .send(&request)
                .expect(status)
                .header("Access-Control-Allow-Origin"),
            None
        );
    }
    // The origin has not arrived.
    let late = format!("GET /{}", "x".repeat(20_000));
    for (origins, told) in [
        (&["*"][..], Some("*")),
        (&[APP], Some(APP)),
        (&[APP, "http://b"], None),
        (&[], None),
    ] {
        let reply = allowing(origins).send(&late);
        assert_eq!(
            reply.expect(414).header("Access-Control-Allow-Origin"),
            told,
            "{origins:?}"
        );
    }
}

#[test]
fn preflight_is_204_whatever_the_response_will_be() {
    let server = allowing(&["http://localhost:3000", APP]);
    let asked = "Access-Control-Request-Method: DELETE\r\nAccess-Control-Request-Headers: tracestate,, baggage ,sentry-trace\r\n\
        access-control-request-headers: authorization,b(d,x-y\r\n";
    let long = format!("/{}", "x".repeat(9000));
    for target in [
        "/v1/pets",
        "/v1/nowhere",
        "/nowhere",
        "/v1/pets/1",
        "*",
        &long,
    ] {
        let reply = server.ask("OPTIONS", target, &format!("Origin: {APP}\r\n{asked}"));
        reply.expect(204);
        assert_eq!(reply.header("Access-Control-Allow-Origin"), Some(APP));
        let methods = reply.header("Access-Control-Allow-Methods").unwrap();
        assert_eq!(
            methods
                .split(", ")
                .filter(|method| *method == "DELETE")
                .count(),
            1,
            "{target}: {methods}"
        );
        let headers = reply.header("Access-Control-Allow-Headers").unwrap();
        assert!(
            headers.ends_with("traceparent, tracestate, baggage, sentry-trace, authorization, x-y"),
            "{headers}"
        );
        for origin in ["", "Origin: https://evil.example\r\n"] {
            let reply = server.ask("OPTIONS", target, &format!("{origin}{asked}"));
            assert_eq!(
                reply.status == 204,
                ["/v1/pets", "/v1/pets/1", "*"].contains(&target),
                "{reply:?}"
            );
            assert!(
                reply.header("Access-Control-Allow-Methods").is_none(),
                "{reply:?}"
            );
        }
    }
    // No preflight, and no request.
    for fields in [
        "Access-Control-Request-Method:,\r\n\r\n",
        "Content-Length: 41\r\n\r\nAccess-Control-Request-Method: DELETE\r\n\r\n",
    ] {
        let request = format!("OPTIONS /nowhere HTTP/1.1\r\nHost: h\r\nOrigin: {APP}\r\n{fields}");
        server.send(request).expect(404);
    }
    let plain = server.ask("OPTIONS", "/nowhere", &format!("Origin: {APP}\r\n"));
    assert_eq!(
        plain.expect(404).header("Access-Control-Allow-Methods"),
        None
    );
    server
        .ask(
            "OPTIONS",
            "/v1/pets",
            &format!("Origin: {APP}\r\nContent-Length: x\r\n{asked}"),
        )
        .expect(400);
}

#[test]
fn app_and_extension_are_origins() {
    for origin in [
        "capacitor://localhost",
        "chrome-extension://abcdefghijklmnopabcdefghijklmnop",
    ] {
        let reply = allowing(&[origin]).ask("GET", "/v1/pets", &format!("Origin: {origin}\r\n"));
        assert_eq!(
            reply.expect(401).header("Access-Control-Allow-Origin"),
            Some(origin)
        );
    }
    let reply = allowing(&["https://app.example:443"]).ask(
        "GET",
        "/v1/pets",
        &format!("Origin: {APP}\r\n"),
    );
    assert_eq!(
        reply.expect(401).header("Access-Control-Allow-Origin"),
        Some(APP)
    );
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
    assert_eq!(
        reply.header("Access-Control-Allow-Methods"),
        server.ask("OPTIONS", "/v1/pets", "").header("Allow")
    );
    let headers = reply.header("Access-Control-Allow-Headers").unwrap();
    assert!(
        headers.contains("Authorization") && headers.contains("Content-Type"),
        "{headers}"
    );
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
                let is_told = reply
                    .headers
                    .iter()
                    .any(|(name, _)| name.starts_with("Access-Control-"));
                assert!(!is_told, "{reply:?}");
            }
        }
    }
}

#[test]
fn whatever_is_described_can_be_sent_and_read() {
    let server =
        Server::start_with(|command| command.args(["--experimental", "--allow-origin", APP]));
    let preflight = |target: &str, name: &str| {
        let asked = "Access-Control-Request-Method: GET\r\nAccess-Control-Request-Headers";
        server.ask(
            "OPTIONS",
            target,
            &format!("Origin: {APP}\r\n{asked}: {name}\r\n"),
        )
    };
    let reply = server.ask("GET", "/v1/pets", &format!("Origin: {APP}\r\n"));
    let read: Vec<&str> = reply
        .header("Access-Control-Expose-Headers")
        .unwrap()
        .split(", ")
        .collect();
    for (path, item) in document()["paths"].as_object().unwrap() {
        let target = format!("/v1{}", path.replace(['{', '}'], ""));
        let reply = preflight(&target, "");
        let methods = reply
            .header("Access-Control-Allow-Methods")
            .unwrap()
            .to_owned();
        for (method, operation) in item.as_object().unwrap() {
            assert!(
                methods.contains(&method.to_uppercase()),
                "{method} {path}: {methods}"
            );
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = parameter["name"].as_str().unwrap();
                if parameter["in"] == "header" {
                    let reply = preflight(&target, name);
                    let mut sent = reply
                        .header("Access-Control-Allow-Headers")
                        .unwrap()
                        .split(", ");
                    assert!(
                        sent.any(|sent| sent == name),
                        "{method} {path}: {name} cannot be sent"
                    );
                }
            }
            for response in operation["responses"]
                .as_object()
                .unwrap()
                .values()
                .map(resolve)
            {
                for name in response["headers"].as_object().unwrap().keys() {
                    assert!(
                        read.contains(&&**name),
                        "{method} {path}: {name} cannot be read"
                    );
                }
            }
        }
    }
}
