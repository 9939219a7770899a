//! A client's socket, TCP or Unix, and its peer.

use std::fmt;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr};

use mio::net::{TcpStream, UnixStream};
use mio::{Interest, Registry, Token};

/// A connected, nonblocking socket.
pub enum Stream {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// The peer of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Tcp(SocketAddr),
    /// A program on the same machine, which may open the socket's file.
    Unix,
}

impl Stream {
    /// Registers the socket for events.
    ///
    /// # Errors
    /// If it cannot be registered.
    pub fn register(&mut self, registry: &Registry, token: Token) -> io::Result<()> {
        let interests = Interest::READABLE | Interest::WRITABLE;
        match self {
            Self::Tcp(stream) => registry.register(stream, token, interests),
            Self::Unix(stream) => registry.register(stream, token, interests),
        }
    }

    /// Disables Nagle's algorithm, which would delay the end of a large response. A response is one write
    /// anyway.
    pub fn send_at_once(&self) {
        if let Self::Tcp(stream) = self {
            let _ = stream.set_nodelay(true);
        }
    }

    /// Shuts down our side.
    pub fn end(&self) {
        // If the client has gone, there is nothing to shut down.
        let _ = match self {
            Self::Tcp(stream) => stream.shutdown(Shutdown::Write),
            Self::Unix(stream) => stream.shutdown(Shutdown::Write),
        };
    }
}

impl Read for Stream {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.read(bytes),
            Self::Unix(stream) => stream.read(bytes),
        }
    }
}

impl Write for Stream {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Self::Tcp(stream) => stream.write(bytes),
            Self::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
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
