//! A worker behind a real tiny_http server, with a client that speaks like the gate.

use super::*;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};

use crate::testing::NearEnd;
use petstore_base::testing::{Folder, PATIENCE, logged};

/// A service made of a function.
struct Probe<F>(F);

impl<F: FnMut(&[Request], &mut Vec<Response>) -> Duration + Send + 'static> Service for Probe<F> {
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        self.0(requests, responses)
    }
    fn stop(&mut self) {}
}

/// Answers with the target and the length of the body.
fn echo(request: &Request) -> Response {
    Response::new(
        200,
        format!("{} {}", request.target, request.body.len()).into_bytes(),
    )
}

fn echo_all(requests: &[Request], responses: &mut Vec<Response>) -> Duration {
    responses.extend(requests.iter().map(echo));
    Duration::ZERO
}

struct Bench {
    stream: UnixStream,
    worker: Worker,
}

/// A worker with a service, and the gate's end of its lane.
fn worker(service: impl Service, died: impl FnOnce() + Send + 'static) -> (UnixStream, Worker) {
    let folder = Folder::new();
    let (listener, stream) = LaneListener::bind(&folder.0).unwrap();
    (
        stream,
        Worker::start(listener, "test".to_owned(), service, died).unwrap(),
    )
}

impl Bench {
    fn start(
        answer: impl FnMut(&[Request], &mut Vec<Response>) -> Duration + Send + 'static,
    ) -> Self {
        let (stream, worker) = worker(Probe(answer), || ());
        Self { stream, worker }
    }

    fn connect(&self) -> NearEnd {
        NearEnd::new(self.stream.try_clone().unwrap())
    }
}

#[test]
fn pipelined_requests_are_answered_in_order() {
    let bench = Bench::start(echo_all);
    let mut lane = bench.connect();
    let mut sending = NearEnd::new(lane.stream.try_clone().unwrap());
    let sender = std::thread::spawn(move || {
        (0..2000).for_each(|i| sending.ask(i, &format!("/{i}"), i % 7 * 400));
    });
    for i in 0..2000 {
        assert_eq!(lane.answer(), (i, format!("/{i} {}", i % 7 * 400)));
    }
    sender.join().unwrap();
    drop(lane);
    drop(bench.worker);
}

#[test]
fn service_may_answer_a_batch_in_parts() {
    let bench = Bench::start(|requests, responses| {
        responses.extend(requests.iter().take(2).map(echo));
        Duration::ZERO
    });
    let mut lane = bench.connect();
    (0..50).for_each(|i| lane.ask(i, &format!("/{i}"), 0));
    (0..50).for_each(|i| assert_eq!(lane.answer().1, format!("/{i} 0")));
    drop(lane);
    drop(bench.worker);
}

/// A service that reports the size of each batch, and ends it when the test permits.
fn held() -> (Bench, Receiver<usize>, Sender<()>) {
    let (ending, ended) = channel();
    let (let_go, release) = channel::<()>();
    let bench = Bench::start(move |requests, responses| {
        ending.send(requests.len()).unwrap();
        release.recv_timeout(PATIENCE).unwrap();
        echo_all(requests, responses)
    });
    (bench, ended, let_go)
}

#[test]
fn no_response_is_sent_before_its_batch_has_ended() {
    let (bench, ended, let_go) = held();
    let mut lane = bench.connect();
    lane.ask(0, "/", 0);
    assert_eq!(ended.recv_timeout(PATIENCE), Ok(1));
    lane.stream.set_nonblocking(true).unwrap();
    let early = lane.stream.read(&mut [0; 1]);
    assert_eq!(early.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    lane.stream.set_nonblocking(false).unwrap();
    let_go.send(()).unwrap();
    assert_eq!(lane.answer().1, "/ 0");
    drop(lane);
    drop(bench.worker);
}

#[test]
fn requests_that_wait_are_answered_together() {
    let (bench, ended, let_go) = held();
    let mut lane = bench.connect();
    let end = Instant::now() + PATIENCE;
    loop {
        assert!(Instant::now() < end, "each request was answered alone");
        lane.ask(0, "/", 0);
        assert_eq!(ended.recv_timeout(PATIENCE), Ok(1));
        (1..=20).for_each(|i| lane.ask(i, "/", 0));
        (0..=20).for_each(|_| let_go.send(()).unwrap());
        (0..=20).for_each(|i| assert_eq!(lane.answer().0, i));
        // How many the worker finds waiting is up to the threads, so it may take another round.
        if ended.try_iter().any(|requests| requests > 1) {
            break;
        }
    }
    drop(lane);
    drop(bench.worker);
}

#[test]
fn failed_batch_is_500_for_all_of_it() {
    for (target, answers) in [("/panic", 0), ("/none", 0), ("/more", 2)] {
        let bench = Bench::start(move |requests, responses| {
            assert_ne!(requests[0].target, "/panic", "asked to");
            if requests[0].target == "/fine" {
                return echo_all(requests, responses);
            }
            (0..answers).for_each(|_| responses.push(echo(&requests[0])));
            Duration::ZERO
        });
        let mut lane = bench.connect();
        lane.ask(0, target, 0);
        assert_eq!(lane.answer(), (0, "Fail".to_owned()));
        lane.ask(1, "/fine", 0);
        assert_eq!(lane.answer(), (1, "/fine 0".to_owned()));
        drop(lane);
        drop(bench.worker);
    }
}

#[test]
fn unprintable_response_costs_itself_alone() {
    let bench = Bench::start(|requests, responses| {
        responses.extend(requests.iter().map(|request| match request.target {
            "/control" => Response::new(200, b"").header("X", "\0"),
            "/split" => Response::new(200, b"").header("X", "a\r\nContent-Length: 7"),
            _ => echo(request),
        }));
        Duration::ZERO
    });
    let mut lane = bench.connect();
    for (i, target) in ["/a", "/control", "/b", "/split", "/c"]
        .into_iter()
        .enumerate()
    {
        lane.ask(i, target, 0);
    }
    for (i, expected) in ["/a 0", "Fail", "/b 0", "Fail", "/c 0"]
        .into_iter()
        .enumerate()
    {
        let (place, body) = lane.answer();
        assert_eq!(place, i);
        assert!(body.starts_with(expected), "{body}");
    }
    drop(lane);
    drop(bench.worker);
}

#[test]
fn end_reaches_a_worker_that_polls() {
    for _ in 0..20 {
        let bench = Bench::start(echo_all);
        let mut lane = bench.connect();
        // A worker polls when requests come one after the other.
        for i in 0..5 {
            lane.ask(i, "/", 0);
            lane.answer();
        }
        let (stopped, has_stopped) = channel();
        let worker = bench.worker;
        std::thread::spawn(move || {
            drop(worker);
            stopped.send(()).unwrap();
        });
        has_stopped.recv_timeout(PATIENCE).unwrap();
    }
}

#[test]
fn batch_under_way_is_answered_before_the_end() {
    let (bench, ended, let_go) = held();
    let mut lane = bench.connect();
    lane.ask(0, "/", 0);
    ended.recv_timeout(PATIENCE).unwrap();
    let worker = bench.worker;
    let stopper = std::thread::spawn(move || drop(worker));
    let_go.send(()).unwrap();
    assert_eq!(lane.answer().0, 0);
    drop(lane);
    stopper.join().unwrap();
}

/// A service that cannot even stop without a panic.
struct Broken;

impl Service for Broken {
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        echo_all(requests, responses)
    }
    fn stop(&mut self) {
        panic!("asked to");
    }
}

