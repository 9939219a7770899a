//! The gate: one thread on readiness events between all clients and the lanes.
//!
//! It knows HTTP's framing, deadlines and bounds, and nothing of routes, pets, SQL or keys. [`client`](crate::client) is the state
//! machine of one client, without a socket. [`connections`](crate::connections) moves the bytes of clients, [`lanes`](crate::lanes) those of lanes,
//! and [`eviction`](crate::eviction) selects clients to evict. The loop in this file alone knows all of them.

#[cfg(any(test, fuzzing))]
pub mod fuzz_tests;
mod shutdown;
#[cfg(any(test, fuzzing))]
mod strict_tests;

use std::io;
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use mio::net::TcpStream;
use mio::{Events, Poll, Token, Waker};

use crate::addresses::{Peer, TrustedProxies};
use crate::client::{ClientState, Shared};
use crate::connections::{Connections, Wants};
use crate::eviction::{Candidates, largest_holders};
use crate::lane::LaneKind;
use crate::lanes::{Dispatcher, Lane, OpenLane};
use crate::limits::{Limits, most_connections};
use crate::listening::Listening;
use crate::refusal::{Refusal, RefusalReason, Refuse};
use crate::stopper::Stopper;
use crate::wire::cors::{ASKED, Cors};
use crate::wire::head::Intake;
use crate::wire::request_id::RequestIds;
use crate::wire::response_head::GeneralFields;
use petstore_base::clock::unix_time;
use petstore_base::error::{Error, ErrorKind};
use petstore_base::http::Size;
use petstore_base::http::response::Disposition;
use petstore_base::metrics::{Levels, Metrics};
use petstore_base::quiet_log::QuietLog;

/// The most events of one round.
const EVENTS: usize = 256;
/// The interval of the checks of deadlines while there are clients.
const TICK: Duration = Duration::from_millis(100);
/// The most further reads, of all clients together, in one round.
const MAX_READ_ON: usize = 4;
/// The most clients to accept in one round.
const MAX_ACCEPTS: usize = 128;

/// The tokens of lanes, waker and listener. The token of a connection is its slot, which is less than all of these.
const FIRST_LANE: usize = usize::MAX / 2;
const WAKER: Token = Token(usize::MAX);
const LISTENER: Token = Token(usize::MAX - 1);

/// The configuration of the gate.
pub struct GateConfig {
    /// How much clients may have.
    pub limits: Limits,
    /// The lanes to the workers.
    pub lanes: Vec<OpenLane>,
    /// The names of the request header fields that the service reads. No others are forwarded.
    pub forwarded: Vec<&'static str>,
    /// The proxies that may name a client's address.
    pub trusted: TrustedProxies,
    /// What scripts of other origins may do in a browser.
    pub cors: Cors,
    /// The value of the header field Server.
    pub server: &'static str,
    /// The target of the access log.
    pub access_log: &'static str,
    /// The access log also has the query and the names of the forwarded header fields of each request. Only for tests:
    /// a query may have what no log should.
    pub logs_details: bool,
    /// The size of the response to a read, by its method and target with a space between.
    pub size: fn(&[u8]) -> Size,
    /// Delays responses, if the configuration wants that.
    pub delay: Option<Delay>,
    /// Makes the responses of the gate itself.
    pub refuse: Refuse,
    /// Counts what happens; nothing by default.
    pub metrics: Metrics,
}

impl Default for GateConfig {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            lanes: Vec::new(),
            forwarded: Vec::new(),
            trusted: TrustedProxies::default(),
            cors: Cors::default(),
            server: "gate",
            access_log: "access",
            logs_details: false,
            size: |_| Size::Medium,
            delay: None,
            refuse: Box::new(Refusal::into_response),
            metrics: Metrics::default(),
        }
    }
}

impl GateConfig {
    /// The defaults, with these lanes, and with no more clients than leave enough files for the lanes.
    pub fn with(lanes: Vec<OpenLane>) -> Self {
        let mut config = Self::default();
        let limits = &mut config.limits;
        limits.connections = limits.connections.min(most_connections(lanes.len()));
        config.lanes = lanes;
        config
    }
}

