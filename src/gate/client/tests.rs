//! The state machine, fed with bytes and answers.

use super::*;
use crate::wire::cors::Cors;
use petstore_base::http::Response;

struct Bench {
    shared: Shared,
    client: Client,
}

fn bench() -> Bench {
    let shared = Shared {
        now: Instant::now(),
        deadlines: Deadlines::default(),
        intake: Intake::default(),
        general: GeneralFields::new("petstore", &Cors::default()),
        draining: false,
        refuse: Box::new(Refusal::into_response),
        metrics: petstore_base::metrics::Metrics::default(),
    };
    let client = Client::new(Peer::Tcp(([127, 0, 0, 1], 9).into()), &shared);
    Bench { shared, client }
}

impl Bench {
    fn receive(&mut self, bytes: &str) -> ClientState {
        self.client.receive(bytes.as_bytes(), &mut self.shared);
        self.client.state()
    }

    fn go_inside(&mut self, kind: LaneKind) {
        self.client.enter(ClientState::Waiting, &self.shared);
        self.client.go_inside(kind, &self.shared);
    }

    fn answer(&mut self, body: &'static str) -> ClientState {
        self.go_inside(LaneKind::Read);
        self.client.respond(
            &LaneResponse::of(&Response::new(200, body.as_bytes()), &mut Vec::new()),
            &mut self.shared,
        );
        self.client.state()
    }

    /// Takes all the output: the status line of the last response and the state after it.
    fn take(&mut self) -> (String, ClientState) {
        let out = String::from_utf8(self.client.output().to_vec()).unwrap();
        self.client.consume_output(out.len(), &mut self.shared);
        let line = out
            .split("\r\n")
            .find(|line| line.starts_with("HTTP/1.1 "))
            .unwrap_or("");
        (line.to_owned(), self.client.state())
    }

    /// Moves the time to the deadline.
    fn expire(&mut self) -> ClientState {
        self.shared.now = self.client.deadline.unwrap();
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
        assert!(!bench.client.has_request());
        assert_eq!(bench.receive("G"), ClientState::Head);
        assert!(bench.client.has_request());
        assert_eq!(bench.receive(&GET[1..]), ClientState::Ready(LaneKind::Read));
        assert_eq!(bench.answer("x"), ClientState::Responding);
        assert_eq!(
            bench.take(),
            ("HTTP/1.1 200 OK".to_owned(), ClientState::Idle)
        );
        assert_eq!(bench.receive(POST), ClientState::Body);
        assert_eq!(bench.receive("abc"), ClientState::Ready(LaneKind::Write));
        assert_eq!(
            bench.client.request.len(),
            "POST / HTTP/1.1\r\n\r\nabc".len()
        );
        assert_eq!(bench.answer("y"), ClientState::Responding);
        assert_eq!(bench.take().1, ClientState::Idle);
        assert_eq!(bench.client.held(), 0);
    }
}

#[test]
fn pipelined_request_waits_for_the_response_before_it() {
    let mut bench = bench();
    assert_eq!(
        bench.receive(&format!("{GET}{POST}ab")),
        ClientState::Ready(LaneKind::Read)
    );
    assert!(!bench.client.wants_input());
    bench.answer("x");
    assert_eq!(bench.take().1, ClientState::Body);
    assert_eq!(bench.receive("c"), ClientState::Ready(LaneKind::Write));
}

#[test]
fn response_is_taken_in_pieces() {
    let mut bench = bench();
    bench.receive(GET);
    bench.answer("x");
    let length = bench.client.output().len();
    bench.client.consume_output(length - 1, &mut bench.shared);
    assert_eq!(bench.client.state(), ClientState::Responding);
    assert_eq!(bench.client.output(), b"x");
    bench.client.consume_output(1, &mut bench.shared);
    assert_eq!(bench.client.state(), ClientState::Idle);
}

#[test]
fn last_response_is_readable_before_the_close() {
    let mut bench = bench();
    assert_eq!(bench.receive("nonsense\r\n"), ClientState::Responding);
    assert!(bench.client.output().ends_with(b".\n"));
    assert_eq!(
        bench.take(),
        (
            "HTTP/1.1 400 Bad Request".to_owned(),
            ClientState::Lingering
        )
    );
    assert_eq!(bench.receive("more"), ClientState::Lingering);
}

