//! The other end of a client's socket.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};

/// The peer of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Tcp(SocketAddr),
    /// A program on the same machine, which may open the socket's file.
    Unix,
}

impl Peer {
    /// The address for limits and the log: loopback for a Unix socket.
    pub fn ip(self) -> IpAddr {
        match self {
            Self::Tcp(address) => address.ip(),
            Self::Unix => Ipv4Addr::LOCALHOST.into(),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix => f.write_str("unix"),
        }
    }
}
