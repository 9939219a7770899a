//! A real gate in front of lanes that the test serves itself.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::time::Duration;

use mio::{Events, Poll};

use super::*;
use crate::gate::{Gate, GateConfig};
use crate::lane::write_response;
use crate::limits::Limits;
use crate::listening::Listening;
use crate::refusal::RefusalReason;
use crate::stopper::{HealthCheck, Stopper};
use crate::testing::{FarEnd, all, answer, expect, request, respond_with};
use petstore_base::error::Error;
use petstore_base::http::response::Disposition;
use petstore_base::http::{Response, Size};
use petstore_base::testing::{Folder, PATIENCE};

/// A running gate.
pub struct Bench {
    pub address: std::net::SocketAddr,
    pub stopper: Stopper,
    pub gate: std::thread::JoinHandle<Result<(), Error>>,
}

/// The memory limit for all clients.
pub const MEMORY: usize = 64 * 1024 * 1024;

/// A lane to the far end at a path.
pub fn open(path: &std::path::Path, kind: LaneKind, window: usize) -> OpenLane {
    OpenLane {
        stream: UnixStream::connect(path).unwrap(),
        kind,
        window,
    }
}

pub fn config(lanes: Vec<OpenLane>) -> GateConfig {
    GateConfig {
        limits: Limits {
            connections: 100,
            memory: MEMORY,
            ..Limits::default()
        },
        lanes,
        size: |line| match line.rsplit(|byte| *byte == b'/').next() {
            Some(b"small") => Size::Small,
            Some(b"long") => Size::Long,
            _ => Size::Large,
        },
        ..GateConfig::default()
    }
}

impl Bench {
    pub fn start(lanes: Vec<OpenLane>) -> Self {
        let listening = Listening::bind(&([127, 0, 0, 1], 0).into()).unwrap();
        let address = listening.address.tcp().unwrap();
        let stopper = Stopper::default();
        let gate = Gate::new(listening, config(lanes), stopper.clone()).unwrap();
        let gate = std::thread::spawn(move || gate.run());
        Self {
            address,
            stopper,
            gate,
        }
    }

    pub fn ask(&self, path: &str) -> TcpStream {
        self.send(&format!(
            "GET {path} HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n"
        ))
    }

    pub fn ask_to_write(&self) -> TcpStream {
        self.send("POST /x HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")
    }

    pub fn send(&self, request: &str) -> TcpStream {
        let mut client = TcpStream::connect(self.address).unwrap();
        client.set_read_timeout(Some(PATIENCE)).unwrap();
        client.write_all(request.as_bytes()).unwrap();
        client
    }

    pub fn stop(self) {
        self.stopper.stop();
        self.gate.join().unwrap().unwrap();
    }

    /// Waits for the end of a gate whose lane has broken off.
    fn expect_end(self) {
        let line = self.gate.join().unwrap().unwrap_err().to_string();
        assert!(line.starts_with("a lane broke off: "), "{line}");
    }
}

/// A gate with one lane of a kind, and its far end.
fn served_by_the_test(kind: LaneKind, window: usize) -> (Folder, Bench, FarEnd) {
    let folder = Folder::new();
    let path = folder.0.join("lane");
    let far_end = FarEnd::bind(&path);
    let bench = Bench::start(vec![open(&path, kind, window)]);
    (folder, bench, far_end)
}

fn expect_503(client: TcpStream, reason: RefusalReason) {
    let response = all(client);
    assert!(response.starts_with("HTTP/1.1 503 "), "{response}");
    assert!(response.contains(&format!("{reason:?}")), "{response}");
    assert!(response.contains("\r\nRetry-After: "), "{response}");
}

#[test]
fn broken_lane_ends_the_service_with_a_response_to_each_client() {
    let response = |ticket| {
        let mut bytes = Vec::new();
        write_response(&Response::new(200, b"abc"), ticket, &mut bytes).unwrap();
        bytes
    };
    let mut broken_off = response(1);
    broken_off.pop();
    for garbage in [
        &b""[..],
        b"garbage\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n",
        &broken_off,
        &response(2),
        &response(0),
    ] {
        let (_folder, bench, far_end) = served_by_the_test(LaneKind::Read, 64);
        let mut lane = far_end.accept();
        let (first, second) = (bench.ask("/first"), bench.ask("/second"));
        request(&mut lane);
        request(&mut lane);
        lane.write_all(garbage).unwrap();
        drop(lane);
        expect_503(first, RefusalReason::Overloaded);
        expect_503(second, RefusalReason::Overloaded);
        bench.expect_end();
    }
}