/// Draws the delay of a response, by the method and target of its request with a space between.
pub type Delay = Box<dyn FnMut(&[u8]) -> Duration + Send>;

/// The gate's one thread.
pub struct Gate {
    poll: Poll,
    listening: Option<Listening>,
    connections: Connections,
    candidates: Candidates,
    dispatcher: Dispatcher,
    delay: Option<Delay>,
    shared: Shared,
    stopper: Stopper,
    /// The time at which the service ends even with unfinished requests; `None` before its end begins.
    end_by: Option<Instant>,
    troubles: QuietLog,
    next_tick: Instant,
    /// The last tick found no connection, and reported this to the metrics.
    was_empty: bool,
}

impl Gate {
    /// Watches the lanes. No client is accepted before [`Gate::run`].
    ///
    /// # Errors
    /// One plain line.
    pub fn new(
        mut listening: Listening,
        config: GateConfig,
        stopper: Stopper,
    ) -> Result<Self, Error> {
        let cannot = |error| Error::io("cannot start", error);
        let poll = Poll::new().map_err(cannot)?;
        stopper.attach(Waker::new(poll.registry(), WAKER).map_err(cannot)?);
        let now = Instant::now();
        let lane = |(i, open)| Lane::new(open, Token(FIRST_LANE + i), poll.registry());
        let lanes = config
            .lanes
            .into_iter()
            .enumerate()
            .map(lane)
            .collect::<io::Result<_>>()
            .map_err(cannot)?;
        listening
            .register(poll.registry(), LISTENER)
            .map_err(cannot)?;
        let mut forwarded = config.forwarded;
        if !config.cors.origins.is_empty() {
            forwarded.extend(ASKED);
        }
        let general = GeneralFields::new(config.server, &config.cors);
        let Limits {
            connections,
            memory,
            body,
            deadlines,
        } = config.limits;
        Ok(Self {
            poll,
            listening: Some(listening),
            connections: Connections::new(connections, memory),
            candidates: Candidates::default(),
            dispatcher: Dispatcher::new(lanes, config.size),
            delay: config.delay,
            shared: Shared {
                now,
                deadlines: deadlines.bounded(),
                general,
                intake: Intake {
                    ids: RequestIds::default(),
                    forwarded,
                    trusted: config.trusted,
                    cors: config.cors,
                    access_log: config.access_log,
                    logs_details: config.logs_details,
                    max_body: body,
                },
                draining: false,
                refuse: config.refuse,
                metrics: config.metrics,
            },
            stopper,
            end_by: None,
            troubles: QuietLog::new(module_path!()),
            next_tick: now,
            was_empty: true,
        })
    }

    /// Serves until it is stopped and the requests that have begun are finished.
    ///
    /// # Errors
    /// The failure that ended the service. Its clients have their responses.
    pub fn run(mut self) -> Result<(), Error> {
        let mut events = Events::with_capacity(EVENTS);
        loop {
            if let Some(outcome) = self.end() {
                return outcome;
            }
            self.round(&mut events);
        }
    }

    /// Waits for events, and handles them.
    fn round(&mut self, events: &mut Events) {
        self.wait(events, self.timeout());
        self.read_on();
        self.accept(MAX_ACCEPTS);
        self.accept_health_checks();
        self.dispatcher
            .dispatch(&mut self.connections, &self.shared);
        self.tick();
        if let Err(error) = self.dispatcher.flush(self.poll.registry()) {
            self.fail(&error);
        }
    }

