//! One client: a state machine from bytes to requests and from answers to bytes, without a socket.
//!
//! ```text
//!            a byte            head whole           body whole        queued         sent down a lane
//!   Idle ───────────▶ Head ───────────────▶ Body ─────────────▶ Ready ──────▶ Waiting ─────▶ Inside
//!    ▲                  │ broken, too large, too late │           ▲              │ too late    │ │
//!    │                  │                             │           └──────────────┼─────────────┘ │
//!    │                  │                             │      to go on, down the other lane       │ answer,
//!    │                  ▼                             ▼                          ▼               ▼ or too late
//!    └──────────────────────────────────────────── Responding ◀──────────────────────────────────
//!      taken whole, and the connection persists       │ taken whole, and it does not
//!                                                     ▼
//!                                                 Lingering ──────▶ Closed
//! ```

use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::config::Deadlines;
use crate::gate::lanes::{Asked, Estimates, SUCCESSES};
use crate::gate::stream::Peer;
use crate::gate::wire::exchange::Exchange;
use crate::gate::wire::general::GeneralFields;
use crate::gate::wire::head::Head;
use crate::gate::wire::intake::Intake;
use crate::gate::wire::reader::{Reader, Step};
use crate::http::{ApiError, Code};
use crate::lane::{Answer, LaneKind, LaneRequest};
use crate::metrics::Metrics;

/// The most bytes read and thrown away after the last response.
const MAX_LINGERING: usize = 1024 * 1024;
/// How long an idle client has for one more request when the service is ending: one that is on its way
/// already would otherwise meet a closed door.
const LAST_CALL: Duration = Duration::from_millis(250);

/// Where a client stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    /// Nothing of a request has come.
    Idle,
    /// The head is coming.
    Head,
    /// The body is coming.
    Body,
    /// The request is whole, and nobody has taken note of it yet.
    Ready(LaneKind),
    /// The request waits for room in a lane.
    Waiting,
    /// The request is in a lane of this kind, and its answer is awaited.
    Inside(LaneKind),
    /// The client is taking the response.
    Responding,
    /// The last response is taken; what still comes is thrown away, so that no reset eats the response.
    Lingering,
    /// Nothing is left to do.
    Closed,
}

/// What all clients share.
pub struct Shared {
    /// The time at which this round of events is handled.
    pub now: Instant,
    pub deadlines: Deadlines,
    pub intake: Intake,
    pub general: GeneralFields,
    /// Whether the service is ending, so that no connection persists.
    pub draining: bool,
    pub metrics: Metrics,
}

/// One client's side of the conversation.
pub struct Client {
    peer: Peer,
    /// Whether it may speak for others.
    is_trusted: bool,
    /// Whom the request under way is for: the peer, or whom a trusted proxy names.
    address: IpAddr,
    state: State,
    deadline: Option<Instant>,
    reader: Reader,
    /// Bytes received and not yet consumed.
    stash: Vec<u8>,
    /// The request under way, as the lane gets it.
    request: LaneRequest,
    exchange: Option<Exchange>,
    /// When the request under way began.
    begun: Instant,
    /// Bytes for the client, and how many of them it has taken.
    out: Vec<u8>,
    sent: usize,
    /// Whether the connection persists after the response under way.
    persists: bool,
    /// Whether the client has ended its side.
    ended: bool,
    lingered: usize,
    /// What the request under way asks for, and what the last one did that succeeded, and how many bytes its
    /// response had.
    asked: Asked,
    last: Option<(Asked, usize)>,
}

impl Client {
    pub fn new(peer: Peer, shared: &Shared) -> Self {
        let mut client = Self {
            peer,
            // Who may open the file of a Unix socket is trusted.
            is_trusted: peer == Peer::Unix || shared.intake.trusted.contains(peer.ip()),
            address: peer.ip(),
            state: State::Idle,
            deadline: None,
            reader: Reader::new(),
            stash: Vec::new(),
            request: LaneRequest::default(),
            exchange: None,
            begun: shared.now,
            out: Vec::new(),
            sent: 0,
            persists: true,
            ended: false,
            lingered: 0,
            asked: Asked::default(),
            last: None,
        };
        client.enter(State::Idle, shared);
        client
    }

    pub fn state(&self) -> State {
        self.state
    }

    /// When [`Client::expire`] is due.
    pub fn deadline(&self) -> Option<Instant> {
        self.deadline
    }

    /// Whether received bytes are of use in this state; others stay with the operating system.
    pub fn wants_input(&self) -> bool {
        matches!(self.state, State::Idle | State::Head | State::Body | State::Lingering)
    }

    /// The bytes that the client is to get.
    pub fn output(&self) -> &[u8] {
        &self.out[self.sent..]
    }

    /// The whole request, for the lane.
    pub fn request(&self) -> &LaneRequest {
        &self.request
    }

    /// The identifier of the request under way.
    pub fn id(&self) -> &[u8] {
        self.exchange.as_ref().map_or(b"-", |exchange| exchange.id.as_bytes())
    }