#[test]
fn write_lost_with_its_lane_may_have_happened() {
    let (_folder, bench, far_end) = served_by_the_test(LaneKind::Write, 64);
    let mut lane = far_end.accept();
    let client = bench.ask_to_write();
    expect(&mut lane, "/x");
    drop(lane);
    expect_503(client, RefusalReason::OutcomeUnknown);
    bench.expect_end();
}

#[test]
fn response_that_passes_on_sends_the_request_down_the_other_lane() {
    let folder = Folder::new();
    let (read, write) = (folder.0.join("read"), folder.0.join("write"));
    let far_ends = [&read, &write].map(|path| FarEnd::bind(path));
    let bench = Bench::start(vec![
        open(&read, LaneKind::Read, 64),
        open(&write, LaneKind::Write, 64),
    ]);
    let [mut read, mut write] = far_ends.map(|far_end| far_end.accept());
    let client = bench.ask("/both");
    let ticket = expect(&mut read, "/both");
    respond_with(
        &mut read,
        ticket,
        &Response::only(Disposition::RetryOnWriter),
    );
    let ticket = expect(&mut write, "/both");
    answer(&mut write, ticket, "from the writer");
    let response = all(client);
    assert!(
        response.starts_with("HTTP/1.1 200 ") && response.ends_with("from the writer"),
        "{response}"
    );
    bench.stop();
}

#[test]
fn response_that_breaks_off_ends_the_connection_of_its_client_alone() {
    let (_folder, bench, far_end) = served_by_the_test(LaneKind::Read, 64);
    let mut lane = far_end.accept();
    let (one, other) = (bench.ask("/one"), bench.ask("/other"));
    let ticket = expect(&mut lane, "/one");
    respond_with(&mut lane, ticket, &Response::only(Disposition::Abort));
    assert_eq!(all(one), "");
    let ticket = expect(&mut lane, "/other");
    answer(&mut lane, ticket, "answered");
    assert!(all(other).ends_with("answered"));
    bench.stop();
}

#[test]
fn unasked_response_breaks_the_lane() {
    let (_folder, bench, far_end) = served_by_the_test(LaneKind::Read, 64);
    answer(&mut far_end.accept(), 1, "unasked");
    bench.expect_end();
}

#[test]
fn requests_beyond_the_window_wait_their_turn() {
    expect_wait_behind("/1", 1);
}

#[test]
fn nothing_waits_in_a_lane_behind_a_request_that_takes_long() {
    expect_wait_behind("/long", 64);
}

fn expect_wait_behind(first_target: &str, window: usize) {
    let folder = Folder::new();
    let path = folder.0.join("lane");
    let far_end = FarEnd::bind(&path);
    let bench = Bench::start(vec![open(&path, LaneKind::Read, window)]);
    let mut lane = far_end.accept();
    let first = bench.ask(first_target);
    let ticket = expect(&mut lane, first_target);
    let second = bench.ask("/2");
    // Once a later client is answered, the second has been read, and could have gone down the lane.
    assert!(all(bench.send("nonsense\r\n\r\n")).starts_with("HTTP/1.1 400 "));
    lane.set_nonblocking(true).unwrap();
    let early = lane.read(&mut [0; 1]).map_err(|error| error.kind());
    assert_eq!(early, Err(ErrorKind::WouldBlock));
    lane.set_nonblocking(false).unwrap();
    answer(&mut lane, ticket, "one");
    assert!(all(first).ends_with("one"));
    let ticket = expect(&mut lane, "/2");
    answer(&mut lane, ticket, "two");
    assert!(all(second).ends_with("two"));
    bench.stop();
}

#[test]
fn request_takes_the_lane_with_the_fewest() {
    let folder = Folder::new();
    let paths = ["first", "second"].map(|name| folder.0.join(name));
    let far_ends = [0, 1].map(|i| FarEnd::bind(&paths[i]));
    let address = |path: std::path::PathBuf| open(&path, LaneKind::Read, 64);
    let bench = Bench::start(paths.map(address).into());
    let [mut first, mut second] = far_ends.map(|far_end| far_end.accept());
    let clients = [bench.ask("/1"), bench.ask("/2")];
    // Each has one before any is answered.
    for (ticket, lane) in [&mut first, &mut second].map(|lane| (request(lane).0, lane)) {
        answer(lane, ticket, "");
    }
    clients
        .into_iter()
        .for_each(|client| assert!(all(client).starts_with("HTTP/1.1 200 ")));
    bench.stop();
}

