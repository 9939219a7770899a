//! Every case of RFC 9112's framing: whole, byte by byte, and behind another request.

use super::request_reader::tests::steps;

const OK: u16 = 200;

fn refused(request: impl AsRef<[u8]>, status: u16) -> (Vec<u8>, u16) {
    (request.as_ref().to_vec(), status)
}

fn served(request: impl AsRef<[u8]>) -> (Vec<u8>, u16) {
    (request.as_ref().to_vec(), OK)
}

/// A request with these header fields and this body.
fn post(headers: &str, body: &str) -> String {
    format!("POST /x HTTP/1.1\r\nHost: h\r\n{headers}\r\n{body}")
}

fn get(headers: &str) -> String {
    format!("GET /x HTTP/1.1\r\nHost: h\r\n{headers}\r\n")
}

const CHUNKED: &str =
    "5\r\nabcde\r\n16;ext=\"1\"\r\nabcdefghijklmnopqrstuv\r\n0\r\nTrailer: x\r\n\r\n";

#[expect(clippy::too_many_lines, reason = "a table")]
fn rows() -> Vec<(Vec<u8>, u16)> {
    let chunked = "Transfer-Encoding: chunked\r\n";
    vec![
        // Request lines.
        refused("nonsense\r\n\r\n", 400),
        refused("GET\r\n\r\n", 400),
        refused("GET /x\r\n\r\n", 400),
        refused("GET  /x HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        refused("GET /x  HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        refused("GET /x HTTP/1.1 \r\nHost: h\r\n\r\n", 400),
        refused("GET /heal thz HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        refused("GET\t/x\tHTTP/1.1\r\nHost: h\r\n\r\n", 400),
        refused("G\"T /x HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        refused("GET healthz HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        refused("GET * HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        refused("GET /x#x HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        refused("GET /h\u{e9} HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        refused(b"GET /\0 HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        refused("GET /x HTTP/1\r\nHost: h\r\n\r\n", 400),
        refused("GET /x http/1.1\r\nHost: h\r\n\r\n", 400),
        refused("GET /x HTTP/1.1x\r\nHost: h\r\n\r\n", 400),
        refused("GET /x HTTP/2.0\r\nHost: h\r\n\r\n", 505),
        refused("GET /x HTTP/0.9\r\nHost: h\r\n\r\n", 505),
        refused("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        refused("\r\n\r\nGET /x HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        served("\r\nGET /x HTTP/1.1\r\nHost: h\r\n\r\n"),
        served("GET /x HTTP/1.2\r\nHost: h\r\n\r\n"),
        refused(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03", 400),
        // Host.
        refused("GET /x HTTP/1.1\r\n\r\n", 400),
        refused(get("Host: h\r\n"), 400),
        refused("GET /x HTTP/1.1\r\nHost: a b\r\n\r\n", 400),
        refused("GET /x HTTP/1.1\r\nHost: a/b\r\n\r\n", 400),
        refused("GET /x HTTP/1.1\r\nHost: user@h\r\n\r\n", 400),
        refused("GET http://user@h/x HTTP/1.1\r\nHost: h\r\n\r\n", 400),
        served("GET /x HTTP/1.1\r\nHost:\r\n\r\n"),
        served("GET http://other/x HTTP/1.1\r\nHost: h\r\n\r\n"),
        // Header lines.
        refused(get("X : y\r\n"), 400),
        refused(get("X y\r\n"), 400),
        refused(get(": y\r\n"), 400),
        refused(get("X: y\r\n folded\r\n"), 400),
        refused(get("X: y\r\n\tfolded\r\n"), 400),
        refused(get("X(: y\r\n"), 400),
        refused(get("X\u{e9}: y\r\n"), 400),
        refused(get("X: a\rb\r\n"), 400),
        refused(get("X: a\0b\r\n"), 400),
        refused(get("X: a\u{7f}b\r\n"), 400),
        refused("GET /x HTTP/1.1\nHost: h\n\n", 400),
        refused("GET /x HTTP/1.1\r\nHost: h\r\n\n", 400),
        refused("GET /x HTTP/1.1\r\r\nHost: h\r\n\r\n", 400),
        refused("GET /x HTTP/1.1\r\n Host: h\r\n\r\n", 400),
        refused(get("X: a\u{1b}b\r\n"), 400),
        refused("GET /x HTTP/1.1\r\nHost: h\nX: y\r\n\r\n", 400),
        served(get("X:\r\nY:\t z\t\r\nZ: \u{e9}\r\n")),
        // Content-Length.
        refused(post("Content-Length: x\r\n", ""), 400),
        refused(post("Content-Length:\r\n", ""), 400),
        refused(post("Content-Length: -1\r\n", ""), 400),
        refused(post("Content-Length: +5\r\n", ""), 400),
        refused(post("Content-Length: 5 5\r\n", ""), 400),
        refused(post("Content-Length: 5,5\r\n", ""), 400),
        refused(post("Content-Length: 0x5\r\n", ""), 400),
        refused(post("Content-Length: 5\r\nContent-Length: 5\r\n", ""), 400),
        refused(post("Content-Length: 5\r\nContent-Length: 6\r\n", ""), 400),
        refused(post("Content-Length: 65537\r\n", ""), 413),
        refused(post("Content-Length: 9000000000000000000\r\n", ""), 413),
        refused(
            post("Content-Length: 99999999999999999999999999999\r\n", ""),
            413,
        ),
        refused(
            post("Expect: 100-continue\r\nContent-Length: 65537\r\n", ""),
            413,
        ),
        served(post("Content-Length: 0027\r\n", &"x".repeat(27))),
        served(post("Content-Length: 65536\r\n", &"x".repeat(65_536))),
        served(get("Content-Length: 0\r\n")),
        served(get("Content-Length: 3\r\n") + "abc"),
        // Transfer-Encoding.
        refused(
            post("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", ""),
            400,
        ),
        refused(
            post("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", ""),
            400,
        ),
        refused(
            post("Content-Length: 5\r\nTransfer-Encoding: gzip\r\n", ""),
            400,
        ),
        refused(post("Transfer-Encoding: \u{b}chunked\r\n", ""), 400),
        refused(post("Transfer-Encoding: gzip\r\n", ""), 501),
        refused(post("Transfer-Encoding: gzip, chunked\r\n", ""), 501),
        refused(post("Transfer-Encoding: chunked, chunked\r\n", ""), 501),
        refused(post("Transfer-Encoding: xchunked\r\n", ""), 501),
        refused(post("Transfer-Encoding: identity\r\n", ""), 501),
        refused(post("Transfer-Encoding: , chunked\r\n", ""), 501),
        refused(post("Transfer-Encoding: chunked,\r\n", ""), 501),
        refused(post("Transfer-Encoding:\r\n", ""), 501),
        refused(post("Content-Length: 5,\r\n", ""), 400),
        refused(
            post(
                "Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n",
                "",
            ),
            501,
        ),
        refused(
            "POST /x HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n",
            400,
        ),
        served(post(chunked, CHUNKED)),
        served(post("Transfer-Encoding: CHUNKED\r\n", CHUNKED)),
        refused(post(chunked, "x\r\n"), 400),
        refused(post(chunked, "-5\r\n"), 400),
        refused(post(chunked, "\r\n"), 400),
        refused(post(chunked, "5\nabcde\n0\n\n"), 400),
        refused(post(chunked, "5\r\nabcdeX\r\n"), 400),
        refused(post(chunked, "5;a\0b\r\n"), 400),
        refused(post(chunked, "10001\r\n"), 413),
        refused(post(chunked, "fffffffffffffffff\r\n"), 413),
        refused(
            post(chunked, &format!("0\r\n{}", "X: y\r\n".repeat(3000))),
            431,
        ),
        // Expect.
        refused(get("Expect: tea\r\n"), 417),
        refused(get("Expect: 100-continue, tea\r\n"), 417),
        served(get("Expect: 100-continue\r\n")),
        served(get("Expect:\r\n")),
        served(get("Expect: , 100-continue\t,,\r\nExpect: ,\r\n")),
        refused(get("Expect: , tea\r\n"), 417),
        // Bounds.
        refused(
            format!("GET /{} HTTP/1.1\r\nHost: h\r\n\r\n", "x".repeat(8192)),
            414,
        ),
        served(format!(
            "GET /{} HTTP/1.1\r\nHost: h\r\n\r\n",
            "x".repeat(8191)
        )),
        refused(format!("GET /{}", "x".repeat(20_000)), 414),
        refused(get(&format!("X: {}\r\n", "x".repeat(16_384))), 431),
        refused("x".repeat(20_000), 431),
        refused(get(&"X: y\r\n".repeat(100)), 431),
        served(get(&"X: y\r\n".repeat(99))),
        served(get(&format!("X: {}\r\n", "x".repeat(16_000)))),
    ]
}

/// The status of the last step, and how many requests came before it.
fn outcome(steps: &[String]) -> (usize, u16) {
    let refusal = steps
        .last()
        .and_then(|step| step.split(' ').next()?.parse().ok());
    let requests = steps
        .iter()
        .filter(|step| step.starts_with(['G', 'P']))
        .count();
    (requests, refusal.unwrap_or(OK))
}

#[test]
fn every_case_is_framed_the_same_in_any_pieces_and_behind_another_request() {
    for (request, status) in rows() {
        let expected = (usize::from(status == OK), status);
        let text = String::from_utf8_lossy(&request[..request.len().min(200)]);
        assert_eq!(outcome(&steps(&request)), expected, "{text:?}");
        // One empty line before a request is passed over, wherever the request stands.
        let before = if request.starts_with(b"\r") {
            ""
        } else {
            "\r\n"
        };
        let both = [
            post("Content-Length: 3\r\n", "abc").as_bytes(),
            before.as_bytes(),
            &request,
        ]
        .concat();
        let expected = (1 + expected.0, status);
        assert_eq!(outcome(&steps(&both)), expected, "behind another: {text:?}");
    }
}