    /// Whom the request under way is for.
    pub fn address(&self) -> IpAddr {
        self.address
    }

    /// Bytes held for the client that are freed where it gives way. What is in a lane is not among them.
    pub fn held(&self) -> usize {
        let request = if matches!(self.state, State::Inside(_)) { 0 } else { self.request.capacity() };
        self.stash.capacity() + request + self.out.capacity()
    }

    /// What the request under way asks for.
    pub fn asked(&self) -> Asked {
        self.asked
    }

    /// Whether a request has begun to come, and its response is not taken yet.
    pub fn has_request(&self) -> bool {
        !matches!(self.state, State::Idle | State::Lingering | State::Closed)
    }

    /// Bytes that the request takes in a lane of this kind, its response included. What is written comes back
    /// in the response; what is read is as the last time, where the same is asked for again, else as for others.
    pub fn expected_bytes(&self, kind: LaneKind, estimates: &Estimates) -> usize {
        let response = match (kind, self.last) {
            (LaneKind::Write, _) => self.request.len(),
            (LaneKind::Read, Some((asked, bytes))) if asked == self.asked => bytes,
            (LaneKind::Read, _) => estimates.expected(self.asked),
        };
        self.request.len() + response
    }

    /// Gives back what is held, as room is short. Who can still be answered gets a 503.
    pub fn give_way(&mut self, shared: &mut Shared) {
        match self.state {
            State::Head | State::Body | State::Ready(_) | State::Waiting => {
                self.refuse(ApiError::new(Code::Overloaded), shared);
            }
            State::Inside(_) => {
                // What it sent ahead is forgotten, so the connection cannot persist.
                self.stash = Vec::new();
                if let Some(exchange) = &mut self.exchange {
                    exchange.keep_alive = false;
                }
            }
            State::Idle | State::Responding | State::Lingering | State::Closed => self.close(shared),
        }
    }

    /// Leaves, as a newcomer needs the place. Whose request waits is told so.
    pub fn make_room(&mut self, shared: &mut Shared) {
        match self.state {
            State::Ready(_) | State::Waiting => self.refuse(ApiError::new(Code::Overloaded), shared),
            _ => self.close(shared),
        }
    }

    /// The one place where the state changes, and with it the deadline.
    fn enter(&mut self, state: State, shared: &Shared) {
        let deadlines = &shared.deadlines;
        let patience = match state {
            State::Idle if shared.draining => Some(deadlines.idle.min(LAST_CALL)),
            State::Idle => Some(deadlines.idle),
            State::Head => Some(deadlines.head),
            State::Body => Some(deadlines.body),
            State::Waiting => Some(deadlines.lane),
            State::Responding => Some(deadlines.response),
            State::Lingering => Some(deadlines.linger),
            State::Inside(_) => Some(deadlines.answer),
            State::Ready(_) | State::Closed => None,
        };
        self.state = state;
        self.deadline = patience.map(|patience| shared.now + patience);
    }

    /// Bytes came.
    pub fn receive(&mut self, bytes: &[u8], shared: &mut Shared) {
        if self.state == State::Lingering {
            self.lingered += bytes.len();
            if self.lingered > MAX_LINGERING {
                self.close(shared);
            }
        } else if self.stash.is_empty() {
            // The usual case, a whole request at once, is read where it lies.
            let consumed = self.read(bytes, shared);
            self.stash.extend_from_slice(&bytes[consumed..]);
        } else {
            self.stash.extend_from_slice(bytes);
            self.read_stash(shared);
        }
    }

    /// Reads on in what has been received before; what is not consumed stays where it lies.
    fn read_stash(&mut self, shared: &mut Shared) {
        let mut stash = std::mem::take(&mut self.stash);
        let consumed = self.read(&stash, shared);
        if consumed < stash.len() {
            stash.drain(..consumed);
            self.stash = stash;
        }
    }

    /// Reads on in the request under way, and returns how many bytes are done with.
    fn read(&mut self, input: &[u8], shared: &mut Shared) -> usize {
        let mut done = 0;
        if self.state == State::Idle {
            self.begun = shared.now;
        }
        loop {
            let (consumed, step) =
                self.reader.advance(&input[done..], self.is_trusted, &mut shared.intake, &mut self.request);
            done += consumed;
            match step {
                Step::More => break,
                Step::Continue => self.out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n"),
                Step::Request(head) => {
                    self.take_note(&head);
                    self.enter(State::Ready(head.kind), shared);
                    return done;
                }
                Step::Refuse(head, error) => {
                    if let Some(head) = head {
                        self.take_note(&head);
                    }
                    self.refuse(error, shared);
                    return input.len();
                }
            }
        }
        if self.reader.is_in_body() {
            if self.state != State::Body {
                self.enter(State::Body, shared);
            }
        } else if self.reader.has_begun() && self.state == State::Idle {
            self.enter(State::Head, shared);
        }
        done
    }

