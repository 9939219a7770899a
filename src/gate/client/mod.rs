//! One client: a state machine that turns bytes into requests and responses into bytes, without a socket.
//!
//! ```text
//!            a byte          head complete        body complete       queued         sent down a lane
//!   Idle ───────────▶ Head ───────────────▶ Body ─────────────▶ Ready ──────▶ Waiting ─────▶ Inside
//!    ▲                  │ malformed, too large, late  │           ▲              │ late        │ │
//!    │                  │                             │           └──────────────┼─────────────┘ │
//!    │                  │                             │           for the write lane             │ response,
//!    │                  ▼                             ▼                          ▼               ▼ or late
//!    └──────────────────────────────────────────── Responding ◀──────────────────────────────────
//!      sent, and the connection persists              │ sent, and it does not
//!                                                     ▼
//!                                                 Lingering ──────▶ Closed
//! ```

use std::net::IpAddr;
use std::time::{Duration, Instant};

use crate::limits::Deadlines;
use crate::refusal::{Refusal, RefusalReason, Refuse};

use crate::addresses::Peer;
use crate::lane::{LaneKind, LaneRequest, LaneResponse};
use crate::wire::head::{Head, Intake};
use crate::wire::request_reader::{RequestReader, Step};
use crate::wire::response_head::GeneralFields;
use petstore_base::metrics::Metrics;

/// The time that an idle client has for one more request when the service is ending, because one may be on its way.
const LAST_CALL: Duration = Duration::from_millis(250);
/// The most bytes to drop after the last response, and the most time for that, in multiples of the deadline for silence.
const MAX_LINGER_BYTES: usize = 1024 * 1024;
const MAX_LINGER_TIMES: u32 = 5;
/// The time after its last piece for which a body still counts as arriving.
const STALLED: Duration = Duration::from_secs(1);

/// The state of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClientState {
    /// No byte of a request has arrived.
    Idle,
    /// The head is arriving.
    Head,
    /// The body is arriving.
    Body,
    /// The request is complete but not queued yet.
    Ready(LaneKind),
    /// The request waits for a lane.
    Waiting,
    /// The request is in a lane of this kind and waits for its response.
    Inside(LaneKind),
    /// The response is delayed on purpose, so that clients can test their timeouts.
    HeldBack,
    /// The response is being sent.
    Responding,
    /// The last response is sent. Further bytes are dropped until the client is silent or exceeds a bound, because a reset
    /// could destroy the response.
    Lingering,
    /// The connection is over.
    Closed,
}

/// The state that all clients share.
pub struct Shared {
    /// The time of this round of events.
    pub now: Instant,
    pub deadlines: Deadlines,
    pub intake: Intake,
    pub general: GeneralFields,
    /// The service is ending, so no connection persists.
    pub draining: bool,
    pub refuse: Refuse,
    pub metrics: Metrics,
}

impl Shared {
    /// Returns whether the limits per address do not apply to this one, because many clients may share it.
    pub fn is_exempt(&self, address: IpAddr) -> bool {
        address.to_canonical().is_loopback() || self.intake.trusted.contains(address)
    }
}

/// One client's side of the conversation.
pub struct Client {
    peer: Peer,
    /// Its X-Forwarded-For counts.
    is_trusted: bool,
    /// The client of the current request: the peer, or the address that a trusted proxy names.
    pub address: IpAddr,
    state: ClientState,
    /// The start of this state, or the time at which the last piece of the body arrived.
    pub since: Instant,
    /// The time at which [`Client::expire`] is due.
    pub deadline: Option<Instant>,
    /// More than one piece of the body has arrived.
    pub has_sent_on: bool,
    reader: RequestReader,
    /// Bytes received and not yet consumed.
    stash: Vec<u8>,
    /// The current request, in the form for a lane.
    pub request: LaneRequest,
    /// The start of the current request.
    begun: Instant,
    /// Bytes for the client, and the number of those sent.
    out: Vec<u8>,
    sent: usize,
    /// The bytes dropped after the last response.
    dropped: usize,
    /// The delay of the response to the current request.
    pub delay: Duration,
    /// The connection persists after the current request.
    persists: bool,
    /// The client has shut down its side.
    ended: bool,
}

impl Client {
    pub fn new(peer: Peer, shared: &Shared) -> Self {
        let mut client = Self {
            peer,
            // A client that may open the file of a Unix socket is trusted.
            is_trusted: peer == Peer::Unix || shared.intake.trusted.contains(peer.ip()),
            address: peer.ip(),
            state: ClientState::Idle,
            since: shared.now,
            deadline: None,
            has_sent_on: false,
            reader: RequestReader::default(),
            stash: Vec::new(),
            request: LaneRequest::default(),
            begun: shared.now,
            out: Vec::new(),
            sent: 0,
            dropped: 0,
            delay: Duration::ZERO,
            persists: true,
            ended: false,
        };
        client.enter(ClientState::Idle, shared);
        client
    }

    pub fn state(&self) -> ClientState {
        self.state
    }

