//! The gate: one thread on readiness events between all clients and the lanes.
//!
//! It knows HTTP's framing, deadlines and bounds, and nothing of routes, pets, SQL or keys. What it
//! must decide about one client stands in [`client`], without a socket; this file moves the bytes.

mod body;
mod client;
mod head;
mod lane;
mod listener;
mod queue;
mod reader;
mod reply;
mod request_id;
mod target;

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token, Waker};
use slab::Slab;

use crate::config::Deadlines;
use crate::error::{ApiError, Code};
use client::{Client, Shared, State};
use lane::{Lane, Ticket};
use listener::Listener;
use queue::Queue;
use reply::GeneralFields;
use request_id::RequestIds;

pub use head::Kind;
pub use lane::LaneAddress;

/// How often deadlines are looked at, while there are clients.
const TICK: Duration = Duration::from_millis(250);
/// Clients let in before the others are looked after again.
const MAX_ACCEPTS: usize = 512;
/// Bytes read from a client at once.
const READ_BYTES: usize = 16 * 1024;
/// Bytes read from a lane at once.
const LANE_READ_BYTES: usize = 256 * 1024;
/// The most bytes held of unfinished requests, and of replies not yet taken.
const MAX_HELD: usize = 64 * 1024 * 1024;

const WAKER: Token = Token(0);
const LISTENER: Token = Token(1);
const FIRST_LANE: usize = 2;

/// What the gate is to do.
pub struct Settings {
    /// Clients who are served at once.
    pub max_connections: usize,
    /// Further ones who are told at once that there is no room; those beyond are closed without a word.
    pub max_refused: usize,
    pub deadlines: Deadlines,
    pub lanes: Vec<LaneAddress>,
}

/// Tells a running gate to end.
#[derive(Clone)]
pub struct Stopper {
    stopping: Arc<AtomicBool>,
    waker: Arc<Waker>,
}

impl Stopper {
    /// Starts the drain.
    pub fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        if let Err(error) = self.waker.wake() {
            log::error!("cannot wake the gate: {error}");
        }
    }
}

/// A client and its socket.
struct Connection {
    stream: TcpStream,
    client: Client,
    /// Tells this client from others that had the slot before.
    serial: u64,
    /// Whether reading or writing may get on: set by events, cleared by the operating system's word.
    readable: bool,
    writable: bool,
    /// Whether the client has ended its side, so that even a short read is followed by an end.
    read_closed: bool,
    /// Whether our side is ended.
    shut: bool,
    /// What is counted in [`Held`] for it.
    held: (usize, usize),
}

/// Bytes held for all clients.
#[derive(Default)]
struct Held {
    requests: usize,
    replies: usize,
}

/// The gate's one thread.
pub struct Gate {
    poll: Poll,
    listener: Option<Listener>,
    connections: Slab<Connection>,
    max_connections: usize,
    max_refused: usize,
    serial: u64,
    lanes: Vec<Lane>,
    reads: Queue,
    writes: Queue,
    shared: Shared,
    held: Held,
    stopping: Arc<AtomicBool>,
    next_tick: Instant,
    scratch: Vec<u8>,
}