    /// Waits for events, and moves bytes accordingly.
    fn wait(&mut self, events: &mut Events, timeout: Option<Duration>) {
        if let Err(error) = self.poll.poll(events, timeout)
            && error.kind() != io::ErrorKind::Interrupted
        {
            // This should never happen; a pause avoids a busy loop.
            self.troubles
                .say(&format!("cannot wait for events: {error}"));
            std::thread::sleep(TICK);
        }
        self.shared.now = Instant::now();
        self.shared.general.refresh(unix_time());
        // In a crowd, the events of lanes and of new clients may come much later than those of connections.
        if events.iter().count() == events.capacity() {
            for index in 0..self.dispatcher.lanes.len() {
                self.serve_lane(index, false);
            }
            self.note_newcomers();
        }
        for event in &*events {
            match event.token() {
                WAKER => {}
                LISTENER => self.note_newcomers(),
                Token(token) if token >= FIRST_LANE => {
                    if event.is_readable() || event.is_error() {
                        self.serve_lane(token - FIRST_LANE, event.is_read_closed());
                    }
                }
                Token(slot) => self.connections.note_event(slot, event, &self.shared),
            }
        }
        self.advance();
    }

    /// Moves the bytes of the ready connections, and frees memory if they exceed its bound.
    fn advance(&mut self) {
        while let Some(slot) = self.connections.ready.pop_front() {
            self.drive(slot);
            if self.connections.held > self.connections.max_held {
                self.free_memory();
            }
        }
    }

    /// Drives one connection, and meets its next need.
    fn drive(&mut self, slot: usize) {
        match self.connections.drive(slot, &mut self.shared) {
            Wants::Event => {}
            Wants::Turn => self.connections.postpone(slot),
            Wants::Lane(kind) => {
                if let Some(delay) = &mut self.delay {
                    let client = &mut self.connections.open[slot].client;
                    client.delay = delay(client.request.line());
                }
                self.dispatcher
                    .queue(slot, kind, &mut self.connections, &self.shared);
            }
            Wants::Removal => self.connections.remove(slot),
        }
    }

    /// Evicts the largest holders of memory until a sixteenth is free.
    fn free_memory(&mut self) {
        let enough = self.connections.max_held - self.connections.max_held / 16;
        let mut holders = largest_holders(&self.connections);
        while self.connections.held > enough
            && let Some(slot) = holders.pop()
        {
            self.connections.open[slot].client.evict(&mut self.shared);
            self.drive(slot);
        }
    }

    /// Reads on from some of the clients that have sent more than one read takes. They have no event.
    fn read_on(&mut self) {
        for _ in 0..MAX_READ_ON {
            self.connections.read_on();
            self.advance();
        }
    }

    /// Notes that the backlog may have clients.
    fn note_newcomers(&mut self) {
        if let Some(listening) = &mut self.listening {
            listening.is_ready = true;
        }
    }

    /// Accepts at most this number of clients from the backlog.
    fn accept(&mut self, most: usize) {
        for _ in 0..most {
            let Some(listening) = &mut self.listening else {
                return;
            };
            match listening.accept(self.shared.now) {
                Ok(Some((stream, peer))) => self.admit(stream, peer),
                Ok(None) => return,
                Err(_) => {
                    self.evict_one();
                }
            }
        }
    }

    /// Adds a client, after the eviction of another if all connections are in use, or rejects it.
    fn admit(&mut self, stream: TcpStream, peer: Peer) {
        let address = peer.ip();
        if self.connections.has_its_quota(address) && !self.shared.is_exempt(address) {
            self.troubles.say(&format!(
                "{address} has a quarter of all connections, and gets no more; if it is a proxy, add it to the trusted proxies"
            ));
            let message = "This address has too many connections; try again in a moment.";
            self.connections
                .reject(stream, peer, message, &mut self.shared);
        } else if self.connections.is_full() && !self.evict_one() {
            let message = "The service has too many connections; try again in a moment.";
            self.connections
                .reject(stream, peer, message, &mut self.shared);
        } else {
            self.add(stream, peer);
        }
    }

    /// Adds a client.
    fn add(&mut self, stream: TcpStream, peer: Peer) {
        if let Err(error) = self
            .connections
            .add(stream, peer, self.poll.registry(), &self.shared)
        {
            self.troubles
                .say(&format!("cannot watch a connection: {error}"));
        }
        self.advance();
    }