    /// Returns whether to read bytes in this state. If not, they stay with the operating system.
    pub fn wants_input(&self) -> bool {
        matches!(
            self.state,
            ClientState::Idle | ClientState::Head | ClientState::Body | ClientState::Lingering
        )
    }

    /// The bytes to send.
    pub fn output(&self) -> &[u8] {
        if self.state == ClientState::HeldBack {
            &[]
        } else {
            &self.out[self.sent..]
        }
    }

    /// The identifier of the current request.
    pub fn id(&self) -> &[u8] {
        self.reader
            .head
            .as_ref()
            .map_or(b"-", |head| head.id.as_bytes())
    }

    /// The bytes held for the client that its eviction frees, without its request in a lane.
    pub fn held(&self) -> usize {
        let request = if matches!(self.state, ClientState::Inside(_)) {
            0
        } else {
            self.request.capacity()
                + self
                    .reader
                    .head
                    .as_ref()
                    .map_or(0, |head| head.summary.capacity())
        };
        self.stash.capacity() + request + self.out.capacity()
    }

    /// Returns whether a request has begun, and its response is not sent yet.
    pub fn has_request(&self) -> bool {
        !matches!(
            self.state,
            ClientState::Idle | ClientState::Lingering | ClientState::Closed
        )
    }

    /// Returns whether the body of its request is arriving, and does not stall.
    pub fn is_uploading(&self, now: Instant) -> bool {
        self.state == ClientState::Body && now.saturating_duration_since(self.since) < STALLED
    }

    /// Frees its memory or its connection for others. If a response is still possible, it is a 503.
    pub fn evict(&mut self, shared: &mut Shared) {
        match self.state {
            ClientState::Head
            | ClientState::Body
            | ClientState::Ready(_)
            | ClientState::Waiting => {
                self.reject(Refusal::new(RefusalReason::Overloaded), shared);
            }
            ClientState::Inside(_) => {
                // Pipelined bytes are dropped, so the connection cannot persist.
                self.stash = Vec::new();
                self.persists = false;
            }
            ClientState::Idle
            | ClientState::HeldBack
            | ClientState::Responding
            | ClientState::Lingering
            | ClientState::Closed => {
                self.close(shared);
            }
        }
    }

    /// The only place where the state changes, and with it the deadline.
    pub fn enter(&mut self, state: ClientState, shared: &Shared) {
        let deadlines = &shared.deadlines;
        let patience = match state {
            ClientState::Idle if shared.draining => Some(deadlines.idle.min(LAST_CALL)),
            ClientState::Idle => Some(deadlines.idle),
            ClientState::Head => Some(deadlines.head),
            ClientState::Body => Some(deadlines.body),
            ClientState::Waiting => Some(deadlines.lane),
            ClientState::HeldBack => Some(self.delay),
            ClientState::Responding => Some(deadlines.response),
            ClientState::Lingering => Some(deadlines.linger),
            ClientState::Inside(_) => Some(deadlines.answer),
            ClientState::Ready(_) | ClientState::Closed => None,
        };
        self.state = state;
        self.since = shared.now;
        self.deadline = patience.map(|patience| shared.now + patience);
    }

    /// Takes received bytes.
    pub fn receive(&mut self, bytes: &[u8], shared: &mut Shared) {
        if self.state == ClientState::Lingering {
            self.dropped += bytes.len();
            let silence = shared.deadlines.linger;
            self.deadline =
                Some((shared.now + silence).min(self.since + MAX_LINGER_TIMES * silence));
            if self.dropped > MAX_LINGER_BYTES {
                self.close(shared);
            }
        } else if self.stash.is_empty() {
            // The usual case, a complete request in one piece, needs no copy.
            let consumed = self.read(bytes, shared);
            self.stash.extend_from_slice(&bytes[consumed..]);
        } else {
            self.stash.extend_from_slice(bytes);
            self.read_stash(shared);
        }
    }

    /// Reads on in bytes received earlier; unconsumed bytes stay there.
    fn read_stash(&mut self, shared: &mut Shared) {
        let mut stash = std::mem::take(&mut self.stash);
        let consumed = self.read(&stash, shared);
        if consumed < stash.len() {
            stash.drain(..consumed);
            self.stash = stash;
        }
    }

    /// Reads on in the current request, and returns the number of bytes consumed.
    fn read(&mut self, input: &[u8], shared: &mut Shared) -> usize {
        let mut done = 0;
        if self.state == ClientState::Idle {
            self.begun = shared.now;
        }
        loop {
            let (consumed, step) = self.reader.advance(
                &input[done..],
                self.is_trusted,
                &mut shared.intake,
                &mut self.request,
            );
            done += consumed;
            match step {
                Step::More => break,
                Step::Continue => self.out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n"),
                Step::Head(checked) => {
                    self.apply_head();
                    if let Err(refusal) = checked {
                        self.reject(refusal, shared);
                        return input.len();
                    }
                }
                Step::Request(kind) => {
                    self.enter(ClientState::Ready(kind), shared);
                    return done;
                }
                Step::Reject(refusal) => {
                    self.stash = input[done..].to_vec();
                    self.reject(refusal, shared);
                    return input.len();
                }
            }
        }
        if self.reader.is_in_body() {
            self.has_sent_on = self.state == ClientState::Body;
            if self.has_sent_on {
                self.since = shared.now;
            } else {
                self.enter(ClientState::Body, shared);
            }
        } else if self.reader.has_begun() && self.state == ClientState::Idle {
            self.enter(ClientState::Head, shared);
        }
        done
    }