#[test]
fn deadlines_are_totals() {
    let mut bench = bench();
    bench.receive("G");
    let head = bench.client.deadline;
    bench.shared.now += bench.shared.deadlines.head / 2;
    bench.receive("E");
    assert_eq!(bench.client.deadline, head, "a further byte gains nothing");
    bench.receive(&format!("T{}", &POST[4..]));
    let body = bench.client.deadline;
    assert_eq!(body, Some(bench.shared.now + bench.shared.deadlines.body));
    bench.shared.now += bench.shared.deadlines.body / 2;
    bench.receive("a");
    assert_eq!(bench.client.deadline, body);
}

#[test]
fn late_requests_get_408_and_silence_gets_nothing() {
    for begun in ["G", POST] {
        let mut bench = bench();
        bench.receive(begun);
        assert_eq!(bench.expire(), ClientState::Responding);
        assert_eq!(
            bench.take(),
            (
                "HTTP/1.1 408 Request Timeout".to_owned(),
                ClientState::Lingering
            )
        );
        assert_eq!(bench.expire(), ClientState::Closed);
    }
    for silent in ["", "\r\n"] {
        let mut bench = bench();
        bench.receive(silent);
        assert_eq!(bench.expire(), ClientState::Closed);
        assert_eq!(bench.client.output(), b"");
    }
}

#[test]
fn slow_reader_is_given_up() {
    let mut bench = bench();
    bench.receive(GET);
    bench.answer("x");
    assert_eq!(bench.expire(), ClientState::Closed);
    assert_eq!(
        bench.client.output(),
        b"",
        "nothing is sent to a client who was given up"
    );
}

#[test]
fn waiting_too_long_is_503() {
    let mut bench = bench();
    bench.receive(GET);
    bench.client.enter(ClientState::Waiting, &bench.shared);
    assert_eq!(bench.expire(), ClientState::Responding);
    assert!(String::from_utf8_lossy(bench.client.output()).contains("\r\nRetry-After: 1\r\n"));
    assert_eq!(bench.take().0, "HTTP/1.1 503 Service Unavailable");
}

#[test]
fn missing_response_is_a_503_that_says_if_the_outcome_is_known() {
    for (request, kind, reason) in [
        (GET, LaneKind::Read, RefusalReason::Overloaded),
        (POST, LaneKind::Write, RefusalReason::OutcomeUnknown),
    ] {
        let mut bench = bench();
        bench.receive(
            &format!("{request}abc")[..request.len() + if kind == LaneKind::Write { 3 } else { 0 }],
        );
        bench.go_inside(kind);
        assert_eq!(bench.expire(), ClientState::Responding);
        assert!(String::from_utf8_lossy(bench.client.output()).contains(&format!("{reason:?}")));
        assert_eq!(
            bench.take(),
            (
                "HTTP/1.1 503 Service Unavailable".to_owned(),
                ClientState::Lingering
            )
        );
    }
}

#[test]
fn request_that_reads_can_go_on_and_one_that_writes_is_let_go() {
    let mut bench = bench();
    bench.receive(GET);
    bench.go_inside(LaneKind::Read);
    bench
        .client
        .enter(ClientState::Ready(LaneKind::Write), &bench.shared);
    assert_eq!(bench.client.state(), ClientState::Ready(LaneKind::Write));
    assert_eq!(bench.client.request.line(), b"GET /");
    bench.go_inside(LaneKind::Write);
    assert_eq!(bench.client.request.len(), 0);
}

#[test]
fn half_closed_client_still_gets_its_response() {
    let mut bench = bench();
    bench.receive(GET);
    bench.client.end(&mut bench.shared);
    bench.answer("x");
    assert_eq!(
        bench.take(),
        ("HTTP/1.1 200 OK".to_owned(), ClientState::Closed)
    );
}

#[test]
fn end_within_a_request_is_400() {
    for begun in ["G", POST] {
        let mut bench = bench();
        bench.receive(begun);
        bench.client.end(&mut bench.shared);
        assert_eq!(
            bench.take(),
            ("HTTP/1.1 400 Bad Request".to_owned(), ClientState::Closed)
        );
    }
}

