//! The project site as bytes on the wire; `tests/site` has it in a browser.

use crate::harness::Server;

#[test]
fn site_needs_no_key_and_knows_who_has_it_already() {
    let server = Server::start();
    for (target, kind) in [
        ("/", "text/html; charset=utf-8"),
        ("/docs/errors", "text/html; charset=utf-8"),
        ("/assets/site.css", "text/css"),
        ("/assets/swagger-ui-5.35.0.js", "text/javascript; charset=utf-8"),
    ] {
        let mut connection = server.connect();
        let mut ask = |fields: &str| {
            connection.send(format!("GET {target} HTTP/1.1\r\nHost: h\r\n{fields}\r\n"));
            connection.reply()
        };
        let plain = ask("");
        assert_eq!((plain.status, plain.header("Content-Type")), (200, Some(kind)), "{target}");
        assert_eq!(plain.header("Content-Encoding"), None);
        let compressed = ask("Accept-Encoding: gzip, br\r\n");
        assert_eq!(compressed.header("Content-Encoding"), Some("gzip"), "{target}");
        assert!(compressed.body.len() < plain.body.len(), "{target}");
        let tag = plain.header("ETag").unwrap();
        assert_ne!(compressed.header("ETag"), Some(tag), "{target}: each form has its own");
        assert_eq!(ask(&format!("If-None-Match: {tag}\r\n")).status, 304, "{target}");
    }
}

#[test]
fn page_that_is_not_there_is_a_failure_like_any_other() {
    let server = Server::start();
    for target in ["/docs/nowhere", "/assets/nowhere.js", "/assets/..%2Fsite.css"] {
        let mut connection = server.connect();
        connection.send(format!("GET {target} HTTP/1.1\r\nHost: h\r\n\r\n"));
        connection.reply().expect_error(404, "not_found", "path");
    }
}
