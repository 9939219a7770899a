//! A DNS server with a zone that a test can change while it runs.

#[path = "../../src/site/dns/test_server.rs"]
#[allow(dead_code, reason = "the tests within the crate use the rest")]
mod test_server;

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

pub use test_server::{Record, Records};
use test_server::{Server, respond};

/// A running server. Dropping it ends it.
pub struct DnsServer {
    server: Server,
    zone: Arc<Mutex<Records>>,
}

impl DnsServer {
    /// Starts a server without records.
    pub fn start() -> Self {
        let zone = Arc::new(Mutex::new(Records::new()));
        let of_server = Arc::clone(&zone);
        let server = Server::datagrams(move |query| vec![respond(query, &of_server.lock().unwrap())]);
        Self { server, zone }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// Replaces the records.
    pub fn set(&self, records: &[(&'static str, Record)]) {
        *self.zone.lock().unwrap() = records.to_vec();
    }
}