impl Gate {
    /// Binds the address and opens the lanes. Nobody is let in before [`Gate::run`].
    ///
    /// # Errors
    /// One plain line.
    pub fn new(listener: Listening, settings: Settings) -> Result<(Self, Stopper), String> {
        let cannot = |error: io::Error| format!("cannot start: {error}");
        let poll = Poll::new().map_err(cannot)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER).map_err(cannot)?);
        let mut lanes = Vec::new();
        for (i, address) in settings.lanes.into_iter().enumerate() {
            lanes.push(Lane::open(address, Token(FIRST_LANE + i), poll.registry()).map_err(cannot)?);
        }
        let listener = Listener::new(listener.0, LISTENER, poll.registry()).map_err(cannot)?;
        let stopping = Arc::new(AtomicBool::new(false));
        let now = Instant::now();
        let gate = Self {
            poll,
            listener: Some(listener),
            connections: Slab::new(),
            max_connections: settings.max_connections,
            max_refused: settings.max_refused,
            serial: 0,
            lanes,
            reads: Queue::default(),
            writes: Queue::default(),
            shared: Shared {
                now,
                deadlines: settings.deadlines,
                ids: RequestIds::new(),
                general: GeneralFields::new(),
                draining: false,
            },
            held: Held::default(),
            stopping: Arc::clone(&stopping),
            next_tick: now,
            scratch: vec![0; LANE_READ_BYTES],
        };
        Ok((gate, Stopper { stopping, waker }))
    }

    /// Serves until it is stopped, and then until what was begun is finished.
    pub fn run(mut self) {
        let mut events = Events::with_capacity(1024);
        let mut drained_by = None;
        loop {
            if self.stopping.load(Ordering::SeqCst) && !self.shared.draining {
                drained_by = Some(Instant::now() + self.shared.deadlines.drain);
                self.begin_drain();
            }
            if let Some(end) = drained_by {
                if self.connections.is_empty() {
                    return;
                }
                if self.shared.now >= end {
                    log::warn!("ended with {} connections unfinished", self.connections.len());
                    return;
                }
            }
            let timeout = self.timeout();
            if let Err(error) = self.poll.poll(&mut events, timeout)
                && error.kind() != ErrorKind::Interrupted
            {
                // Nothing that a running service does leads here; a pause keeps the log readable.
                log::error!("cannot wait for events: {error}");
                std::thread::sleep(TICK);
            }
            self.shared.now = Instant::now();
            self.shared.general.refresh(SystemTime::now());
            for event in &events {
                match event.token() {
                    WAKER => {}
                    LISTENER => {
                        if let Some(listener) = &mut self.listener {
                            listener.is_ready = true;
                        }
                    }
                    Token(token) if token < FIRST_LANE + self.lanes.len() => {
                        self.serve_lane(token - FIRST_LANE);
                    }
                    Token(token) => self.note_event(token - FIRST_LANE - self.lanes.len(), event),
                }
            }
            self.accept();
            self.dispatch();
            self.tick();
            self.flush_lanes();
        }
    }

    /// How long to wait for events.
    fn timeout(&self) -> Option<Duration> {
        let now = Instant::now();
        let is_idle = self.connections.is_empty() && self.lanes.iter().all(Lane::is_open);
        let tick = (!is_idle).then(|| self.next_tick.saturating_duration_since(now));
        let accept = self.listener.as_ref().and_then(|listener| listener.next_try(now));
        [tick, accept].into_iter().flatten().min()
    }

    /// Lets in who waits outside.
    fn accept(&mut self) {
        for _ in 0..MAX_ACCEPTS {
            let Some(listener) = &mut self.listener else { return };
            match listener.accept(self.shared.now) {
                listener::Accepted::Client(stream, peer) => self.let_in(stream, peer),
                listener::Accepted::Nobody => return,
                listener::Accepted::NoResources => self.close_longest_idle(),
            }
        }
    }

    fn let_in(&mut self, mut stream: TcpStream, peer: SocketAddr) {
        if self.connections.len() >= self.max_connections + self.max_refused {
            return;
        }
        // A reply is one write; Nagle's algorithm would hold back the end of a large one.
        let _ = stream.set_nodelay(true);
        let entry = self.connections.vacant_entry();
        let slot = entry.key();
        let token = Token(FIRST_LANE + self.lanes.len() + slot);
        if let Err(error) =
            self.poll.registry().register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)
        {
            log::error!("cannot watch a connection: {error}");
            return;
        }
        self.serial += 1;
        entry.insert(Connection {
            stream,
            client: Client::new(peer, &self.shared),
            serial: self.serial,
            readable: false,
            writable: true,
            read_closed: false,
            shut: false,
            held: (0, 0),
        });
        if self.connections.len() > self.max_connections {
            let message = "The service has as many connections as it takes; try again in a moment.";
            self.connections[slot]
                .client
                .refuse(ApiError::with_message(Code::Overloaded, message), &mut self.shared);
            self.drive(slot);
        }
    }

    fn close_longest_idle(&mut self) {
        let idle = self.connections.iter().filter(|(_, c)| c.client.state() == State::Idle);
        if let Some(slot) = idle.min_by_key(|(_, c)| c.client.deadline()).map(|(slot, _)| slot) {
            self.connections[slot].client.close(&self.shared);
            self.drive(slot);
        }
    }

    fn note_event(&mut self, slot: usize, event: &mio::event::Event) {
        // Events are hints: a slot may have changed hands since, and a read or write tells the truth.
        let Some(connection) = self.connections.get_mut(slot) else { return };
        connection.readable |= event.is_readable() || event.is_error();
        connection.writable |= event.is_writable() || event.is_error();
        connection.read_closed |= event.is_read_closed();
        self.drive(slot);
    }

    /// Moves one client's bytes as far as they go without waiting.
    fn drive(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let (client, shared) = (&mut connection.client, &mut self.shared);
        loop {
            if !client.output().is_empty() && connection.writable {
                match connection.stream.write(client.output()) {
                    Ok(count) => client.take_output(count, shared),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => connection.writable = false,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => client.close(shared),
                }
                continue;
            }
            match client.state() {
                State::Closed => {
                    let connection = self.connections.remove(slot);
                    self.held.requests -= connection.held.0;
                    self.held.replies -= connection.held.1;
                    return;
                }
                State::Lingering if !connection.shut => {
                    connection.shut = true;
                    let _ = connection.stream.shutdown(Shutdown::Write);
                }
                State::Ready(kind) => {
                    let queue = match kind {
                        Kind::Read => &mut self.reads,
                        Kind::Write => &mut self.writes,
                    };
                    client.queue(shared);
                    if !queue.push(Ticket { slot, serial: connection.serial }) {
                        client.refuse(ApiError::new(Code::Overloaded), shared);
                    }
                    continue;
                }
                _ => {}
            }
            if !client.wants_input() || !connection.readable {
                break;
            }
            match connection.stream.read(&mut self.scratch[..READ_BYTES]) {
                Ok(0) => {
                    connection.readable = false;
                    client.end(shared);
                }
                Ok(count) => {
                    // Less than asked for: nothing is left, and what comes later is a further event.
                    connection.readable = count == READ_BYTES || connection.read_closed;
                    client.receive(&self.scratch[..count], shared);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => connection.readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => client.close(shared),
            }
        }
        let (before, after) = (connection.held, client.held());
        connection.held = after;
        self.held.requests = self.held.requests - before.0 + after.0;
        self.held.replies = self.held.replies - before.1 + after.1;
        if self.held.requests > MAX_HELD {
            self.refuse_largest();
        }
    }

    /// Makes room: of the requests that are still coming, the one that holds the most is refused.
    fn refuse_largest(&mut self) {
        let coming =
            self.connections.iter().filter(|(_, c)| matches!(c.client.state(), State::Head | State::Body));
        if let Some(slot) = coming.max_by_key(|(_, c)| c.held.0).map(|(slot, _)| slot) {
            self.connections[slot].client.refuse(ApiError::new(Code::Overloaded), &mut self.shared);
            self.drive(slot);
        }
    }

    /// Sends waiting requests down the lanes, as far as those have room.
    fn dispatch(&mut self) {
        for kind in [Kind::Read, Kind::Write] {
            // Replies that nobody takes hold up the requests that would make more of them.
            while self.held.replies <= MAX_HELD {
                let free = self.lanes.iter_mut().filter(|lane| lane.address.kind == kind && lane.has_room());
                let Some(lane) = free.min_by_key(|lane| lane.load()) else { break };
                let queue = match kind {
                    Kind::Read => &mut self.reads,
                    Kind::Write => &mut self.writes,
                };
                let Some(ticket) = queue.pop() else { break };
                let connection = self.connections.get_mut(ticket.slot).filter(|c| c.serial == ticket.serial);
                if let Some(connection) = connection
                    && connection.client.state() == State::Waiting
                {
                    lane.push(ticket, connection.client.request());
                    connection.client.go_inside(&self.shared);
                    self.held.requests -= connection.held.0;
                    connection.held.0 = connection.client.held().0;
                    self.held.requests += connection.held.0;
                }
            }
        }
    }

    /// Takes the answers of a lane to their clients.
    fn serve_lane(&mut self, index: usize) {
        loop {
            let received = self.lanes[index].receive(&mut self.scratch);
            let input = self.lanes[index].take_input();
            let delivered = self.deliver(index, &input);
            self.lanes[index].give_back(input, *delivered.as_ref().unwrap_or(&0));
            match received.and_then(|more| delivered.map(|_| more)) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.fail_lane(index, &error),
            }
        }
    }

    /// Takes the whole answers in `input` to their clients; returns how many bytes they were.
    fn deliver(&mut self, index: usize, input: &[u8]) -> io::Result<usize> {
        let mut consumed = 0;
        while let Some((ticket, answer, length)) = self.lanes[index]
            .next_answer(&input[consumed..])
            .map_err(|reply::Malformed| io::Error::from(ErrorKind::InvalidData))?
        {
            consumed += length;
            let Some(slot) = self.holder(ticket) else { continue };
            let connection = &mut self.connections[slot];
            if answer.is_bare_failure() {
                log::error!("a worker failed to answer; status {}", answer.status);
                connection.client.fail(ApiError::new(Code::Internal), &mut self.shared);
            } else {
                connection.client.answer(&answer, &mut self.shared);
            }
            self.drive(slot);
        }
        Ok(consumed)
    }

    /// The slot of the client who still waits for the answer to this ticket.
    fn holder(&self, ticket: Ticket) -> Option<usize> {
        let connection = self.connections.get(ticket.slot)?;
        (connection.serial == ticket.serial && connection.client.state() == State::Inside)
            .then_some(ticket.slot)
    }

    /// Sends the requests that this round has brought, those of a lane in one write.
    fn flush_lanes(&mut self) {
        for index in 0..self.lanes.len() {
            if let Err(error) = self.lanes[index].flush() {
                self.fail_lane(index, &error);
            }
        }
    }

    /// Answers for a lane that broke off, and opens it anew.
    fn fail_lane(&mut self, index: usize, error: &io::Error) {
        let tickets = self.lanes[index].fail();
        log::error!("lane {index} failed with {} requests on it: {error}", tickets.len());
        for ticket in tickets {
            if let Some(slot) = self.holder(ticket) {
                self.connections[slot].client.fail(ApiError::new(Code::Overloaded), &mut self.shared);
                self.drive(slot);
            }
        }
        self.reopen_lanes();
    }

    fn reopen_lanes(&mut self) {
        for (index, lane) in self.lanes.iter_mut().enumerate().filter(|(_, lane)| !lane.is_open()) {
            match lane.reopen(self.poll.registry()) {
                Ok(()) => log::warn!("lane {index} is open again"),
                Err(error) => log::error!("cannot open lane {index} again: {error}"),
            }
        }
    }

    /// Looks at the deadlines, when it is time to.
    fn tick(&mut self) {
        let now = self.shared.now;
        if now < self.next_tick {
            return;
        }
        self.next_tick = now + TICK;
        let is_late = |c: &Connection| c.client.deadline().is_some_and(|deadline| deadline <= now);
        let late: Vec<usize> =
            self.connections.iter().filter(|(_, c)| is_late(c)).map(|(slot, _)| slot).collect();
        for slot in late {
            if let Some(connection) = self.connections.get_mut(slot) {
                connection.client.expire(&mut self.shared);
                self.drive(slot);
            }
        }
        self.reopen_lanes();
    }

    /// Lets nobody in any more, and closes who has nothing under way.
    fn begin_drain(&mut self) {
        self.shared.now = Instant::now();
        // Who is connected already was let in, as far as its side can tell.
        if let Some(listener) = &mut self.listener {
            listener.is_ready = true;
        }
        self.accept();
        self.listener = None;
        self.shared.draining = true;
        let slots: Vec<usize> = self.connections.iter().map(|(slot, _)| slot).collect();
        for slot in slots {
            // What has been sent is begun, even where its event has not been seen yet.
            self.connections[slot].readable = true;
            self.drive(slot);
            if let Some(connection) = self.connections.get_mut(slot)
                && connection.client.state() == State::Idle
            {
                connection.client.close(&self.shared);
                self.drive(slot);
            }
        }
    }
}

/// An address that is bound and not yet served.
pub struct Listening(mio::net::TcpListener);

impl Listening {
    /// Binds the address, so that clients can connect; they are let in once a gate runs.
    ///
    /// # Errors
    /// One plain line that names the address.
    pub fn bind(address: SocketAddr) -> Result<Self, String> {
        let say = |error: io::Error| match error.kind() {
            ErrorKind::AddrInUse => format!("cannot listen on {address}: the address is in use"),
            _ => format!("cannot listen on {address}: {error}"),
        };
        mio::net::TcpListener::bind(address).map(Self).map_err(say)
    }

    /// The address with the port that was taken.
    ///
    /// # Errors
    /// One plain line.
    pub fn address(&self) -> Result<SocketAddr, String> {
        self.0.local_addr().map_err(|error| format!("cannot tell the address: {error}"))
    }
}
