//! One client: a state machine from bytes to requests and from answers to bytes, without a socket.
//!
//! ```text
//!            a byte            head whole           body whole        queued        sent down a lane
//!   Idle ───────────▶ Head ───────────────▶ Body ─────────────▶ Ready ──────▶ Waiting ─────▶ Inside
//!    ▲                  │ broken, too large, too late │                          │ too late    │ answer
//!    │                  ▼                             ▼                          ▼             ▼
//!    └──────────────────────────────────────────── Replying ◀───────────────────────────────────
//!      taken whole, and the connection persists       │ taken whole, and it does not
//!                                                     ▼
//!                                                 Lingering ──────▶ Closed
//! ```

use std::net::SocketAddr;
use std::time::Instant;

use crate::config::Deadlines;
use crate::error::{ApiError, Code};
use crate::gate::head::{Head, Kind};
use crate::gate::reader::{Reader, Step};
use crate::gate::reply::{Answer, GeneralFields};
use crate::gate::request_id::{RequestId, RequestIds};

/// The most bytes read and thrown away after the last reply.
const MAX_LINGERING: usize = 1024 * 1024;
/// Under which name the access log's lines are chosen with `RUST_LOG`.
const ACCESS_LOG: &str = "petstore::access";

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
    Ready(Kind),
    /// The request waits for room in a lane.
    Waiting,
    /// The request is in a lane, and its answer is awaited.
    Inside,
    /// The client is taking the reply.
    Replying,
    /// The last reply is taken; what still comes is thrown away, so that no reset eats the reply.
    Lingering,
    /// Nothing is left to do.
    Closed,
}

/// The request under way, as far as its reply and its log line need it.
#[derive(Clone, Debug)]
pub struct Exchange {
    pub id: RequestId,
    pub is_head: bool,
    pub is_http_1_0: bool,
    keep_alive: bool,
    begun: Instant,
    /// Method and path for the access log; the query stays out of it.
    summary: String,
}

/// What all clients share.
pub struct Shared {
    /// The time at which this round of events is handled.
    pub now: Instant,
    pub deadlines: Deadlines,
    pub ids: RequestIds,
    pub general: GeneralFields,
    /// Whether the service is ending, so that no connection persists.
    pub draining: bool,
}

/// One client's side of the conversation.
pub struct Client {
    peer: SocketAddr,
    state: State,
    deadline: Option<Instant>,
    reader: Reader,
    /// Bytes received and not yet consumed.
    stash: Vec<u8>,
    /// The request under way, as the lane gets it.
    request: Vec<u8>,
    exchange: Option<Exchange>,
    /// When the request under way began.
    begun: Instant,
    /// Bytes for the client, and how many of them it has taken.
    out: Vec<u8>,
    sent: usize,
    /// Whether the connection persists after the reply under way.
    persists: bool,
    /// Whether the client has ended its side.
    ended: bool,
    lingered: usize,
}

impl Exchange {
    /// A request of which nothing is understood.
    pub fn new(id: RequestId, begun: Instant) -> Self {
        Self { id, is_head: false, is_http_1_0: false, keep_alive: false, begun, summary: "-".to_owned() }
    }

    fn of(head: &Head, begun: Instant) -> Self {
        Self {
            id: head.id,
            is_head: head.is_head,
            is_http_1_0: head.is_http_1_0,
            keep_alive: head.keep_alive,
            begun,
            summary: String::new(),
        }
    }
}

