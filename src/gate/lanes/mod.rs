//! The gate's end of a lane: complete requests go down pipelined, complete responses come back in order.
//!
//! A lane stays connected. If it breaks off, the service ends.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net;

use mio::net::UnixStream;
use mio::{Interest, Registry, Token};

use crate::lane::{LaneKind, LaneRequest, LaneResponse, NO_TICKET, Ticket};

/// The most bytes of requests in a lane at once, which bounds its memory and the wait of later requests. A single
/// request may exceed it.
const WINDOW_BYTES: usize = 256 * 1024;
/// The bytes to read from a lane at once. A buffer that had to grow for a larger response shrinks to this again.
const READ_BYTES: usize = 256 * 1024;

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
    /// The requests that it takes.
    pub kind: LaneKind,
    /// The most requests in the lane at once.
    pub window: usize,
}

/// A lane's connection, and the requests on it.
pub struct Lane {
    pub kind: LaneKind,
    window: usize,
    token: Token,
    stream: UnixStream,
    /// The client and the length of each request inside, in the order sent.
    inside: VecDeque<(ClientId, usize)>,
    /// The bytes of the requests inside.
    bytes: usize,
    /// The ticket of the next request.
    next: Ticket,
    /// Bytes for the server, and the number of those sent.
    out: Vec<u8>,
    sent: usize,
    /// The server accepts no more bytes for now. Only then the gate waits for the event that it does again.
    is_full: bool,
    /// The buffer for bytes from the server, and the number of those not delivered yet.
    input: Vec<u8>,
    filled: usize,
}

impl Lane {
    /// Watches a lane.
    ///
    /// # Errors
    /// If the system cannot watch it.
    pub fn new(open: OpenLane, token: Token, registry: &Registry) -> io::Result<Self> {
        let OpenLane {
            stream,
            kind,
            window,
        } = open;
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
            input: vec![0; READ_BYTES],
            filled: 0,
        })
    }

    /// The number of requests inside. The least busy lane of a kind gets the next.
    pub fn load(&self) -> usize {
        self.inside.len()
    }

    /// Returns whether a request of this length fits into the window.
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

    /// Sends the bytes that the server accepts without blocking.
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
            let interest =
                writable.map_or(Interest::READABLE, |writable| Interest::READABLE | writable);
            registry.reregister(&mut self.stream, self.token, interest)?;
        }
        if !self.is_full {
            // A full lane gets no more requests, so the buffer does not grow meanwhile.
            self.out.clear();
            self.sent = 0;
        }
        Ok(())
    }

    /// Reads once, and passes each complete response to `deliver`. Returns whether there may be more to read. `is_ending`:
    /// the lane's last bytes came together with its end.
    ///
    /// # Errors
    /// If the connection has failed or ended, or the bytes are not the responses to the requests.
    pub fn receive(
        &mut self,
        is_ending: bool,
        mut deliver: impl FnMut(ClientId, &LaneResponse),
    ) -> io::Result<bool> {
        if self.filled == self.input.len() {
            self.input.resize(2 * self.filled, 0);
        }
        let count = match self.stream.read(&mut self.input[self.filled..]) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => count,
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => return Ok(true),
            Err(error) => return Err(error),
        };
        self.filled += count;
        // After a short read nothing is left, and later bytes cause another event. An end that came along has none.
        let has_more = is_ending || self.filled == self.input.len();
        let mut input = std::mem::take(&mut self.input);
        let end = std::mem::take(&mut self.filled);
        let mut rest = &input[..end];
        while !rest.is_empty()
            && let Some((client, response)) = self.next_response(rest)?
        {
            deliver(client, &response);
            rest = &rest[response.length..];
        }
        self.filled = rest.len();
        input.copy_within(end - self.filled..end, 0);
        if self.filled < READ_BYTES {
            input.truncate(READ_BYTES);
            input.shrink_to_fit();
        }
        self.input = input;
        Ok(has_more)
    }

    /// The complete response at the start of `input`, and its client; `None` if it is incomplete.
    ///
    /// # Errors
    /// If the bytes are not a response, or not the one to the next request.
    fn next_response<'a>(
        &mut self,
        input: &'a [u8],
    ) -> io::Result<Option<(ClientId, LaneResponse<'a>)>> {
        let expected = self.next - self.inside.len() as Ticket;
        let Some(response) = LaneResponse::read(input)? else {
            return Ok(None);
        };
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
