//! RFC 9112's framing over raw sockets, once for each rule. Every case stands in `src/gate/wire/framing_tests.rs`,
//! without a socket.

use support::client::{Connection, Reply};
use support::harness::{KEY, Server};

/// A request, the status it gets, and whether the connection persists after it.
struct Row {
    request: Vec<u8>,
    status: u16,
    persists: bool,
}

fn refused(request: impl AsRef<[u8]>, status: u16) -> Row {
    Row {
        request: request.as_ref().to_vec(),
        status,
        persists: false,
    }
}

fn served(request: impl AsRef<[u8]>, status: u16) -> Row {
    Row {
        request: request.as_ref().to_vec(),
        status,
        persists: true,
    }
}

/// A create with these header fields and this body.
fn post(headers: &str, body: &str) -> String {
    format!(
        "POST /v1/pets HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {KEY}\r\n{headers}\r\n{body}"
    )
}

fn get(headers: &str) -> String {
    format!("GET /healthz HTTP/1.1\r\nHost: h\r\n{headers}\r\n")
}

const PET: &str = r#"{"name":"x","categoryId":1}"#;
const CHUNKED_PET: &str =
    "5\r\n{\"nam\r\n16;ext=\"1\"\r\ne\":\"x\",\"categoryId\":1}\r\n0\r\nTrailer: x\r\n\r\n";

/// One row for each rule.
fn rows() -> Vec<Row> {
    let chunked = "Transfer-Encoding: chunked\r\n";
    vec![
        // Request lines.
        refused("nonsense\r\n\r\n", 400),
        refused("GET /healthz HTTP/2.0\r\nHost: h\r\n\r\n", 505),
        refused("\r\n\r\nGET /healthz HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        served("\r\nGET /healthz HTTP/1.1\r\nHost: h\r\n\r\n", 200),
        served("GET /healthz HTTP/1.2\r\nHost: h\r\n\r\n", 200),
        refused(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        // Host.
        refused("GET /healthz HTTP/1.1\r\n\r\n", 400),
        refused(get("Host: h\r\n"), 400),
        refused("GET /healthz HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        served("GET http://other/healthz HTTP/1.1\r\nHost: h\r\n\r\n", 200),
        // Header lines.
        refused(get("X : y\r\n"), 400),
        refused(get("X: y\r\n folded\r\n"), 400),
        refused(get("X: a\rb\r\n"), 400),
        refused(get("X: a\0b\r\n"), 400),
        refused("GET /healthz HTTP/1.1\nHost: h\n\n", 400),
        served(get("X:\r\nY:\t z\t\r\nZ: \u{e9}\r\n"), 200),
        // Content-Length.
        refused(post("Content-Length: x\r\n", ""), 400),
        refused(post("Content-Length: 5\r\nContent-Length: 6\r\n", ""), 400),
        refused(post("Content-Length: 65537\r\n", ""), 413),
        refused(post("Content-Length: 9000000000000000000\r\n", ""), 413),
        refused(
            post("Expect: 100-continue\r\nContent-Length: 65537\r\n", ""),
            413,
        ),
        served(get("Content-Length: 3\r\n") + "abc", 200),
        // Transfer-Encoding.
        refused(
            post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", ""),
            400,
        ),
        refused(post("Transfer-Encoding: xchunked\r\n", ""), 501),
        refused(
            "POST /v1/pets HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        served(post(chunked, CHUNKED_PET), 201),
        refused(post(chunked, "x\r\n"), 400),
        refused(post(chunked, "10001\r\n"), 413),
        refused(
            post(chunked, &format!("0\r\n{}", "X: y\r\n".repeat(3000))),
            431,
        ),
        // Expect.
        refused(get("Expect: tea\r\n"), 417),
        // Bounds.
        refused(
            format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(8192)),
            414,
        ),
        served(
            format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(8191)),
            404,
        ),
        refused(get(&format!("X: {}\r\n", "x".repeat(16_384))), 431),
        refused(get(&"X: y\r\n".repeat(100)), 431),
        served(get(&"X: y\r\n".repeat(99)), 200),
    ]
}

#[track_caller]
fn expect(reply: &Reply, row: &Row, connection: &mut Connection) {
    let request = String::from_utf8_lossy(&row.request[..row.request.len().min(200)]).into_owned();
    assert_eq!(reply.status, row.status, "{request:?} got {reply:?}");
    let closes = reply.header("Connection") == Some("close");
    assert_eq!(closes, !row.persists, "{request:?} got {reply:?}");
    if row.persists {
        connection.get("/healthz", "").expect(200);
    } else {
        connection.end_sending();
        connection.expect_end();
    }
}

#[test]
fn rules_of_framing_hold() {
    let server = Server::start();
    for row in rows() {
        let mut connection = server.connect();
        connection.try_send(&row.request);
        let reply = connection.reply();
        expect(&reply, &row, &mut connection);
    }
}

#[test]
fn request_may_come_byte_by_byte_and_behind_another() {
    let server = Server::start();
    for (request, status) in [
        (post("Transfer-Encoding: chunked\r\n", CHUNKED_PET), 201),
        (get("X : y\r\n"), 400),
    ] {
        let mut connection = server.connect();
        for byte in [post("Content-Length: 27\r\n", PET), request]
            .concat()
            .as_bytes()
            .chunks(1)
        {
            connection.try_send(byte);
        }
        connection.reply().expect(201);
        connection.reply().expect(status);
    }
}

#[test]
fn many_pipelined_requests_are_answered_in_order() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut requests = String::new();
    for i in 0..300 {
        if i % 3 == 0 {
            requests += &post(
                &format!("Content-Length: 27\r\nX-Request-Id: r{i}\r\n"),
                PET,
            );
        } else {
            requests += &get(&format!("X-Request-Id: r{i}\r\n"));
        }
    }
    connection.send(requests);
    for i in 0..300 {
        let reply = connection.reply();
        assert_eq!(reply.header("X-Request-Id"), Some(format!("r{i}").as_str()));
        assert_eq!(reply.status, if i % 3 == 0 { 201 } else { 200 });
    }
}

#[test]
fn continue_is_sent_before_the_body_and_only_then() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.send(post("Expect: 100-continue\r\nContent-Length: 27\r\n", ""));
    connection.expect_continue();
    connection.send(PET);
    connection.reply().expect(201);
    connection.send(post("Expect: 100-continue\r\nContent-Length: 27\r\n", PET));
    connection.reply().expect(201);
}

