//! One request and its response, as far as the gate must remember them.

use std::net::SocketAddr;
use std::time::Instant;

use crate::gate::wire::answer::Answer;
use crate::gate::wire::head::Head;
use crate::gate::wire::request_id::RequestId;

/// Under which name the access log's lines are chosen with `RUST_LOG`.
const ACCESS_LOG: &str = "petstore::access";

/// The request under way, as far as its response and its log line need it.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub id: RequestId,
    pub is_head: bool,
    pub is_http_1_0: bool,
    /// Whether the client wants the connection to persist.
    pub keep_alive: bool,
    begun: Instant,
    /// Method and path for the access log; the query stays out of it.
    summary: String,
}

impl Exchange {
    /// A request of which nothing is understood.
    pub fn new(id: RequestId, begun: Instant) -> Self {
        Self { id, is_head: false, is_http_1_0: false, keep_alive: false, begun, summary: "-".to_owned() }
    }

    /// A request whose head is understood; `request` begins with the lane's request line.
    pub fn of(head: &Head, request: &[u8], begun: Instant) -> Self {
        let mut summary = String::new();
        if log::log_enabled!(target: ACCESS_LOG, log::Level::Info) {
            let line = request.split(|b| *b == b'\r').next().unwrap_or_default();
            let line = line.strip_suffix(b" HTTP/1.1").unwrap_or(line);
            let path = line.split(|b| *b == b'?').next().unwrap_or_default();
            summary = String::from_utf8_lossy(path).into_owned();
        }
        Self {
            id: head.id,
            is_head: head.is_head,
            is_http_1_0: head.is_http_1_0,
            keep_alive: head.keep_alive,
            begun,
            summary,
        }
    }

    /// Writes the line of the access log.
    pub fn log(&self, peer: SocketAddr, answer: &Answer, now: Instant) {
        let duration = now.saturating_duration_since(self.begun).as_secs_f64() * 1e3;
        log::info!(
            target: ACCESS_LOG,
            "{peer} {} {} {} {} bytes {duration:.3} ms",
            self.id.as_str(),
            self.summary,
            answer.status,
            answer.body.len(),
        );
    }
}