#[test]
fn response_larger_than_what_sockets_hold_arrives_whole() {
    let (_folder, bench, far_end) = served_by_the_test(LaneKind::Read, 64);
    let mut lane = far_end.accept();
    let client = bench.ask("/");
    let ticket = expect(&mut lane, "/");
    let body = "x".repeat(16 * 1024 * 1024);
    answer(&mut lane, ticket, &body);
    // Once a later client is answered, the first has been sent as much as its socket takes.
    let later = bench.ask("/later");
    let ticket = expect(&mut lane, "/later");
    answer(&mut lane, ticket, "");
    all(later);
    let response = all(client);
    assert!(
        response
            .split_once("\r\n\r\n")
            .is_some_and(|(_, received)| received == body)
    );
    bench.stop();
}

/// An open lane, its far end, and its poll.
fn open_lane(window: usize) -> (Lane, UnixStream, Poll) {
    let folder = Folder::new();
    let path = folder.0.join("lane");
    let listener = UnixListener::bind(&path).unwrap();
    let address = open(&path, LaneKind::Read, window);
    let poll = Poll::new().unwrap();
    let lane = Lane::new(address, Token(7), poll.registry()).unwrap();
    (lane, listener.accept().unwrap().0, poll)
}

/// Responds to the next request, and receives the response.
fn respond(lane: &mut Lane, far_end: &mut UnixStream, path: &str) {
    let ticket = expect(far_end, path);
    answer(far_end, ticket, "");
    assert_eq!(received(lane, false), (1, false));
}

/// The number of responses of one read, and whether there may be more to read.
fn received(lane: &mut Lane, is_ending: bool) -> (usize, bool) {
    let mut count = 0;
    let has_more = lane.receive(is_ending, |_, _| count += 1).unwrap();
    (count, has_more)
}

const CLIENT: ClientId = ClientId { slot: 1, serial: 1 };

/// A request with a body of this length.
fn request_of(bytes: usize) -> LaneRequest {
    let mut request = LaneRequest::default();
    request.begin(b"GET", [b"/", b""], 0);
    request.end_head();
    request.body().extend(std::iter::repeat_n(b'x', bytes));
    request
}

#[test]
fn lane_has_a_window_of_requests_and_of_bytes() {
    let (mut lane, mut far_end, poll) = open_lane(3);
    for _ in 0..2 {
        assert!(
            lane.has_capacity(2 * WINDOW_BYTES),
            "a single one may have more"
        );
        let first = request_of(60);
        lane.push(CLIENT, b"-", &first, first.len());
        let left = WINDOW_BYTES - first.len();
        assert!(lane.has_capacity(left) && !lane.has_capacity(left + 1));
        (0..2).for_each(|_| lane.push(CLIENT, b"-", &request_of(0), 0));
        assert!(!lane.has_capacity(0), "three requests");
        lane.flush(poll.registry()).unwrap();
        (0..3).for_each(|_| respond(&mut lane, &mut far_end, "/"));
    }
}

#[test]
fn full_lane_gets_nothing_until_it_is_writable() {
    let (mut lane, mut far_end, mut poll) = open_lane(64);
    let mut events = Events::with_capacity(8);
    lane.push(CLIENT, b"-", &request_of(8 * 1024 * 1024), 0);
    lane.flush(poll.registry()).unwrap();
    assert!(!lane.has_capacity(0));
    let reader = std::thread::spawn(move || {
        let mut taken = 0;
        while taken < 8 * 1024 * 1024 {
            taken += far_end.read(&mut [0; 64 * 1024]).unwrap();
        }
        far_end
    });
    while !lane.has_capacity(0) {
        poll.poll(&mut events, Some(PATIENCE)).unwrap();
        assert!(
            events
                .iter()
                .any(|event| event.token() == Token(7) && event.is_writable())
        );
        lane.flush(poll.registry()).unwrap();
    }
    let far_end = reader.join().unwrap();
    // No event is needed any more when it accepts bytes.
    poll.poll(&mut events, Some(Duration::ZERO)).unwrap();
    assert!(events.is_empty(), "{events:?}");
    // Not only closed: a child that another test just starts has a copy of it for a moment.
    far_end.shutdown(Shutdown::Both).unwrap();
    lane.push(CLIENT, b"-", &request_of(0), 0);
    assert!(
        lane.flush(poll.registry()).is_err(),
        "it takes no more for ever"
    );
}

