//! The requests of attackers.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use crate::source_address::Origin;
use support::client::{get, post};
use support::wait::PATIENCE;

/// A key that does not exist.
pub const WRONG_KEY: &str = "wrong-key";
/// Header fields that are nearly as large as they may be.
const FIELDS_BYTES: usize = 15 * 1024;
/// A body that is as large as it may be.
const BODY_BYTES: usize = 64 * 1024;
/// The number of small requests in one piece, so that the attackers' own work does not slow them down.
const BUNDLE: usize = 32;

/// Many of a small request.
pub fn bundle(request: &str) -> String {
    request.repeat(BUNDLE)
}

/// The longest key.
pub fn long_key() -> String {
    "k".repeat(FIELDS_BYTES)
}

/// A whole request of 80 KB: 15 KB of it a header field that the service reads, and 64 KiB a body. The
/// scheme is none that makes the service compute anything.
pub fn largest() -> String {
    post("/v1/pets", &long_key(), &"x".repeat(BODY_BYTES)).replacen("Bearer", "Basic", 1)
}

/// A request whose body never ends; all that is missing is its last byte.
pub fn largest_unfinished() -> String {
    let mut request = largest();
    request.pop();
    request
}

/// The start of a head that is nearly as large as it may be.
pub fn unfinished_head() -> String {
    format!(
        "GET /nope HTTP/1.1\r\nHost: h\r\nX-Filler: {}",
        "x".repeat(FIELDS_BYTES)
    )
}

/// A request with a long head for which the service has nothing to do, and its next one's first byte.
pub fn long_head_and_one_byte() -> String {
    format!(
        "GET /healthz HTTP/1.1\r\nHost: h\r\nX-Filler: {}\r\n\r\nG",
        "x".repeat(FIELDS_BYTES)
    )
}

/// The rest of a request whose first byte has been sent.
pub fn all_but_the_first_byte() -> String {
    "ET /healthz HTTP/1.1\r\nHost: h\r\n\r\n".to_owned()
}

/// The largest answer that needs no key.
pub fn description() -> String {
    "GET /openapi.json HTTP/1.1\r\nHost: h\r\n\r\n".to_owned()
}

/// A file of [`Stage::deploy`](crate::trial::Stage::deploy). No key is asked for.
pub fn deployed_file(coding: &str) -> String {
    format!("GET /large.txt HTTP/1.1\r\nHost: h\r\nAccept-Encoding: {coding}\r\n\r\n")
}

/// A path that does not exist and needs no key.
pub fn unknown_path() -> String {
    "GET /nope HTTP/1.1\r\nHost: h\r\n\r\n".to_owned()
}

/// A 60 KB body with a wrong key.
pub fn post_with_wrong_key() -> String {
    post("/v1/pets", WRONG_KEY, &"x".repeat(60_000))
}

/// A GET with a 60 KB body and a wrong key.
pub fn get_with_body() -> String {
    post_with_wrong_key().replacen("POST", "GET", 1)
}

/// A 60 KB body in chunks of one byte, and a wrong key.
pub fn tiny_chunks() -> String {
    let head = get("/v1/pets", WRONG_KEY).replacen("GET", "POST", 1);
    let head = head.trim_end().to_owned();
    format!(
        "{head}\r\nTransfer-Encoding: chunked\r\n\r\n{}0\r\n\r\n",
        "1\r\nx\r\n".repeat(60_000)
    )
}

/// The head of a request that announces a large body and waits for leave to send it.
pub fn announced_body() -> String {
    let head = "POST /v1/pets HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\n";
    format!("{head}Content-Length: {BODY_BYTES}\r\n\r\n")
}

/// A page of large pets.
pub fn large_page(key: &str) -> String {
    get("/v1/pets?limit=100&after=20", key)
}

/// How a visitor leaves.
#[derive(Clone, Copy)]
pub enum Leaving {
    /// In order.
    Close,
    /// With a reset.
    Reset,
}

/// Visitors that connect one after the other as fast as possible, send this, and leave at once.
pub fn come_and_go(address: SocketAddr, words: &str, leaving: Leaving, until: Instant) {
    let mut origin = Origin::default();
    let mut count = 0;
    while Instant::now() < until {
        let socket = origin.socket();
        socket.set_write_timeout(Some(PATIENCE)).unwrap();
        if matches!(leaving, Leaving::Reset) {
            socket.set_linger(Some(Duration::ZERO)).unwrap();
        }
        // It may be accepted or not.
        if socket.connect_timeout(&address.into(), PATIENCE).is_ok() {
            let _ = socket.send(words.as_bytes());
            count += 1;
        }
    }
    eprintln!("{count} visitors came and went");
    assert!(count > 0);
}