#[test]
fn draining_ends_persistence() {
    let mut bench = bench();
    bench.receive(GET);
    bench.shared.draining = true;
    bench.answer("x");
    assert!(String::from_utf8_lossy(bench.client.output()).contains("\r\nConnection: close\r\n"));
    assert_eq!(bench.take().1, ClientState::Lingering);
}

#[test]
fn idle_client_has_a_last_call() {
    let mut bench = bench();
    assert_eq!(
        bench.client.deadline,
        Some(bench.shared.now + bench.shared.deadlines.idle)
    );
    bench.shared.draining = true;
    bench.client.enter(ClientState::Idle, &bench.shared);
    assert_eq!(bench.client.deadline, Some(bench.shared.now + LAST_CALL));
    bench.receive(GET);
    bench.answer("x");
    assert_eq!(bench.take().1, ClientState::Lingering);
}

#[test]
fn continue_comes_before_the_response() {
    let mut bench = bench();
    let head = "POST / HTTP/1.1\r\nHost: h\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    assert_eq!(bench.receive(head), ClientState::Body);
    assert_eq!(
        bench.take(),
        ("HTTP/1.1 100 Continue".to_owned(), ClientState::Body)
    );
    assert_eq!(bench.receive("abc"), ClientState::Ready(LaneKind::Write));
}

#[test]
fn stray_line_end_in_two_pieces_asks_for_nothing() {
    let mut bench = bench();
    assert_eq!(bench.receive("\r"), ClientState::Idle);
    assert_eq!(bench.receive("\n"), ClientState::Idle);
    assert_eq!(bench.expire(), ClientState::Closed);
    assert_eq!(bench.client.output(), b"");
}

#[test]
fn evicted_client_gets_a_503_if_possible_and_holds_nothing() {
    for begun in ["GET / HT".to_owned(), format!("{POST}a"), GET.to_owned()] {
        let mut bench = bench();
        bench.receive(&begun);
        bench.client.evict(&mut bench.shared);
        assert!(bench.client.held() < 1024, "{}", bench.client.held());
        assert!(String::from_utf8_lossy(bench.client.output()).contains("\r\nRetry-After: 1\r\n"));
        assert_eq!(
            bench.take(),
            (
                "HTTP/1.1 503 Service Unavailable".to_owned(),
                ClientState::Lingering
            )
        );
    }
    let mut bench = bench();
    bench.receive(GET);
    bench.answer("x");
    bench.client.evict(&mut bench.shared);
    assert_eq!(
        (bench.client.state(), bench.client.held()),
        (ClientState::Closed, 0)
    );
}

#[test]
fn eviction_during_a_request_in_a_lane_drops_pipelined_bytes_alone() {
    let mut bench = bench();
    bench.receive(&format!("{GET}{GET}"));
    bench.go_inside(LaneKind::Read);
    assert!(bench.client.held() > 0);
    bench.client.evict(&mut bench.shared);
    assert_eq!(
        (bench.client.state(), bench.client.held()),
        (ClientState::Inside(LaneKind::Read), 0)
    );
    bench.client.respond(
        &LaneResponse::of(&Response::new(200, b"x"), &mut Vec::new()),
        &mut bench.shared,
    );
    assert_eq!(
        bench.take(),
        ("HTTP/1.1 200 OK".to_owned(), ClientState::Lingering)
    );
}

#[test]
fn client_behind_a_trusted_proxy_is_whom_it_names() {
    let request = "GET / HTTP/1.1\r\nHost: h\r\nX-Forwarded-For: 6.6.6.6, 1.2.3.4\r\n\r\n";
    let mut bench = bench();
    bench.receive(request);
    assert_eq!(bench.client.address, IpAddr::from([1, 2, 3, 4]));
    bench.answer("x");
    bench.take();
    bench.receive(GET);
    assert_eq!(
        bench.client.address,
        IpAddr::from([127, 0, 0, 1]),
        "the next request is for itself"
    );
    bench.client = Client::new(Peer::Tcp(([10, 0, 0, 1], 9).into()), &bench.shared);
    bench.receive(request);
    assert_eq!(
        bench.client.address,
        IpAddr::from([10, 0, 0, 1]),
        "not trusted"
    );
}