    fn take_note(&mut self, head: &Head) {
        let forwarded = head.forwarded_for.filter(|_| self.is_trusted);
        self.address = forwarded.unwrap_or(self.peer.ip());
        self.exchange = Some(Exchange::of(head, self.request.asked(), self.begun));
    }

    /// The client ended its side. What it asked for before, it still gets.
    pub fn end(&mut self, shared: &mut Shared) {
        self.ended = true;
        match self.state {
            State::Head | State::Body => {
                let message = "The connection was closed within the request.";
                self.refuse(ApiError::with_message(Code::BadRequest, message), shared);
            }
            State::Idle | State::Lingering => self.close(shared),
            _ => {}
        }
    }

    /// The request was put into a queue for room in a lane.
    pub fn queue(&mut self, asked: Asked, shared: &Shared) {
        self.asked = asked;
        self.enter(State::Waiting, shared);
    }

    /// The request went down a lane. One that only reads may have to go down another, and is kept.
    pub fn go_inside(&mut self, kind: LaneKind, shared: &Shared) {
        if kind == LaneKind::Write {
            self.request = LaneRequest::default();
        }
        self.enter(State::Inside(kind), shared);
    }

    /// A lane for reading has nothing against the request; the lane for writing is asked next.
    pub fn go_on(&mut self, shared: &Shared) {
        self.enter(State::Ready(LaneKind::Write), shared);
    }

    /// Answers; the connection persists where the client wants it to.
    pub fn answer(&mut self, answer: &Answer, shared: &mut Shared) {
        let exchange = match self.exchange.take() {
            Some(exchange) => exchange,
            None => Exchange::new(shared.intake.ids.next(), self.begun),
        };
        self.persists = exchange.keep_alive && !shared.draining && !self.ended;
        exchange.print(answer, !self.persists, &shared.general, &mut self.out);
        exchange.log(self.peer, self.address, answer, shared.now);
        shared.metrics.answered(answer.status, exchange.duration(shared.now));
        if SUCCESSES.contains(&answer.status) {
            self.last = Some((self.asked, answer.body.len()));
        }
        self.request = LaneRequest::default();
        self.enter(State::Responding, shared);
    }

    /// Answers with a failure; the connection persists where the client wants it to.
    pub fn fail(&mut self, error: ApiError, shared: &mut Shared) {
        shared.metrics.refused(error.code().as_str(), 1);
        self.answer(&Answer::of(&error.into_response(), &mut Vec::new()), shared);
    }

    /// The lane broke off with the request in it.
    pub fn lose(&mut self, shared: &mut Shared) {
        let code = match self.state {
            State::Inside(LaneKind::Write) => Code::OutcomeUnknown,
            _ => Code::Overloaded,
        };
        self.fail(ApiError::new(code), shared);
    }

    /// Answers with a failure after which the connection cannot persist.
    pub fn refuse(&mut self, error: ApiError, shared: &mut Shared) {
        if self.exchange.is_none()
            && let Some(head) = self.reader.head().cloned()
        {
            self.take_note(&head);
        }
        let mut exchange =
            self.exchange.take().unwrap_or_else(|| Exchange::new(shared.intake.ids.next(), self.begun));
        exchange.keep_alive = false;
        self.exchange = Some(exchange);
        self.stash = Vec::new();
        self.fail(error, shared);
    }

    /// The client has taken so many bytes of [`Client::output`].
    pub fn take_output(&mut self, count: usize, shared: &mut Shared) {
        self.sent += count;
        if self.sent < self.out.len() {
            return;
        }
        self.out = Vec::new();
        self.sent = 0;
        if self.state != State::Responding {
            return;
        }
        if !self.persists {
            self.enter(if self.ended { State::Closed } else { State::Lingering }, shared);
            return;
        }
        self.enter(State::Idle, shared);
        // The next request may be here already.
        if !self.stash.is_empty() {
            self.read_stash(shared);
        }
    }

    /// The deadline has passed.
    pub fn expire(&mut self, shared: &mut Shared) {
        match self.state {
            State::Head | State::Body => self.refuse(ApiError::new(Code::RequestTimeout), shared),
            State::Waiting => self.refuse(ApiError::new(Code::Overloaded), shared),
            State::Inside(LaneKind::Read) => {
                let message = "The service takes too long to answer; try again in a moment.";
                self.refuse(ApiError::with_message(Code::Overloaded, message), shared);
            }
            State::Inside(LaneKind::Write) => self.refuse(ApiError::new(Code::OutcomeUnknown), shared),
            _ => self.close(shared),
        }
    }

    /// The service is ending: an idle client has only a moment left.
    pub fn hurry(&mut self, shared: &Shared) {
        if self.state == State::Idle {
            self.enter(State::Idle, shared);
        }
    }

    /// Gives up on the client: nothing more is to be sent or read.
    pub fn close(&mut self, shared: &Shared) {
        self.stash = Vec::new();
        self.request = LaneRequest::default();
        self.out = Vec::new();
        self.sent = 0;
        self.enter(State::Closed, shared);
    }
}

#[cfg(test)]
mod tests;