#[test]
fn large_refused_body_does_not_eat_the_reply() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.try_send(post("Content-Length: 900000\r\n", &"x".repeat(900_000)));
    connection.reply().expect(413);
}

#[test]
fn half_closed_client_gets_its_reply() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.send(post("Content-Length: 27\r\n", PET));
    connection.end_sending();
    connection.reply().expect(201);
    connection.expect_end();
}

#[test]
fn end_within_a_request_is_400_and_creates_nothing() {
    let server = Server::start();
    for begun in [
        post("Content-Length: 28\r\n", PET),
        post("Transfer-Encoding: chunked\r\n", "5\r\nab"),
        "GET".to_owned(),
    ] {
        let mut connection = server.connect();
        connection.send(begun);
        connection.end_sending();
        connection.reply().expect(400);
        connection.expect_end();
    }
    assert_eq!(server.get("/v1/pets").body, b"[]");
}

#[test]
fn body_of_a_get_is_not_taken_for_a_request() {
    let server = Server::start();
    let mut connection = server.connect();
    let smuggled = "GET /nowhere HTTP/1.1\r\nHost: h\r\n\r\n";
    connection.send(get(&format!("Content-Length: {}\r\n", smuggled.len())) + smuggled);
    connection.reply().expect(200);
    connection.get("/healthz", "").expect(200);
}

/// tiny_http closes a connection on which a header field is not ASCII, and knows fields that change the framing.
#[test]
fn no_header_field_breaks_the_lane() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut ask = |field: &[u8], statuses: &[u16]| {
        let head = "GET /v1/pets/1 HTTP/1.1\r\nHost: h\r\nX-Request-Id: mine\r\n";
        connection.send([head.as_bytes(), field, b"\r\n\r\n"].concat());
        let reply = connection.reply();
        assert!(
            statuses.contains(&reply.status),
            "{} {field:?}",
            reply.status
        );
        assert_eq!(reply.header("X-Request-Id"), Some("mine"), "{field:?}");
    };
    for name in [
        "Authorization",
        "Accept",
        "Accept-Encoding",
        "Content-Type",
        "Idempotency-Key",
        "If-None-Match",
    ] {
        for byte in (b' '..=u8::MAX).filter(|byte| *byte != 0x7f).chain([b'\t']) {
            ask(
                &[name.as_bytes(), b": a", &[byte], b"b"].concat(),
                &[200, 400, 401],
            );
        }
        ask(format!("{name}:").as_bytes(), &[200, 400, 401]);
        ask(
            format!("{name}: {}", "x".repeat(15_000)).as_bytes(),
            &[200, 400, 401],
        );
    }
    for field in [
        "T: 1 forged",
        "T: 0 -",
        "Connection: upgrade",
        "Upgrade: x",
        "TE: gzip",
        "Trailer: x",
    ] {
        ask(field.as_bytes(), &[200, 401]);
    }
}