#[test]
fn lane_tells_whether_there_may_be_more_to_read() {
    let (mut lane, mut far_end, mut poll) = open_lane(64);
    let mut events = Events::with_capacity(8);
    let send = |far_end: &mut UnixStream, ticket| {
        let mut bytes = Vec::new();
        write_response(&Response::new(200, b"x"), ticket, &mut bytes).unwrap();
        far_end.write_all(&bytes).unwrap();
        bytes.len()
    };
    assert_eq!(received(&mut lane, false), (0, false), "nothing has come");
    (0..3).for_each(|_| lane.push(CLIENT, b"-", &request_of(0), 0));
    lane.input = vec![0; send(&mut far_end, 1) - 1];
    assert_eq!(received(&mut lane, false), (0, true), "the buffer is full");
    assert_eq!(received(&mut lane, false), (1, false));
    send(&mut far_end, 2);
    assert_eq!(received(&mut lane, true), (1, true), "its end has come too");
    lane.flush(poll.registry()).unwrap();
    // Closed with the request unread, which resets the connection.
    drop(far_end);
    while lane.receive(false, |_, _| ()).is_ok() {
        poll.poll(&mut events, Some(PATIENCE)).unwrap();
        assert!(!events.is_empty(), "nothing tells of its end");
    }
    assert!(lane.receive(false, |_, _| ()).is_err(), "it stays so");
}

#[test]
fn client_that_resets_the_connection_does_not_hold_up_others() {
    let (_folder, bench, far_end) = served_by_the_test(LaneKind::Read, 64);
    let mut lane = far_end.accept();
    let head =
        "GET /reset HTTP/1.1\r\nHost: h\r\nContent-Length: 1\r\nExpect: 100-continue\r\n\r\n";
    let mut client = bench.send(head);
    client.peek(&mut [0; 1]).unwrap();
    client.write_all(b"x").unwrap();
    let ticket = expect(&mut lane, "/reset");
    // Closed with the 100 Continue unread, which resets the connection.
    drop(client);
    answer(&mut lane, ticket, "reset");
    let client = bench.ask("/here");
    let ticket = expect(&mut lane, "/here");
    answer(&mut lane, ticket, "here");
    assert!(all(client).ends_with("here"));
    bench.stop();
}

#[test]
fn response_for_a_closed_connection_is_dropped() {
    let (_folder, bench, far_end) = served_by_the_test(LaneKind::Read, 64);
    let mut lane = far_end.accept();
    drop(bench.ask("/gone"));
    let gone = expect(&mut lane, "/gone");
    let client = bench.ask("/here");
    let here = expect(&mut lane, "/here");
    answer(&mut lane, gone, "gone");
    answer(&mut lane, here, "here");
    assert!(all(client).ends_with("here"));
    bench.stop();
}

#[test]
fn health_check_is_answered_by_the_lane_and_by_nobody_else() {
    let (_folder, bench, far_end) = served_by_the_test(LaneKind::Read, 64);
    let mut lane = far_end.accept();
    let health = HealthCheck::new(bench.stopper.clone(), "/healthz");
    assert!(
        !health.is_answered(Duration::from_millis(20)),
        "the lane has not answered yet"
    );
    let ticket = expect(&mut lane, "/healthz");
    answer(&mut lane, ticket, "too late");
    let answered = std::thread::spawn(move || health.is_answered(PATIENCE));
    let ticket = expect(&mut lane, "/healthz");
    answer(&mut lane, ticket, "ok");
    assert!(answered.join().unwrap());
    let health = HealthCheck::new(bench.stopper.clone(), "/healthz");
    let refused = std::thread::spawn(move || health.is_answered(PATIENCE));
    expect(&mut lane, "/healthz");
    drop(lane);
    assert!(
        !refused.join().unwrap(),
        "a lane that breaks off costs a 503"
    );
    bench.expect_end();
}

#[test]
fn dead_worker_ends_the_service_with_a_response_to_each_client() {
    let (_folder, bench, far_end) = served_by_the_test(LaneKind::Write, 1);
    let mut lane = far_end.accept();
    let (inside, waiting) = (bench.ask_to_write(), bench.ask_to_write());
    expect(&mut lane, "/x");
    // Once a later client is answered, the earlier ones have been read.
    assert!(all(bench.send("nonsense\r\n\r\n")).starts_with("HTTP/1.1 400 "));
    bench.stopper.fail(Error::new(
        petstore_base::error::ErrorKind::Internal,
        "the writer has died",
    ));
    let codes = [all(inside), all(waiting)].map(|response| {
        assert!(response.starts_with("HTTP/1.1 503 "), "{response}");
        response.contains("OutcomeUnknown")
    });
    assert!(
        codes.contains(&true) && codes.contains(&false),
        "one was in the lane, one was not"
    );
    assert_eq!(
        bench.gate.join().unwrap().unwrap_err().to_string(),
        "the writer has died"
    );
}