#[test]
fn bytes_after_the_last_response_are_dropped() {
    let mut bench = bench();
    bench.receive("nonsense\r\n");
    bench.take();
    assert_eq!(
        bench.receive(&"x".repeat(1024 * 1024)),
        ClientState::Lingering
    );
    assert_eq!((bench.client.wants_input(), bench.client.held()), (true, 0));
}

#[test]
fn lingering_ends_with_silence_or_enough() {
    let linger = Deadlines::default().linger;
    let mut bench = bench();
    bench.receive("nonsense\r\n");
    bench.take();
    let begun = bench.shared.now;
    for _ in 0..9 {
        bench.shared.now += linger * 3 / 4;
        bench.receive("x");
        let latest = begun + linger * MAX_LINGER_TIMES;
        assert_eq!(
            bench.client.deadline,
            Some(latest.min(bench.shared.now + linger))
        );
    }
    assert_eq!(bench.expire(), ClientState::Closed);
    let mut flood = self::bench();
    flood.receive("nonsense\r\n");
    flood.take();
    for _ in 0..MAX_LINGER_BYTES / 1024 {
        assert_eq!(flood.receive(&"x".repeat(1024)), ClientState::Lingering);
    }
    assert_eq!(flood.receive("x"), ClientState::Closed);
}

#[test]
fn request_begins_with_its_first_byte() {
    let mut bench = bench();
    for _ in 0..2 {
        bench.shared.now += Duration::from_secs(1);
        let begun = bench.shared.now;
        bench.receive("G");
        bench.shared.now += Duration::from_secs(1);
        bench.receive(&GET[1..]);
        assert_eq!(bench.client.begun, begun);
        bench.answer("x");
        bench.take();
    }
}

#[test]
fn end_between_requests_and_after_the_last_response_closes() {
    let mut idle = bench();
    idle.client.end(&mut idle.shared);
    assert_eq!(idle.client.state(), ClientState::Closed);
    let mut lingering = bench();
    lingering.receive("nonsense\r\n");
    assert_eq!(lingering.take().1, ClientState::Lingering);
    lingering.client.end(&mut lingering.shared);
    assert_eq!(lingering.client.state(), ClientState::Closed);
}

#[test]
fn request_is_held_and_then_its_response() {
    let mut bench = bench();
    bench.receive(GET);
    assert!(bench.client.held() >= bench.client.request.len());
    bench.answer("x");
    assert!(bench.client.held() >= bench.client.output().len());
}

#[test]
fn request_has_its_own_identifier_until_it_is_answered() {
    let mut bench = bench();
    assert_eq!(bench.client.id(), b"-");
    bench.receive("GET / HTTP/1.1\r\nHost: h\r\nX-Request-Id: mine\r\n\r\n");
    assert_eq!(bench.client.id(), b"mine");
    bench.answer("x");
    assert_eq!(bench.client.id(), b"-");
}

#[test]
fn all_requests_sent_ahead_are_read_one_after_the_other() {
    let mut bench = bench();
    let mut state = bench.receive(&GET.repeat(4));
    for _ in 0..4 {
        assert_eq!(state, ClientState::Ready(LaneKind::Read));
        bench.answer("x");
        state = bench.take().1;
    }
    assert_eq!((state, bench.client.held()), (ClientState::Idle, 0));
}

#[test]
fn waiting_client_that_is_evicted_gets_a_503_and_an_idle_one_is_closed() {
    let mut waiting = bench();
    waiting.receive(GET);
    waiting.client.enter(ClientState::Waiting, &waiting.shared);
    waiting.client.evict(&mut waiting.shared);
    assert_eq!(
        waiting.take(),
        (
            "HTTP/1.1 503 Service Unavailable".to_owned(),
            ClientState::Lingering
        )
    );
    let mut idle = bench();
    idle.client.evict(&mut idle.shared);
    assert_eq!(idle.client.state(), ClientState::Closed);
}
