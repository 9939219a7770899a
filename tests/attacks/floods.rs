//! Floods that do not stop: as many requests as possible, of many kinds.

use std::sync::Arc;
use std::time::Duration;

use crate::client::{get, post};
use crate::crowd::Crowd;
use crate::harness::KEY;
use crate::origin::many;
use crate::plan::{Reading, again};
use crate::requests::{WRONG_KEY, bundle, long_key, tiny_chunks, unknown_path};
use crate::trial::{SPAN, Trial};

/// Repeats requests on this many connections.
struct Flood {
    name: &'static str,
    request: fn() -> String,
    connections: usize,
    /// The expected status of their replies.
    status: u16,
}

const LONG_KEYS: Flood = Flood {
    name: "wrong keys of 15 KB",
    request: || get("/v1/pets", &long_key()),
    connections: 64,
    status: 401,
};
const LARGE_CREATES: Flood = Flood {
    name: "creates of 64 KiB",
    request: || {
        let name = "x".repeat(65_500);
        post("/v1/pets", KEY, &format!(r#"{{"name":"{name}","categoryId":1}}"#))
    },
    connections: 32,
    status: 201,
};
const CREATES: Flood = Flood {
    name: "creates",
    request: || bundle(&post("/v1/pets", KEY, r#"{"name":"Rex","categoryId":3,"status":"sold"}"#)),
    connections: 64,
    status: 201,
};
const LIVENESS: Flood = Flood {
    name: "/healthz",
    request: || bundle("GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n"),
    connections: 64,
    status: 200,
};
const READINESS: Flood = Flood {
    name: "/readyz",
    request: || bundle("GET /readyz HTTP/1.1\r\nHost: h\r\n\r\n"),
    connections: 64,
    status: 200,
};
const REFUSED_WRITES: Flood = Flood {
    name: "creates with a wrong key",
    request: || bundle(&post("/v1/pets", WRONG_KEY, "{}")),
    connections: 64,
    status: 401,
};
const TINY_CHUNKS: Flood =
    Flood { name: "chunks of one byte", request: tiny_chunks, connections: 16, status: 401 };

#[track_caller]
fn flood(flood: &Flood) {
    let trial = Trial::begin();
    let source = again((flood.request)());
    let mut crowd = Crowd::new(trial.address(), many(flood.connections), source, Reading::AllAndComeAgain);
    crowd.run_to(SPAN, flood.status);
    let tally = crowd.leave();
    trial.end();
    tally.expect(flood.status);
}

#[test]
fn flood_of_long_wrong_keys_holds_up_nobody() {
    flood(&LONG_KEYS);
}

#[test]
fn flood_of_large_creates_holds_up_nobody() {
    flood(&LARGE_CREATES);
}

#[test]
fn flood_of_creates_holds_up_nobody() {
    flood(&CREATES);
}

#[test]
fn flood_of_liveness_checks_holds_up_nobody() {
    flood(&LIVENESS);
}

#[test]
fn flood_of_readiness_checks_holds_up_nobody() {
    flood(&READINESS);
}

#[test]
fn flood_of_refused_writes_holds_up_nobody() {
    flood(&REFUSED_WRITES);
}

#[test]
fn flood_of_tiny_chunks_holds_up_nobody() {
    flood(&TINY_CHUNKS);
}

/// More connections than there are places in a queue.
#[test]
fn flood_of_5000_connections_holds_up_nobody() {
    let request = || get("/v1/pets", WRONG_KEY);
    flood(&Flood { name: "5000 connections", request, connections: 5_000, status: 401 });
}

#[test]
fn flood_of_single_bytes_holds_up_nobody() {
    let request = unknown_path().replace("\r\n\r\n", &format!("\r\nX-Filler: {}\r\n\r\n", "x".repeat(1000)));
    let bytes: Vec<Arc<[u8]>> = request.bytes().map(|byte| Arc::from([byte])).collect();
    let trial = Trial::begin();
    let source = Box::new(move |sent: usize| Some(Arc::clone(&bytes[sent % bytes.len()])));
    let mut crowd = Crowd::new(trial.address(), 64, source, Reading::AllAndComeAgain);
    crowd.run_to(SPAN, 404);
    let tally = crowd.leave();
    trial.end();
    tally.expect(404);
}

/// How long innocent clients wait alone and during each flood; printed, not asserted.
#[test]
fn figures_are_printed() {
    let trial = Trial::begin();
    trial.innocents.wait_for(240);
    trial.print_figures("nobody");
    for flood in [LONG_KEYS, LARGE_CREATES, CREATES, LIVENESS, READINESS, REFUSED_WRITES, TINY_CHUNKS] {
        let trial = Trial::begin();
        let source = again((flood.request)());
        let mut crowd = Crowd::new(trial.address(), flood.connections, source, Reading::AllAndComeAgain);
        crowd.run(Duration::from_secs(2));
        trial.print_figures(flood.name);
    }
}
