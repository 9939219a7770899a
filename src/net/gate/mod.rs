//! The gate: one thread on readiness events between all clients and the lanes.
//!
//! It knows HTTP's framing, deadlines and bounds, and nothing of routes, pets, SQL or keys. [`client`]
//! decides about one client, without a socket. This file has the loop; [`connections`] and [`lanes`] move the
//! bytes on either side of it.

mod addresses;
mod client;
mod connections;
mod dispatcher;
mod eviction;
#[cfg(all(any(test, fuzzing), feature = "site"))]
pub mod fuzz_tests;
mod health_check;
mod lanes;
mod listening;
mod memory;
mod shutdown;
mod socket_file;
mod stopper;
#[cfg(any(test, fuzzing))]
mod strict_tests;
mod trusted_proxies;
mod wire;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};
use std::io;
use std::time::{Duration, Instant, SystemTime};

use mio::{Events, Poll, Token, Waker};
use slab::Slab;

use crate::base::config::Deadlines;
use crate::base::error::Error;
use crate::base::http::Size;
use crate::base::metrics::{Levels, Metrics};
use crate::base::quiet_log::QuietLog;
use crate::net::lane::LaneKind;
use addresses::Addresses;
use client::Shared;
use connections::{Connection, MAX_ACCEPTS, READ_BYTES};
use dispatcher::Waiting;
use eviction::Picked;
use lanes::{ClientId, Lane};
use memory::Memory;
use wire::cors::ASKED;
use wire::response_head::GeneralFields;

pub use health_check::HealthCheck;
pub use lanes::OpenLane;
pub use listening::Listening;
pub use stopper::Stopper;
pub use trusted_proxies::TrustedProxies;
pub use wire::cors::Origins;
pub use wire::head::Intake;

/// The events to handle before everything else gets a turn.
const EVENTS: usize = 256;
/// How often to check deadlines while there are clients.
const TICK: Duration = Duration::from_millis(100);
/// The bytes to read from a lane at once.
const LANE_READ_BYTES: usize = 256 * 1024;

const WAKER: Token = Token(0);
const LISTENER: Token = Token(1);
const FIRST_LANE: usize = 2;

/// The configuration of the gate.
pub struct GateConfig {
    /// The most clients at once.
    pub max_connections: usize,
    /// The most bytes held for all clients together, without the lanes, which have their own bound.
    pub client_memory: usize,
    pub deadlines: Deadlines,
    pub lanes: Vec<OpenLane>,
    pub intake: Intake,
    /// The size of the response to a read, by its method and target with a space between.
    pub size: fn(&[u8]) -> Size,
    /// How long to hold back the response to a request, by its method and target with a space between; usually `None`.
    pub delay: Option<Delay>,
    pub metrics: Metrics,
}

/// Draws how long the next response is held back.
pub type Delay = Box<dyn FnMut(&[u8]) -> Duration + Send>;

/// The gate's one thread.
pub struct Gate {
    poll: Poll,
    listening: Option<Listening>,
    connections: Slab<Connection>,
    max_connections: usize,
    /// How many connections are the service's own. They do not count as clients.
    own: usize,
    serial: u64,
    lanes: Vec<Lane>,
    /// The requests that wait for a lane, by [`LaneKind`].
    waiting: [Waiting; 2],
    size: fn(&[u8]) -> Size,
    delay: Option<Delay>,
    /// The clients whose response is held back, by when it is due.
    held_back: BinaryHeap<Reverse<(Instant, ClientId)>>,
    shared: Shared,
    addresses: Addresses,
    /// The bytes held for all clients together, without those in lanes, and the most that may be.
    held: usize,
    max_held: usize,
    /// The connections that make room next, found at the last tick or later.
    picked: Vec<Picked>,
    /// Clients that have sent more than was read in their turn.
    unread: VecDeque<ClientId>,
    memory: Memory,
    stopper: Stopper,
    /// Whether the clients have been told that the service cannot go on.
    has_failed: bool,
    /// When the service ends at the latest, even with requests unfinished.
    end_by: Option<Instant>,
    troubles: QuietLog,
    next_tick: Instant,
    /// Whether the last tick found nobody, and told the metrics so.
    was_empty: bool,
    /// The buffers for reading from clients and lanes.
    scratch: Vec<u8>,
    lane_scratch: Vec<u8>,
}

