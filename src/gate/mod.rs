//! The gate: one thread on readiness events between all clients and the lanes.
//!
//! It knows HTTP's framing, deadlines and bounds, and nothing of routes, pets, SQL or keys. What it
//! must decide about one client stands in [`client`], without a socket. This file has the loop;
//! [`connections`] and [`lane`] move the bytes on its either side.

mod client;
mod connections;
#[cfg_attr(not(test), expect(dead_code, reason = "not used yet"))]
mod fair_queue;
#[cfg_attr(not(test), expect(dead_code, reason = "not used yet"))]
mod holders;
mod lane;
mod listener;
mod queue;
mod wire;

use std::io::{self, ErrorKind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant, SystemTime};

use mio::{Events, Poll, Token, Waker};
use slab::Slab;

use crate::config::Deadlines;
use client::Shared;
use connections::{Connection, Held};
use lane::Lane;
use listener::Listener;
use queue::Queue;
use wire::general::GeneralFields;
use wire::reader::Intake;
use wire::request_id::RequestIds;

pub use lane::LaneAddress;
pub use listener::Listening;
pub use wire::head::Kind;

/// How often deadlines are looked at, while there are clients.
const TICK: Duration = Duration::from_millis(100);
/// Bytes read from a lane at once.
const LANE_READ_BYTES: usize = 256 * 1024;
/// The most bytes held of unfinished requests, and of responses not yet taken.
const MAX_HELD: usize = 64 * 1024 * 1024;

const WAKER: Token = Token(0);
const LISTENER: Token = Token(1);
const FIRST_LANE: usize = 2;

/// What the gate is to do.
pub struct GateConfig {
    /// Clients who are served at once.
    pub max_connections: usize,
    /// Further ones who are refused with care; those beyond may miss why they are closed.
    pub max_refused: usize,
    pub deadlines: Deadlines,
    pub lanes: Vec<LaneAddress>,
    /// The header fields that the service behind the lanes reads; no others are passed on.
    pub passed_on: Vec<&'static str>,
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
    /// Opens the lanes. Nobody is let in before [`Gate::run`].
    ///
    /// # Errors
    /// One plain line.
    pub fn new(listening: Listening, config: GateConfig) -> Result<(Self, Stopper), String> {
        let cannot = |error: io::Error| format!("cannot start: {error}");
        let poll = Poll::new().map_err(cannot)?;
        let waker = Arc::new(Waker::new(poll.registry(), WAKER).map_err(cannot)?);
        let mut lanes = Vec::new();
        for (i, address) in config.lanes.into_iter().enumerate() {
            lanes.push(Lane::open(address, Token(FIRST_LANE + i), poll.registry()).map_err(cannot)?);
        }
        let listener = Listener::new(listening, LISTENER, poll.registry()).map_err(cannot)?;
        let stopping = Arc::new(AtomicBool::new(false));
        let now = Instant::now();
        let gate = Self {
            poll,
            listener: Some(listener),
            connections: Slab::new(),
            max_connections: config.max_connections,
            max_refused: config.max_refused,
            serial: 0,
            lanes,
            reads: Queue::default(),
            writes: Queue::default(),
            shared: Shared {
                now,
                deadlines: config.deadlines,
                intake: Intake { ids: RequestIds::new(), passed_on: config.passed_on },
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
                        if event.is_readable() || event.is_error() {
                            self.serve_lane(token - FIRST_LANE, event.is_read_closed());
                        }
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

    /// Lets nobody in any more, and leaves little time to those who have nothing under way.
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
            if let Some(connection) = self.connections.get_mut(slot) {
                connection.readable = true;
            }
            self.drive(slot);
            if let Some(connection) = self.connections.get_mut(slot) {
                connection.client.hurry(&self.shared);
            }
        }
    }
}
