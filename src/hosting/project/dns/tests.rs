//! Helpers for tests of the DNS client.

use std::net::SocketAddr;
use std::time::{Duration, Instant};

use super::Dns;

pub(crate) use support::dns_server::*;

/// The name that most tests ask for.
pub(crate) const WWW: &str = "www.example.com";

/// A zone in which that name has one address.
pub(super) fn www(address: [u8; 4]) -> Records {
    vec![(WWW, Record::A(address))]
}

/// Makes clients of a server.
pub(crate) trait AsDns {
    /// A client that asks this server for everything.
    fn dns(&self) -> Dns;
}

impl AsDns for Server {
    fn dns(&self) -> Dns {
        Dns::new(Some(self.address))
    }
}

impl Dns {
    /// Sets the deadline of all questions, and the timeout of each server.
    pub fn within(self, whole_ms: u64, patience_ms: u64) -> Self {
        let until = Instant::now() + Duration::from_millis(whole_ms);
        Self {
            until,
            patience: Duration::from_millis(patience_ms),
            ..self
        }
    }

    /// A client that asks these resolvers for the authorities, and the authorities on this port.
    pub fn of_system(resolvers: Vec<SocketAddr>, port: u16) -> Self {
        Self {
            resolvers,
            port,
            ..Self::new(None)
        }
    }
}