impl Client {
    pub fn new(peer: SocketAddr, shared: &Shared) -> Self {
        let mut client = Self {
            peer,
            state: State::Idle,
            deadline: None,
            reader: Reader::new(),
            stash: Vec::new(),
            request: Vec::new(),
            exchange: None,
            begun: shared.now,
            out: Vec::new(),
            sent: 0,
            persists: true,
            ended: false,
            lingered: 0,
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
    pub fn request(&self) -> &[u8] {
        &self.request
    }

    /// Bytes held of requests and of replies.
    pub fn held(&self) -> (usize, usize) {
        (self.stash.capacity() + self.request.capacity(), self.out.capacity())
    }

    /// The one place where the state changes, and with it the deadline.
    fn enter(&mut self, state: State, shared: &Shared) {
        let deadlines = &shared.deadlines;
        let patience = match state {
            State::Idle => Some(deadlines.idle),
            State::Head => Some(deadlines.head),
            State::Body => Some(deadlines.body),
            State::Waiting => Some(deadlines.lane),
            State::Replying => Some(deadlines.reply),
            State::Lingering => Some(deadlines.linger),
            State::Ready(_) | State::Inside | State::Closed => None,
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
            self.read(bytes, shared);
        } else {
            let mut bytes_before = std::mem::take(&mut self.stash);
            bytes_before.extend_from_slice(bytes);
            self.read(&bytes_before, shared);
        }
    }

    /// Reads on in the request under way.
    fn read(&mut self, mut input: &[u8], shared: &mut Shared) {
        loop {
            if self.state == State::Idle && !input.is_empty() {
                self.begun = shared.now;
            }
            let (consumed, step) = self.reader.advance(input, &mut shared.ids, &mut self.request);
            input = &input[consumed..];
            match step {
                Step::More => break,
                Step::Continue => self.out.extend_from_slice(b"HTTP/1.1 100 Continue\r\n\r\n"),
                Step::Request(head) => {
                    self.take_note(&head);
                    self.stash = input.to_vec();
                    return self.enter(State::Ready(head.kind), shared);
                }
                Step::Refuse(head, error) => {
                    if let Some(head) = head {
                        self.take_note(&head);
                    }
                    return self.refuse(error, shared);
                }
            }
        }
        self.stash = input.to_vec();
        if self.reader.is_in_body() {
            if self.state != State::Body {
                self.enter(State::Body, shared);
            }
        } else if self.reader.has_begun() && self.state != State::Head {
            self.enter(State::Head, shared);
        }
    }

    fn take_note(&mut self, head: &Head) {
        let mut exchange = Exchange::of(head, self.begun);
        if log::log_enabled!(target: ACCESS_LOG, log::Level::Info) {
            let line = self.request.split(|b| *b == b'\r').next().unwrap_or_default();
            let path = line.strip_suffix(b" HTTP/1.1").unwrap_or(line);
            let path = path.split(|b| *b == b'?').next().unwrap_or_default();
            exchange.summary = String::from_utf8_lossy(path).into_owned();
        }
        self.exchange = Some(exchange);
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
    pub fn queue(&mut self, shared: &Shared) {
        self.enter(State::Waiting, shared);
    }

    /// The request went down a lane.
    pub fn go_inside(&mut self, shared: &Shared) {
        self.request = Vec::new();
        self.enter(State::Inside, shared);
    }

    /// The lane answered.
    pub fn answer(&mut self, answer: &Answer, shared: &mut Shared) {
        let exchange = match self.exchange.take() {
            Some(exchange) => exchange,
            None => Exchange::new(shared.ids.next(), self.begun),
        };
        self.persists = exchange.keep_alive && !shared.draining && !self.ended;
        answer.write_to(&exchange, !self.persists, &shared.general, &mut self.out);
        log::info!(
            target: ACCESS_LOG,
            "{} {} {} {} {} bytes {:.3} ms",
            self.peer,
            exchange.id.as_str(),
            exchange.summary,
            answer.status,
            answer.body.len(),
            shared.now.saturating_duration_since(exchange.begun).as_secs_f64() * 1e3,
        );
        self.request = Vec::new();
        self.enter(State::Replying, shared);
    }

    /// Answers with a failure; the connection persists where the client wants it to.
    pub fn fail(&mut self, error: ApiError, shared: &mut Shared) {
        let mut bytes = Vec::new();
        error.into_reply().write_to(&mut bytes);
        if let Ok(Some((answer, _))) = Answer::parse(&bytes) {
            self.answer(&answer, shared);
        }
    }

    /// Answers with a failure after which the connection cannot persist.
    pub fn refuse(&mut self, error: ApiError, shared: &mut Shared) {
        if self.exchange.is_none()
            && let Some(head) = self.reader.head().cloned()
        {
            self.take_note(&head);
        }
        let mut exchange =
            self.exchange.take().unwrap_or_else(|| Exchange::new(shared.ids.next(), self.begun));
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
        if self.state != State::Replying {
            return;
        }
        if !self.persists {
            self.enter(if self.ended { State::Closed } else { State::Lingering }, shared);
            return;
        }
        self.enter(State::Idle, shared);
        // The next request may be here already.
        let stash = std::mem::take(&mut self.stash);
        if !stash.is_empty() {
            self.read(&stash, shared);
        }
    }

    /// The deadline has passed.
    pub fn expire(&mut self, shared: &mut Shared) {
        match self.state {
            State::Head | State::Body => self.refuse(ApiError::new(Code::RequestTimeout), shared),
            State::Waiting => self.refuse(ApiError::new(Code::Overloaded), shared),
            _ => self.close(shared),
        }
    }

    /// Gives up on the client.
    pub fn close(&mut self, shared: &Shared) {
        self.enter(State::Closed, shared);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Bench {
        shared: Shared,
        client: Client,
    }

    fn bench() -> Bench {
        let shared = Shared {
            now: Instant::now(),
            deadlines: Deadlines::default(),
            ids: RequestIds::new(),
            general: GeneralFields::new(),
            draining: false,
        };
        let client = Client::new(([127, 0, 0, 1], 9).into(), &shared);
        Bench { shared, client }
    }

    impl Bench {
        fn receive(&mut self, bytes: &str) -> State {
            self.client.receive(bytes.as_bytes(), &mut self.shared);
            self.client.state()
        }

        fn answer(&mut self, body: &str) -> State {
            self.client.queue(&self.shared);
            self.client.go_inside(&self.shared);
            let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
            let (answer, _) = Answer::parse(reply.as_bytes()).unwrap().unwrap();
            self.client.answer(&answer, &mut self.shared);
            self.client.state()
        }

        /// Takes all the output: the status line of the last reply and the state after it.
        fn take(&mut self) -> (String, State) {
            let out = String::from_utf8(self.client.output().to_vec()).unwrap();
            self.client.take_output(out.len(), &mut self.shared);
            let line = out.split("\r\n").find(|line| line.starts_with("HTTP/1.1 ")).unwrap_or("");
            (line.to_owned(), self.client.state())
        }

        /// Moves the time to the deadline.
        fn expire(&mut self) -> State {
            self.shared.now = self.client.deadline().unwrap();
            self.client.expire(&mut self.shared);
            self.client.state()
        }
    }

    const GET: &str = "GET / HTTP/1.1\r\nHost: h\r\n\r\n";
    const POST: &str = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 3\r\n\r\n";

    #[test]
    fn persistent_connection_goes_round() {
        let mut bench = bench();
        for _ in 0..2 {
            assert_eq!(bench.receive("G"), State::Head);
            assert_eq!(bench.receive(&GET[1..]), State::Ready(Kind::Read));
            assert_eq!(bench.answer("x"), State::Replying);
            assert_eq!(bench.take(), ("HTTP/1.1 200 OK".to_owned(), State::Idle));
            assert_eq!(bench.receive(POST), State::Body);
            assert_eq!(bench.receive("abc"), State::Ready(Kind::Write));
            assert!(bench.client.request().ends_with(b"\r\n\r\nabc"));
            assert_eq!(bench.answer("y"), State::Replying);
            assert_eq!(bench.take().1, State::Idle);
            assert_eq!(bench.client.held(), (0, 0));
        }
    }

    #[test]
    fn pipelined_request_waits_for_the_reply_before_it() {
        let mut bench = bench();
        assert_eq!(bench.receive(&format!("{GET}{POST}ab")), State::Ready(Kind::Read));
        assert!(!bench.client.wants_input());
        bench.answer("x");
        assert_eq!(bench.take().1, State::Body);
        assert_eq!(bench.receive("c"), State::Ready(Kind::Write));
    }

    #[test]
    fn reply_is_taken_in_pieces() {
        let mut bench = bench();
        bench.receive(GET);
        bench.answer("x");
        let length = bench.client.output().len();
        bench.client.take_output(length - 1, &mut bench.shared);
        assert_eq!(bench.client.state(), State::Replying);
        assert_eq!(bench.client.output(), b"x");
        bench.client.take_output(1, &mut bench.shared);
        assert_eq!(bench.client.state(), State::Idle);
    }

    #[test]
    fn refusal_is_readable_before_the_close() {
        let mut bench = bench();
        assert_eq!(bench.receive("nonsense\r\n"), State::Replying);
        assert!(bench.client.output().ends_with(b",\"status\":400}"));
        assert_eq!(bench.take(), ("HTTP/1.1 400 Bad Request".to_owned(), State::Lingering));
        assert_eq!(bench.receive("more"), State::Lingering);
        assert_eq!(bench.receive(&"x".repeat(MAX_LINGERING)), State::Closed);
    }

    #[test]
    fn deadlines_are_totals() {
        let mut bench = bench();
        bench.receive("G");
        let head = bench.client.deadline();
        bench.shared.now += bench.shared.deadlines.head / 2;
        bench.receive("E");
        assert_eq!(bench.client.deadline(), head, "a further byte gains nothing");
        bench.receive(&format!("T{}", &POST[4..]));
        let body = bench.client.deadline();
        assert_eq!(body, Some(bench.shared.now + bench.shared.deadlines.body));
        bench.shared.now += bench.shared.deadlines.body / 2;
        bench.receive("a");
        assert_eq!(bench.client.deadline(), body);
    }

    #[test]
    fn late_requests_get_408_and_silence_gets_nothing() {
        for begun in ["G", POST] {
            let mut bench = bench();
            bench.receive(begun);
            assert_eq!(bench.expire(), State::Replying);
            assert_eq!(bench.take(), ("HTTP/1.1 408 Request Timeout".to_owned(), State::Lingering));
            assert_eq!(bench.expire(), State::Closed);
        }
        for silent in ["", "\r\n"] {
            let mut bench = bench();
            bench.receive(silent);
            assert_eq!(bench.expire(), State::Closed);
            assert_eq!(bench.client.output(), b"");
        }
    }

    #[test]
    fn slow_reader_is_given_up() {
        let mut bench = bench();
        bench.receive(GET);
        bench.answer("x");
        assert_eq!(bench.expire(), State::Closed);
    }

    #[test]
    fn waiting_too_long_is_503() {
        let mut bench = bench();
        bench.receive(GET);
        bench.client.queue(&bench.shared);
        assert_eq!(bench.expire(), State::Replying);
        assert!(String::from_utf8_lossy(bench.client.output()).contains("\r\nRetry-After: 1\r\n"));
        assert_eq!(bench.take().0, "HTTP/1.1 503 Service Unavailable");
    }

    #[test]
    fn half_closed_client_still_gets_its_reply() {
        let mut bench = bench();
        bench.receive(GET);
        bench.client.end(&mut bench.shared);
        bench.answer("x");
        assert_eq!(bench.take(), ("HTTP/1.1 200 OK".to_owned(), State::Closed));
    }

    #[test]
    fn end_within_a_request_is_400() {
        for begun in ["G", POST] {
            let mut bench = bench();
            bench.receive(begun);
            bench.client.end(&mut bench.shared);
            assert_eq!(bench.take(), ("HTTP/1.1 400 Bad Request".to_owned(), State::Closed));
        }
    }

    #[test]
    fn draining_ends_persistence() {
        let mut bench = bench();
        bench.receive(GET);
        bench.shared.draining = true;
        bench.answer("x");
        assert!(String::from_utf8_lossy(bench.client.output()).contains("\r\nConnection: close\r\n"));
        assert_eq!(bench.take().1, State::Lingering);
    }

    #[test]
    fn continue_comes_before_the_reply() {
        let mut bench = bench();
        let head = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
        assert_eq!(bench.receive(head), State::Body);
        assert_eq!(bench.take(), ("HTTP/1.1 100 Continue".to_owned(), State::Body));
        assert_eq!(bench.receive("abc"), State::Ready(Kind::Write));
    }
}