#[test]
fn stopped_worker_has_not_died() {
    let (died, has_died) = channel();
    let (_stream, worker) = worker(Broken, move || died.send(()).unwrap());
    assert_eq!(logged(|| drop(worker)), [""; 0], "it has ended in time");
    let word = has_died.recv_timeout(PATIENCE);
    assert_eq!(
        word,
        Err(RecvTimeoutError::Disconnected),
        "the sender is gone without a word"
    );
}

/// Says when it answers and when it rests, and wants to rest once a millisecond.
struct Resting(Sender<&'static str>);

impl Service for Resting {
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        let _ = self.0.send("answers");
        echo_all(requests, responses)
    }
    fn rest(&mut self) -> Option<Duration> {
        let _ = self.0.send("rests");
        Some(Duration::from_millis(1))
    }
    fn stop(&mut self) {}
}

#[test]
fn what_is_due_is_done_without_a_request() {
    let (sender, done) = channel();
    let (stream, worker) = worker(Resting(sender), || ());
    let bench = Bench { stream, worker };
    let mut lane = bench.connect();
    for what in ["rests", "rests", "rests"] {
        assert_eq!(done.recv_timeout(PATIENCE), Ok(what));
    }
    lane.ask(1, "/a", 0);
    assert_eq!(lane.answer(), (1, "/a 0".to_owned()));
}

/// A server that was unblocked, so that receiving returns at once.
fn unblocked() -> (Folder, tiny_http::Server) {
    let folder = Folder::new();
    let server = tiny_http::Server::http_unix(&folder.0.join("lane")).unwrap();
    server.unblock();
    (folder, server)
}

#[test]
fn requests_gather_where_several_came() {
    let ((_folder, server), mut pacing) = (unblocked(), Pacing::default());
    pacing.answered = 2;
    pacing.flush = 2 * MAX_PAUSE;
    let began = Instant::now();
    assert!(pacing.receive(&server, None).is_none());
    assert!(began.elapsed() >= MAX_PAUSE);
}

#[test]
fn next_request_is_looked_out_for_where_the_last_one_came_at_once() {
    let ((_folder, server), mut pacing) = (unblocked(), Pacing::default());
    pacing.answered = 1;
    pacing.came_at_once = true;
    let began = Instant::now();
    assert!(pacing.receive(&server, None).is_none());
    assert!(began.elapsed() >= POLL);
}

/// A request with this content.
fn job(content: &'static str) -> Job {
    Job::new(tiny_http::TestRequest::new().with_body(content).into())
}

#[test]
fn request_is_that_of_the_content() {
    let job = job("\0\0\0\0\0\0\x04\x52an-id\r\nX: y\r\n\r\nbody");
    assert_eq!(job.ticket, 0x452);
    let request = job.as_request();
    assert_eq!((request.id, request.body), ("an-id", &b"body"[..]));
    assert_eq!(request.header_values("X").collect::<Vec<_>>(), ["y"]);
}

#[test]
fn batch_has_its_most_requests() {
    let waiting = std::iter::repeat_with(|| tiny_http::TestRequest::new().into());
    assert_eq!(batch_of(waiting).len(), MAX_REQUESTS);
}

#[test]
fn what_has_no_response_yet_stays() {
    let mut batch: VecDeque<_> = (1..4_u8)
        .map(|ticket| job(format!("\0\0\0\0\0\0\0{}-\r\n\r\n", char::from(ticket)).leak()))
        .collect();
    let mut out = Vec::new();
    send(
        &mut batch,
        [b"a", b"b"]
            .map(|body| Response::new(200, body))
            .into_iter(),
        &mut out,
    );
    assert_eq!((batch.len(), out), (1, Vec::new()));
    assert_eq!(batch.front().map(|job| job.ticket), Some(3));
}
