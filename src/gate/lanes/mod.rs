//! The gate's end of a lane: complete requests go down pipelined, complete responses come back in order.
//!
//! ```text
//!            connected             the greeting comes back
//!   Closed ────────────▶ Greeting ─────────────────────────▶ Open
//!     ▲                     │ broken off, too late             │ broken off
//!     └─────────────────────┴───────────────────────────────────┘
//! ```
//!
//! The greeting is the gate's own request. Only when its response has come back does the lane get requests of
//! clients.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::path::PathBuf;
use std::time::Instant;

use mio::net::UnixStream;
use mio::{Interest, Registry, Token};

use crate::lane::{LaneKind, LaneRequest, LaneResponse, Malformed, Ticket};

/// The most bytes of requests in a lane at once, so that its memory stays bounded and later requests do not wait for
/// long. A single request may exceed it.
const WINDOW_BYTES: usize = 256 * 1024;
/// The size above which an empty buffer of a lane is freed.
const KEEP_BYTES: usize = 256 * 1024;

/// The client of a request. Its slot may belong to another client by the time the response comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientId {
    pub slot: usize,
    pub serial: u64,
}

/// What the gate must know to connect a lane.
#[derive(Clone, Debug)]
pub struct LaneAddress {
    /// The socket of its server.
    pub path: PathBuf,
    pub kind: LaneKind,
    /// The most requests in it at once.
    pub window: usize,
}

/// A request inside a lane.
#[derive(Clone, Copy)]
struct Sent {
    /// `None`: the greeting.
    client: Option<ClientId>,
    bytes: usize,
}

/// A lane's connection, and the requests on it.
pub struct Lane {
    pub address: LaneAddress,
    token: Token,
    /// `None` if it is closed.
    stream: Option<UnixStream>,
    /// Since when it takes no requests: it is closed, or its greeting has not come back. `None` if it is open.
    pub shut_since: Option<Instant>,
    /// The requests inside, in the order sent.
    inside: VecDeque<Sent>,
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
    input: Vec<u8>,
}

impl Lane {
    /// A lane that is not connected yet.
    pub fn new(address: LaneAddress, token: Token, now: Instant) -> Self {
        Self {
            address,
            token,
            stream: None,
            shut_since: Some(now),
            inside: VecDeque::new(),
            bytes: 0,
            next: Ticket::default(),
            out: Vec::new(),
            sent: 0,
            is_full: false,
            input: Vec::new(),
        }
    }

    /// Connects a closed lane and sends the greeting; does nothing if it is connected.
    ///
    /// # Errors
    /// If its server cannot be reached.
    pub fn connect(&mut self, registry: &Registry) -> io::Result<()> {
        if self.stream.is_some() {
            return Ok(());
        }
        let mut stream = UnixStream::connect(&self.address.path)?;
        registry.register(&mut stream, self.token, Interest::READABLE)?;
        self.stream = Some(stream);
        self.next = Ticket { epoch: self.next.epoch + 1, place: 0 };
        self.is_full = false;
        // `OPTIONS *`, which every service answers.
        let mut greeting = LaneRequest::default();
        greeting.begin(b"OPTIONS", [b"*", b""], 0);
        greeting.end_head();
        self.push(None, b"greeting", &greeting);
        self.flush(registry)
    }

    /// The kind of lane, in words.
    pub fn kind(&self) -> &'static str {
        match self.address.kind {
            LaneKind::Read => "reading",
            LaneKind::Write => "writing",
        }
    }

    pub fn is_open(&self) -> bool {
        self.shut_since.is_none()
    }

    /// How many requests are inside; the least busy lane of a kind gets the next.
    pub fn load(&self) -> usize {
        self.inside.len()
    }

    /// Whether there is room for a request with this many bytes.
    pub fn has_room(&self, bytes: usize) -> bool {
        let has_turn = self.inside.len() < self.address.window;
        self.is_open() && has_turn && !self.is_full && (self.bytes == 0 || self.bytes + bytes <= WINDOW_BYTES)
    }

    /// Adds a complete request with a ticket that its response will carry; [`Lane::flush`] sends it.
    pub fn push(&mut self, client: Option<ClientId>, id: &[u8], request: &LaneRequest) {
        request.write(self.next, id, &mut self.out);
        self.next.place += 1;
        self.bytes += request.len();
        self.inside.push_back(Sent { client, bytes: request.len() });
    }

    /// Sends what the server accepts without blocking.
    ///
    /// # Errors
    /// If the connection has failed.
    pub fn flush(&mut self, registry: &Registry) -> io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let was_full = std::mem::take(&mut self.is_full);
        while self.sent < self.out.len() && !self.is_full {
            match stream.write(&self.out[self.sent..]) {
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
            registry.reregister(stream, self.token, interest)?;
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
        let Some(stream) = &mut self.stream else { return Ok((0, false)) };
        match stream.read(scratch) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            // A short read: nothing is left, and later bytes cause another event. But the event of an end
            // that came along has already been used.
            Ok(count) => Ok((count, is_ending || count == scratch.len())),
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok((0, false)),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok((0, true)),
            Err(error) => Err(error),
        }
    }

    /// Returns the bytes that were kept because they were not a complete response.
    pub fn take_input(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.input)
    }

    /// Keeps bytes that are not a complete response yet.
    pub fn keep_input(&mut self, mut input: Vec<u8>) {
        if self.stream.is_some() {
            input.shrink_to(KEEP_BYTES);
            self.input = input;
        }
    }

    /// The complete response at the start of `input`, and its client; `None` if it is incomplete.
    ///
    /// # Errors
    /// If the bytes are not a response, or not the one to the next request.
    pub fn next_response<'a>(
        &mut self,
        input: &'a [u8],
    ) -> Result<Option<(Option<ClientId>, LaneResponse<'a>)>, Malformed> {
        if input.is_empty() {
            return Ok(None);
        }
        if !(Ticket { place: self.next.place - self.inside.len() as u64, ..self.next }).begins(input) {
            return Err(Malformed);
        }
        let Some(response) = LaneResponse::read(input)? else { return Ok(None) };
        let sent = self.inside.pop_front().ok_or(Malformed)?;
        self.bytes -= sent.bytes;
        if sent.client.is_none() {
            self.shut_since = None;
        }
        Ok(Some((sent.client, response)))
    }

    /// Drops the connection, and returns the clients whose requests were on it.
    pub fn fail(&mut self, now: Instant) -> Vec<ClientId> {
        // Dropping the stream also removes it from the registry. A lane that breaks during the greeting has
        // been shut for longer.
        self.stream = None;
        self.shut_since.get_or_insert(now);
        self.out = Vec::new();
        self.sent = 0;
        self.input = Vec::new();
        self.bytes = 0;
        std::mem::take(&mut self.inside).into_iter().filter_map(|sent| sent.client).collect()
    }
}

#[cfg(test)]
mod astray_tests;
#[cfg(test)]
pub mod tests;