    /// Accepts the connections of health checks regardless of the limits, so that they succeed in a crowd. Each has sent
    /// its one request.
    fn accept_health_checks(&mut self) {
        for stream in self.stopper.take_health_checks() {
            self.add(OwnedFd::from(stream).into(), Peer::Unix);
        }
    }

    /// Evicts a client for a newcomer; returns `false` if there is none to evict.
    fn evict_one(&mut self) -> bool {
        // A request that a lane accepts now is not evicted.
        self.dispatcher
            .dispatch(&mut self.connections, &self.shared);
        let slot = self.candidates.next(&self.connections, self.shared.now);
        if let Some(slot) = slot {
            self.connections.evict(slot, &mut self.shared);
        }
        slot.is_some()
    }

    /// Delivers the responses of a lane to their clients. `is_ending` means that the lane's last bytes came
    /// together with its end.
    fn serve_lane(&mut self, index: usize, is_ending: bool) {
        loop {
            let Self {
                connections,
                next_tick,
                shared,
                ..
            } = self;
            let has_more = self.dispatcher.lanes[index].receive(is_ending, |id, response| {
                let connection = connections.get_mut(id);
                // By now the connection may be closed, or have another response.
                let Some(connection) =
                    connection.filter(|c| matches!(c.client.state(), ClientState::Inside(_)))
                else {
                    return;
                };
                let client = &mut connection.client;
                match response.disposition {
                    Disposition::RetryOnWriter => {
                        client.enter(ClientState::Ready(LaneKind::Write), shared);
                    }
                    Disposition::Abort => client.close(shared),
                    Disposition::Fail => client.fail(Refusal::new(RefusalReason::Failed), shared),
                    Disposition::Send => {
                        client.respond(response, shared);
                        if !client.delay.is_zero() {
                            client.enter(ClientState::HeldBack, shared);
                            *next_tick = (*next_tick).min(shared.now + client.delay);
                        }
                    }
                }
                connections.ready.push_back(id.slot);
            });
            self.advance();
            match has_more {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.fail(&error),
            }
        }
    }

    /// Ends the service, because a lane has broken off. Its requests fail like those of a dead worker.
    fn fail(&self, error: &io::Error) {
        if !self.stopper.is_failing() {
            let reason = Error::new(ErrorKind::Internal, format!("a lane broke off: {error}"));
            self.stopper.fail(reason);
        }
    }

    /// The longest wait for events.
    fn timeout(&self) -> Option<Duration> {
        if !self.connections.unread.is_empty() {
            return Some(Duration::ZERO);
        }
        let now = Instant::now();
        let is_idle = self.was_empty && self.connections.open.is_empty();
        let tick = (!is_idle).then(|| self.next_tick.saturating_duration_since(now));
        let accept = self
            .listening
            .as_ref()
            .and_then(|listening| listening.next_try(now));
        tick.into_iter().chain(accept).min()
    }

    /// Checks the deadlines when the interval is over.
    fn tick(&mut self) {
        let now = self.shared.now;
        if now < self.next_tick {
            return;
        }
        self.next_tick = now + TICK;
        self.was_empty = self.connections.open.is_empty();
        self.connections.expire(
            |client| client.deadline.is_some_and(|by| by <= now),
            &mut self.shared,
        );
        if self.shared.draining {
            self.connections.expire(
                |client| client.state() == ClientState::HeldBack,
                &mut self.shared,
            );
            self.note_cut_off();
        }
        self.advance();
        self.candidates.clear();
        let waiting = |kind: LaneKind| self.dispatcher.waiting[kind as usize].len();
        self.shared.metrics.hold(|| Levels {
            connections: self.connections.open.len(),
            reads: waiting(LaneKind::Read),
            writes: waiting(LaneKind::Write),
            held: self.connections.held,
        });
    }
}

#[cfg(test)]
mod tests;