impl Gate {
    /// Watches the lanes. No client is accepted before [`Gate::run`].
    ///
    /// # Errors
    /// One plain line.
    pub fn new(mut listening: Listening, mut config: GateConfig, stopper: Stopper) -> Result<Self, Error> {
        let cannot = |error| Error::io("cannot start", error);
        let poll = Poll::new().map_err(cannot)?;
        stopper.attach(Waker::new(poll.registry(), WAKER).map_err(cannot)?);
        let now = Instant::now();
        let lane = |(i, open)| Lane::new(open, Token(FIRST_LANE + i), poll.registry());
        let lanes =
            config.lanes.into_iter().enumerate().map(lane).collect::<io::Result<_>>().map_err(cannot)?;
        listening.register(poll.registry(), LISTENER).map_err(cannot)?;
        let intake = &mut config.intake;
        intake.forwarded.extend(ASKED.iter().filter(|_| !intake.origins.0.is_empty()));
        Ok(Self {
            poll,
            listening: Some(listening),
            connections: Slab::new(),
            max_connections: config.max_connections,
            own: 0,
            serial: 0,
            lanes,
            waiting: [Waiting::default(), Waiting::default()],
            size: config.size,
            delay: config.delay,
            held_back: BinaryHeap::new(),
            shared: Shared {
                now,
                deadlines: config.deadlines,
                general: GeneralFields::new(config.intake.origins.tell_apart()),
                intake: config.intake,
                draining: false,
                metrics: config.metrics,
            },
            addresses: Addresses::default(),
            held: 0,
            max_held: config.client_memory,
            picked: Vec::new(),
            unread: VecDeque::new(),
            memory: Memory::default(),
            stopper,
            has_failed: false,
            end_by: None,
            troubles: QuietLog::new(module_path!()),
            next_tick: now,
            was_empty: true,
            scratch: vec![0; READ_BYTES],
            lane_scratch: vec![0; LANE_READ_BYTES],
        })
    }

    /// Serves until it is stopped, and then until the requests that have begun are finished.
    ///
    /// # Errors
    /// Why the service could not go on. Its clients have been answered.
    pub fn run(mut self) -> Result<(), Error> {
        let mut events = Events::with_capacity(EVENTS);
        loop {
            if let Some(outcome) = self.end() {
                return outcome;
            }
            self.round(&mut events);
        }
    }

    /// Waits until there is something to do, and does it.
    fn round(&mut self, events: &mut Events) {
        self.wait(events, self.timeout());
        self.release();
        self.read_on();
        self.accept(MAX_ACCEPTS);
        self.let_in_own();
        self.dispatch();
        self.tick();
        self.flush_lanes();
    }

    /// Waits for events, and does what they make possible.
    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) {
        if let Err(error) = self.poll.poll(events, timeout)
            && error.kind() != io::ErrorKind::Interrupted
        {
            // This should never happen; a pause avoids a busy loop.
            self.troubles.say("", &format!("cannot wait for events: {error}"));
            std::thread::sleep(TICK);
        }
        self.shared.now = Instant::now();
        self.shared.general.refresh(SystemTime::now());
        // In a crowd, the events of lanes and of new clients may be far behind, so do not wait for them.
        if events.iter().count() == events.capacity() {
            (0..self.lanes.len()).for_each(|index| self.serve_lane(index, false));
            self.note_newcomers();
        }
        for event in &*events {
            match event.token() {
                WAKER => {}
                LISTENER => self.note_newcomers(),
                Token(token) if token < FIRST_LANE + self.lanes.len() => {
                    if event.is_readable() || event.is_error() {
                        self.serve_lane(token - FIRST_LANE, event.is_read_closed());
                    }
                }
                Token(token) => self.note_event(token - FIRST_LANE - self.lanes.len(), event),
            }
        }
    }

    /// How long to wait for events.
    fn timeout(&self) -> Option<Duration> {
        if !self.unread.is_empty() {
            return Some(Duration::ZERO);
        }
        let now = Instant::now();
        let is_idle = self.was_empty && self.connections.is_empty();
        let tick = (!is_idle || self.memory.left > 0).then(|| self.next_tick.saturating_duration_since(now));
        let accept = self.listening.as_ref().and_then(|listening| listening.next_try(now));
        let due = self.held_back.peek().map(|Reverse((due, _))| due.saturating_duration_since(now));
        [tick, accept, due].into_iter().flatten().min()
    }

    /// Checks the deadlines when it is time to.
    fn tick(&mut self) {
        let now = self.shared.now;
        if now < self.next_tick {
            return;
        }
        self.next_tick = now + TICK;
        self.was_empty = self.connections.is_empty();
        for slot in self.slots_of(|client| client.deadline.is_some_and(|deadline| deadline <= now)) {
            if let Some(connection) = self.connections.get_mut(slot) {
                connection.client.expire(&mut self.shared);
                self.drive(slot);
            }
        }
        if self.shared.draining {
            self.note_cut_off();
        }
        self.picked.clear();
        self.memory.look(self.held, now);
        self.shared.metrics.hold(|| Levels {
            connections: self.connections.len(),
            reads: self.waiting[LaneKind::Read as usize].len(),
            writes: self.waiting[LaneKind::Write as usize].len(),
            held: self.held,
        });
    }
}

#[cfg(test)]
mod tests;
