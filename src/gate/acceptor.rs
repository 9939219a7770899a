//! Accepts connections on the listening socket, and recovers when the operating system runs out of resources.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use mio::{Registry, Token};

use crate::gate::listening::Listening;
use crate::gate::stream::{Peer, Stream};

/// How long to wait when there are no descriptors or no memory for one more.
const PAUSE: Duration = Duration::from_millis(100);

/// The listening socket, and whether clients may be waiting.
pub struct Acceptor {
    listening: Listening,
    /// Whether clients may be waiting: set by events, cleared when none is left.
    pub is_ready: bool,
    /// Until when to accept nobody, because resources are short.
    paused_until: Option<Instant>,
    /// Whether resources are short, which is logged once.
    is_short: bool,
}

/// The result of accepting.
pub enum Accepted {
    Client(Stream, Peer),
    Nobody,
    /// A client waits, but there is no descriptor or memory for it.
    NoResources,
}

impl Acceptor {
    /// Watches a listening socket.
    ///
    /// # Errors
    /// If it cannot be watched.
    pub fn new(mut listening: Listening, token: Token, registry: &Registry) -> io::Result<Self> {
        listening.register(registry, token)?;
        Ok(Self { listening, is_ready: false, paused_until: None, is_short: false })
    }

    /// Whether the next service accepts the clients that wait when this one ends.
    pub fn is_passed(&self) -> bool {
        self.listening.is_passed()
    }

    /// How long until the next try, which needs no event.
    pub fn next_try(&self, now: Instant) -> Option<Duration> {
        self.is_ready
            .then(|| self.paused_until.map_or(Duration::ZERO, |end| end.saturating_duration_since(now)))
    }

    /// Accepts one client.
    pub fn accept(&mut self, now: Instant) -> Accepted {
        if !self.is_ready || self.paused_until.is_some_and(|until| now < until) {
            return Accepted::Nobody;
        }
        loop {
            match self.listening.accept() {
                Ok((stream, peer)) => {
                    self.paused_until = None;
                    return Accepted::Client(stream, peer);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.is_ready = false;
                    self.paused_until = None;
                    if std::mem::take(&mut self.is_short) {
                        log::warn!("every client that waited for a connection has one now");
                    }
                    return Accepted::Nobody;
                }
                // The client left before it was accepted.
                Err(error)
                    if matches!(error.kind(), ErrorKind::Interrupted | ErrorKind::ConnectionAborted) => {}
                Err(error) => {
                    if !std::mem::replace(&mut self.is_short, true) {
                        log::error!("cannot accept connections: {error}");
                    }
                    self.paused_until = Some(now + PAUSE);
                    return Accepted::NoResources;
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use mio::Poll;
    use std::net::SocketAddr;

    /// An acceptor without events so far, its poll, and its address.
    fn acceptor() -> (Acceptor, Poll, SocketAddr) {
        let listening = Listening::bind(&([127, 0, 0, 1], 0).into()).unwrap();
        let (poll, address) = (Poll::new().unwrap(), listening.address().tcp().unwrap());
        (Acceptor::new(listening, Token(0), poll.registry()).unwrap(), poll, address)
    }

    fn peer(accepted: Accepted) -> Option<Peer> {
        match accepted {
            Accepted::Client(_, peer) => Some(peer),
            Accepted::Nobody => None,
            Accepted::NoResources => panic!("there are resources"),
        }
    }

    #[test]
    fn who_waits_is_let_in_until_nobody_waits() {
        let (mut acceptor, _poll, address) = acceptor();
        let now = Instant::now();
        let client = std::net::TcpStream::connect(address).unwrap();
        assert_eq!(peer(acceptor.accept(now)), None, "no event has told of anybody");
        assert_eq!(acceptor.next_try(now), None);
        acceptor.is_ready = true;
        assert_eq!(acceptor.next_try(now), Some(Duration::ZERO));
        assert_eq!(peer(acceptor.accept(now)), Some(Peer::Tcp(client.local_addr().unwrap())));
        assert!(acceptor.is_ready, "there may be more");
        assert_eq!(peer(acceptor.accept(now)), None);
        assert!(!acceptor.is_ready);
        assert_eq!(acceptor.next_try(now), None);
    }

    #[test]
    fn who_waits_for_want_of_resources_is_let_in_after_the_pause() {
        let (mut acceptor, _poll, address) = acceptor();
        let now = Instant::now();
        let client = std::net::TcpStream::connect(address).unwrap();
        acceptor.is_ready = true;
        acceptor.paused_until = Some(now + PAUSE);
        assert_eq!(peer(acceptor.accept(now)), None);
        assert_eq!(acceptor.next_try(now), Some(PAUSE));
        assert_eq!(acceptor.next_try(now + PAUSE), Some(Duration::ZERO));
        assert_eq!(peer(acceptor.accept(now + PAUSE)), Some(Peer::Tcp(client.local_addr().unwrap())));
        assert_eq!(acceptor.next_try(now), Some(Duration::ZERO), "the pause is over");
    }
}
