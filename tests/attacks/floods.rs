//! Floods that do not stop: as many requests as possible, of many kinds.

use std::sync::Arc;

use crate::plan::{Reading, again};
use crate::requests::{WRONG_KEY, bundle, long_key, tiny_chunks, unknown_path};
use crate::source_address::many;
use crate::trial::{Stage, Trial};
use support::client::{get, post, with_body};
use support::harness::{KEY, change};

/// Repeats a request on this many connections, whose replies have this status.
#[track_caller]
fn flood(request: String, connections: usize, status: u16) {
    Trial::begin().attack(
        many(connections),
        again(request),
        Reading::AllAndComeAgain,
        status,
    );
}

#[test]
fn flood_of_long_wrong_keys_holds_up_nobody() {
    flood(get("/v1/pets", &long_key()), 64, 401);
}

#[test]
fn flood_of_large_creates_holds_up_nobody() {
    let name = "x".repeat(65_500);
    flood(
        post(
            "/v1/pets",
            KEY,
            &format!(r#"{{"name":"{name}","categoryId":1}}"#),
        ),
        32,
        201,
    );
}

#[test]
fn flood_of_large_changes_holds_up_nobody() {
    let stage = Stage::with(&["--experimental"]);
    stage.fill();
    let body = format!(r#"{{"name":"{}","status":"sold"}}"#, "y".repeat(60_000));
    let request = with_body("PATCH", "/v1/pets/50", KEY, "If-Match: *\r\n", &body);
    stage
        .begin()
        .attack(many(32), again(request), Reading::AllAndComeAgain, 200);
}

/// Each DELETE has a pet of its own.
#[test]
fn flood_of_deletes_holds_up_nobody() {
    let stage = Stage::with(&["--experimental"]);
    change(
        &stage.server.folder.database(),
        "INSERT INTO pets (name, category_id) \
         WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT 'Rex', i FROM n",
    );
    let mut id = 0;
    let source = Box::new(move |_| {
        let deletes = (id + 1..=id + 32)
            .map(|id| with_body("DELETE", &format!("/v1/pets/{id}"), KEY, "", ""));
        id += 32;
        Some(deletes.collect::<String>().into_bytes().into())
    });
    stage
        .begin()
        .attack(many(64), source, Reading::AllAndComeAgain, 204);
}

#[test]
fn flood_of_creates_holds_up_nobody() {
    flood(
        bundle(&post(
            "/v1/pets",
            KEY,
            r#"{"name":"Rex","categoryId":3,"status":"sold"}"#,
        )),
        64,
        201,
    );
}

#[test]
fn flood_of_liveness_checks_holds_up_nobody() {
    flood(bundle("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"), 64, 200);
}

#[test]
fn flood_of_readiness_checks_holds_up_nobody() {
    flood(bundle("GET /readyz HTTP/1.1\r\nHost: h\r\n\r\n"), 64, 200);
}

#[test]
fn flood_of_refused_writes_holds_up_nobody() {
    flood(bundle(&post("/v1/pets", WRONG_KEY, "{}")), 64, 401);
}

#[test]
fn flood_of_tiny_chunks_holds_up_nobody() {
    flood(tiny_chunks(), 16, 401);
}

/// More connections than there are places in a queue.
#[test]
fn flood_of_5000_connections_holds_up_nobody() {
    flood(get("/v1/pets", WRONG_KEY), 5_000, 401);
}

#[test]
fn flood_of_single_bytes_holds_up_nobody() {
    let request = unknown_path().replace(
        "\r\n\r\n",
        &format!("\r\nX-Filler: {}\r\n\r\n", "x".repeat(1000)),
    );
    let bytes: Vec<Arc<[u8]>> = request.bytes().map(|byte| Arc::from([byte])).collect();
    let source = Box::new(move |sent: usize| Some(Arc::clone(&bytes[sent % bytes.len()])));
    Trial::begin().attack(64, source, Reading::AllAndComeAgain, 404);
}
