//! The gate's end of a lane: complete requests go down pipelined, complete responses come back in order.
//!
//! A lane stays connected. If it breaks off, the service ends.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net;

use mio::net::UnixStream;
use mio::{Interest, Registry, Token};

use crate::net::lane::{LaneKind, LaneRequest, LaneResponse, NO_TICKET, Ticket};

/// The most bytes of requests in a lane at once, so that its memory stays bounded and later requests do not wait for
/// long. A single request may exceed it.
const WINDOW_BYTES: usize = 256 * 1024;
/// The size above which an empty buffer of a lane is freed.
pub const KEEP_BYTES: usize = 256 * 1024;

/// The client of a request. Its slot may belong to another client by the time the response comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientId {
    pub slot: usize,
    pub serial: u64,
}

/// A lane that is not yet watched.
#[derive(Debug)]
pub struct OpenLane {
    /// The connection to its server.
    pub stream: net::UnixStream,
    pub kind: LaneKind,
    /// The most requests in it at once.
    pub window: usize,
}

/// A lane's connection, and the requests on it.
pub struct Lane {
    pub kind: LaneKind,
    window: usize,
    token: Token,
    stream: UnixStream,
    /// The clients of the requests inside, in the order sent, and how many bytes each request has.
    inside: VecDeque<(ClientId, usize)>,
    /// The bytes of the requests inside.
    bytes: usize,
    /// The ticket of the next request.
    next: Ticket,
    /// Bytes for the server, and how many of them have been sent.
    out: Vec<u8>,
    sent: usize,
    /// Whether the server accepts no more bytes for now. Only then is the gate woken when it does again.
    is_full: bool,
    /// Bytes from the server that are not a complete response yet.
    pub input: Vec<u8>,
}

impl Lane {
    /// Watches a lane.
    ///
    /// # Errors
    /// If the system cannot watch it.
    pub fn new(open: OpenLane, token: Token, registry: &Registry) -> io::Result<Self> {
        let OpenLane { stream, kind, window } = open;
        stream.set_nonblocking(true)?;
        let mut stream = UnixStream::from_std(stream);
        registry.register(&mut stream, token, Interest::READABLE)?;
        Ok(Self {
            kind,
            window,
            token,
            stream,
            inside: VecDeque::new(),
            bytes: 0,
            next: NO_TICKET + 1,
            out: Vec::new(),
            sent: 0,
            is_full: false,
            input: Vec::new(),
        })
    }

    /// How many requests are inside; the least busy lane of a kind gets the next.
    pub fn load(&self) -> usize {
        self.inside.len()
    }

    /// Whether there is room for a request with this many bytes.
    pub fn has_capacity(&self, bytes: usize) -> bool {
        let has_turn = self.inside.len() < self.window;
        has_turn && !self.is_full && (self.bytes == 0 || self.bytes + bytes <= WINDOW_BYTES)
    }

    /// Adds a complete request with a ticket that its response will carry; [`Lane::flush`] sends it.
    pub fn push(&mut self, client: ClientId, id: &[u8], request: &LaneRequest) {
        request.write(self.next, id, &mut self.out);
        self.next += 1;
        self.bytes += request.len();
        self.inside.push_back((client, request.len()));
    }

    /// Sends what the server accepts without blocking.
    ///
    /// # Errors
    /// If the connection has failed.
    pub fn flush(&mut self, registry: &Registry) -> io::Result<()> {
        let was_full = std::mem::take(&mut self.is_full);
        while self.sent < self.out.len() && !self.is_full {
            match self.stream.write(&self.out[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_full = true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.is_full != was_full {
            let writable = self.is_full.then_some(Interest::WRITABLE);
            let interest = writable.map_or(Interest::READABLE, |writable| Interest::READABLE | writable);
            registry.reregister(&mut self.stream, self.token, interest)?;
        }
        if !self.is_full {
            // While the socket is full nothing more is added, so the buffer does not grow before it gets
            // here.
            self.out.clear();
            self.out.shrink_to(KEEP_BYTES);
            self.sent = 0;
        }
        Ok(())
    }

    /// Reads some of what the server has sent into `scratch`: how many bytes, and whether there may be more. The
    /// responses are found with [`Lane::next_response`].
    ///
    /// # Errors
    /// If the connection has failed or ended.
    pub fn receive(&mut self, scratch: &mut [u8], is_ending: bool) -> io::Result<(usize, bool)> {
        match self.stream.read(scratch) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            // A short read: nothing is left, and later bytes cause another event. But the event of an end
            // that came along has already been used.
            Ok(count) => Ok((count, is_ending || count == scratch.len())),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok((0, false)),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok((0, true)),
            Err(error) => Err(error),
        }
    }

    /// The complete response at the start of `input`, and its client; `None` if it is incomplete.
    ///
    /// # Errors
    /// If the bytes are not a response, or not the one to the next request.
    pub fn next_response<'a>(&mut self, input: &'a [u8]) -> io::Result<Option<(ClientId, LaneResponse<'a>)>> {
        let expected = self.next - self.inside.len() as Ticket;
        let Some(response) = LaneResponse::read(input)? else { return Ok(None) };
        if response.ticket != expected {
            return Err(ErrorKind::InvalidData.into());
        }
        let (client, bytes) = self.inside.pop_front().ok_or(ErrorKind::InvalidData)?;
        self.bytes -= bytes;
        Ok(Some((client, response)))
    }
}

#[cfg(test)]
pub mod tests;
