//! The gate's end of the lanes: complete requests wait in a fair order, go down pipelined, and complete responses come back
//! in order.
//!
//! Addresses take turns, however many requests each has. Requests wait in four queues, by the size that their response is
//! expected to have: otherwise a small one would wait for the large ones of thousands of addresses. One that takes long fills
//! its lane. A lane stays connected. If it breaks off, the service ends.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::net;

use mio::net::UnixStream;
use mio::{Interest, Registry, Token};

use crate::client::{ClientState, Shared};
use crate::connections::{ClientId, Connections, Turns};
use crate::lane::{LaneKind, LaneRequest, LaneResponse, NO_TICKET, Ticket};
use petstore_base::http::Size;

/// The most bytes of requests in a lane at once, which bounds its memory and the wait of later requests. A single
/// request may exceed it.
const WINDOW_BYTES: usize = 256 * 1024;
/// The bytes to read from a lane at once. A buffer that had to grow for a larger response shrinks to this again.
const READ_BYTES: usize = 256 * 1024;
/// The number of smaller requests that go ahead of a larger one, while both wait.
const SMALLER_AHEAD: usize = 8;

/// All lanes, and the requests that wait for them.
pub struct Dispatcher {
    pub lanes: Vec<Lane>,
    /// By [`LaneKind`].
    pub waiting: [FairQueue; 2],
    size: fn(&[u8]) -> Size,
}

impl Dispatcher {
    /// `size`: that of the response to a read, by its method and target with a space between.
    pub fn new(lanes: Vec<Lane>, size: fn(&[u8]) -> Size) -> Self {
        Self {
            lanes,
            waiting: Default::default(),
            size,
        }
    }

    /// Queues a client's request.
    pub fn queue(
        &mut self,
        slot: usize,
        kind: LaneKind,
        connections: &mut Connections,
        shared: &Shared,
    ) {
        let waiting = &mut self.waiting[kind as usize];
        // Each connection has at most one request waiting, so at least half belong to closed connections.
        if waiting.len() >= 2 * connections.max {
            waiting.retain(|id| connections.get_mut(id).is_some());
        }
        let Some(connection) = connections.open.get_mut(slot) else {
            return;
        };
        connection.client.enter(ClientState::Waiting, shared);
        let size = match kind {
            LaneKind::Read => (self.size)(connection.client.request.line()),
            LaneKind::Write => Size::Small,
        };
        // Each connection of an exempt address has turns of its own.
        let mut of_connection = Turns::default();
        let turns = if connection.is_exempt {
            &mut of_connection
        } else {
            &mut connections.addresses.known[connection.address_index].turns[kind as usize]
        };
        waiting.push(
            turns,
            size,
            ClientId {
                slot,
                serial: connection.serial,
            },
        );
    }

    /// Moves queued requests to the lanes, as long as these accept more.
    pub fn dispatch(&mut self, connections: &mut Connections, shared: &Shared) {
        for kind in [LaneKind::Read, LaneKind::Write] {
            let waiting = &mut self.waiting[kind as usize];
            while let Some((id, is_long)) = waiting.peek() {
                let connection = connections
                    .open
                    .get_mut(id.slot)
                    .filter(|c| c.serial == id.serial);
                let Some(connection) =
                    connection.filter(|c| c.client.state() == ClientState::Waiting)
                else {
                    // By now the connection is closed, or has its response.
                    waiting.pop();
                    continue;
                };
                let client = &mut connection.client;
                let bytes = if is_long {
                    WINDOW_BYTES
                } else {
                    client.request.len()
                };
                let free = self
                    .lanes
                    .iter_mut()
                    .filter(|lane| lane.kind == kind && lane.has_capacity(bytes));
                let Some(lane) = free.min_by_key(|lane| lane.load()) else {
                    break;
                };
                waiting.pop();
                lane.push(id, client.id(), &client.request, bytes);
                client.go_inside(kind, shared);
                connection.count_held(&mut connections.held);
            }
        }
    }

    /// Sends the requests of this round, with one write per lane.
    ///
    /// # Errors
    /// If a lane has broken off.
    pub fn flush(&mut self, registry: &Registry) -> io::Result<()> {
        self.lanes
            .iter_mut()
            .try_for_each(|lane| lane.flush(registry))
    }
}

/// The waiting requests of one kind of lane, by [`Size`].
#[derive(Default)]
pub struct FairQueue([SizeQueue; 4]);

/// Requests of one size.
#[derive(Default)]
struct SizeQueue {
    /// Turn and client; the least is next.
    requests: BinaryHeap<Reverse<(u64, ClientId)>>,
    /// The turn of the last request that was removed. New requests have later turns, so none waits for ever.
    turn: u64,
    /// The number of smaller requests that have gone ahead of the next one.
    ahead: usize,
}

impl FairQueue {
    /// Adds a request. The caller bounds their number. `turns`: those of the client's address.
    pub fn push(&mut self, turns: &mut Turns, size: Size, client: ClientId) {
        let queue = &mut self.0[size as usize];
        let next = &mut turns[size as usize];
        let turn = (*next).max(queue.turn + 1);
        *next = turn + 1;
        queue.requests.push(Reverse((turn, client)));
    }

    /// The next request, and whether it is a [`Size::Long`] one, without removing it.
    pub fn peek(&self) -> Option<(ClientId, bool)> {
        let size = self.next_size()?;
        let Reverse((_, client)) = self.0[size].requests.peek()?;
        Some((*client, size == Size::Long as usize))
    }

    /// The size of the next request: the smallest in the queue, unless a larger one has waited for [`SMALLER_AHEAD`].
    fn next_size(&self) -> Option<usize> {
        let mut waiting = (0..self.0.len()).filter(|size| !self.0[*size].requests.is_empty());
        let smallest = waiting.next()?;
        Some(
            waiting
                .rfind(|size| self.0[*size].ahead >= SMALLER_AHEAD)
                .unwrap_or(smallest),
        )
    }

    /// Removes the next request.
    pub fn pop(&mut self) -> Option<ClientId> {
        let size = self.next_size()?;
        for larger in &mut self.0[size + 1..] {
            larger.ahead = if larger.requests.is_empty() {
                0
            } else {
                larger.ahead + 1
            };
        }
        let queue = &mut self.0[size];
        let Reverse((turn, client)) = queue.requests.pop()?;
        queue.turn = turn;
        queue.ahead = 0;
        Some(client)
    }

    /// Removes the requests of closed connections. It visits all requests.
    pub fn retain(&mut self, mut is_here: impl FnMut(ClientId) -> bool) {
        for queue in &mut self.0 {
            queue
                .requests
                .retain(|Reverse((_, client))| is_here(*client));
        }
    }

    /// The number of waiting requests.
    pub fn len(&self) -> usize {
        self.0.iter().map(|queue| queue.requests.len()).sum()
    }
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
    /// The client of each request inside, and what it takes of the window, in the order sent.
    inside: VecDeque<(ClientId, usize)>,
    /// What the requests inside take of the window.
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

    /// Adds a complete request with a ticket that its response will carry; [`Lane::flush`] sends it. It takes `bytes` of the
    /// window.
    pub fn push(&mut self, client: ClientId, id: &[u8], request: &LaneRequest, bytes: usize) {
        request.write(self.next, id, &mut self.out);
        self.next += 1;
        self.bytes += bytes;
        self.inside.push_back((client, bytes));
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
mod fair_queue_tests;
#[cfg(test)]
pub mod tests;