    /// Applies a complete head to the connection.
    fn apply_head(&mut self) {
        let Some(head) = &self.reader.head else {
            return;
        };
        self.persists = head.keep_alive;
        let forwarded = head.forwarded_for.filter(|_| self.is_trusted);
        self.address = forwarded.unwrap_or(self.peer.ip());
    }

    /// Notes that the client has shut down its side. It still gets its pending responses.
    pub fn end(&mut self, shared: &mut Shared) {
        self.ended = true;
        match self.state {
            ClientState::Head | ClientState::Body => {
                let message = "The connection was closed within the request.";
                self.reject(Refusal::because(RefusalReason::BadRequest, message), shared);
            }
            ClientState::Idle | ClientState::Lingering => self.close(shared),
            _ => {}
        }
    }

    /// Notes that the request went down a lane. A read is kept, because it may have to go down the other kind.
    pub fn go_inside(&mut self, kind: LaneKind, shared: &Shared) {
        if kind == LaneKind::Write {
            self.request = LaneRequest::default();
        }
        self.enter(ClientState::Inside(kind), shared);
    }

    /// Responds; the connection persists if the client wants it to.
    pub fn respond(&mut self, response: &LaneResponse, shared: &mut Shared) {
        let head = self
            .reader
            .head
            .take()
            .unwrap_or_else(|| Head::unknown(shared.intake.ids.next()));
        let mut preflight = Vec::new();
        // A malformed request is not a preflight.
        if head.allowed.is_some()
            && self.request.line().starts_with(b"OPTIONS ")
            && response.status != 400
        {
            shared
                .intake
                .cors
                .write_preflight(response, self.request.fields(), &mut preflight);
        }
        let fields = preflight.as_slice();
        let granted = LaneResponse {
            status: 204,
            fields,
            body: b"",
            has_cache_control: false,
            key_name: b"-",
            ..*response
        };
        let response = if preflight.is_empty() {
            response
        } else {
            &granted
        };
        let duration = shared.now.saturating_duration_since(self.begun);
        self.persists &= !shared.draining && !self.ended;
        head.print(response, !self.persists, &shared.general, &mut self.out);
        head.log(
            shared.intake.access_log,
            self.peer,
            self.address,
            response,
            duration,
        );
        shared.metrics.answered(response.status, duration);
        self.request = LaneRequest::default();
        self.enter(ClientState::Responding, shared);
    }

    /// Responds with a failure; the connection persists if the client wants it to.
    pub fn fail(&mut self, refusal: Refusal, shared: &mut Shared) {
        let response = (shared.refuse)(refusal);
        self.respond(&LaneResponse::of(&response, &mut Vec::new()), shared);
    }

    /// Responds with a failure, and closes the connection afterwards.
    pub fn reject(&mut self, refusal: Refusal, shared: &mut Shared) {
        self.persists = false;
        let (arrived, intake) = (std::mem::take(&mut self.stash), &mut shared.intake);
        self.reader
            .head
            .get_or_insert_with(|| Head::of_part(&arrived, intake, &mut self.request));
        self.fail(refusal, shared);
    }

    /// Notes that this many bytes of [`Client::output`] were sent.
    pub fn consume_output(&mut self, count: usize, shared: &mut Shared) {
        self.sent += count;
        if self.sent < self.out.len() {
            return;
        }
        self.out = Vec::new();
        self.sent = 0;
        if self.state != ClientState::Responding {
            return;
        }
        if !self.persists {
            self.enter(
                if self.ended {
                    ClientState::Closed
                } else {
                    ClientState::Lingering
                },
                shared,
            );
            return;
        }
        self.enter(ClientState::Idle, shared);
        // The next request may have arrived already.
        if !self.stash.is_empty() {
            self.read_stash(shared);
        }
    }

    /// Handles a deadline that has passed, or the end of the service.
    pub fn expire(&mut self, shared: &mut Shared) {
        match self.state {
            ClientState::Head | ClientState::Body => {
                self.reject(Refusal::new(RefusalReason::RequestTimeout), shared);
            }
            ClientState::Waiting | ClientState::Inside(LaneKind::Read) => {
                self.reject(Refusal::new(RefusalReason::Overloaded), shared);
            }
            ClientState::Inside(LaneKind::Write) => {
                self.reject(Refusal::new(RefusalReason::OutcomeUnknown), shared);
            }
            ClientState::HeldBack => self.enter(ClientState::Responding, shared),
            _ => self.close(shared),
        }
    }

    /// Drops all bytes: nothing more is sent or read.
    pub fn close(&mut self, shared: &Shared) {
        self.stash = Vec::new();
        self.request = LaneRequest::default();
        self.out = Vec::new();
        self.sent = 0;
        self.enter(ClientState::Closed, shared);
    }
}

#[cfg(test)]
mod tests;
