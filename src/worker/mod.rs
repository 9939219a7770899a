//! The lanes behind the gate: each a tiny_http server on a private Unix socket, and one worker that
//! drains its queue. The only file that names tiny_http; knows nothing of pets.
//!
//! A worker takes one request, then whatever else waits, has all answered between the service's `begin`
//! and `end`, and only then sends the responses, in order. tiny_http blocks the answer to a pipelined
//! request until those before it are answered, so a lane has one worker, and is first in, first out.

use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::http::{ApiError, Code};
use crate::http::{Request, Response};

/// The most requests answered together.
const BATCH_REQUESTS: usize = 512;
/// Responses are sent on once this many bytes are ready, so that memory stays bounded.
const SEND_BYTES: usize = 64 * 1024;
/// The longest pause in which requests gather.
const MAX_PAUSE: Duration = Duration::from_millis(5);
/// A shorter one is beyond the precision of the operating system's timers.
const MIN_PAUSE: Duration = Duration::from_micros(50);
/// How long a worker polls for the next request before it goes to sleep.
const POLL: Duration = Duration::from_micros(200);

/// What a worker asks of the service behind it.
pub trait Service: Send + 'static {
    /// A batch begins.
    fn begin(&mut self);
    /// Answers one request of the batch. A panic in here costs this one response.
    fn answer(&mut self, request: &Request) -> Response;
    /// The batch is answered. Its responses, one for each request, are sent when this returns, which says
    /// how long they waited for the disk; zero where they did not.
    fn end(&mut self, responses: &mut [Response]) -> Duration;
    /// Somebody called [`Lane::waker`]'s function.
    fn wake(&mut self);
    /// The last call.
    fn stop(&mut self);
}

/// A running lane.
pub struct Lane {
    server: Arc<tiny_http::Server>,
    stopping: Arc<AtomicBool>,
    worker: JoinHandle<()>,
}

impl Lane {
    /// Starts the server on a socket at `path`, and its worker.
    ///
    /// # Errors
    /// One plain line, where the socket or the thread cannot be had.
    pub fn start(path: &Path, name: String, service: impl Service) -> Result<Self, String> {
        let server = tiny_http::Server::http_unix(path)
            .map_err(|error| format!("cannot listen on {}: {error}", path.display()))?;
        let server = Arc::new(server);
        let stopping = Arc::new(AtomicBool::new(false));
        let worker = {
            let (server, stopping) = (Arc::clone(&server), Arc::clone(&stopping));
            std::thread::Builder::new()
                .name(name)
                .spawn(move || work(&server, &stopping, service))
                .map_err(|error| format!("cannot start a worker: {error}"))?
        };
        Ok(Self { server, stopping, worker })
    }

    /// A function that has the worker call [`Service::wake`].
    pub fn waker(&self) -> impl Fn() + Send + Sync + 'static {
        let server = Arc::clone(&self.server);
        move || server.unblock()
    }

    /// Lets the worker finish what waits, and stops it.
    pub fn stop(self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.server.unblock();
        if self.worker.join().is_err() {
            log::error!("a worker ended with a panic");
        }
    }
}

/// A request taken from tiny_http, with its body read: until then the lane's next request is not read.
struct Taken {
    request: tiny_http::Request,
    body: Vec<u8>,
}

impl Taken {
    fn new(mut request: tiny_http::Request) -> Self {
        let mut body = Vec::new();
        if request.body_length().is_some_and(|length| length > 0)
            && let Err(error) = request.as_reader().read_to_end(&mut body)
        {
            // The gate sends whole requests, so its end of the lane is gone, and nobody waits.
            log::error!("a lane broke off within a request: {error}");
        }
        Self { request, body }
    }

    fn as_request(&self) -> Request<'_> {
        let headers = self.request.headers();
        Request {
            method: self.request.method().as_str(),
            target: self.request.url(),
            headers: headers.iter().map(|h| (h.field.as_str().as_str(), h.value.as_str())).collect(),
            body: &self.body,
        }
    }
}

fn work(server: &tiny_http::Server, stopping: &AtomicBool, mut service: impl Service) {
    let mut taken = Vec::new();
    let mut responses = Vec::new();
    let mut out = Vec::new();
    // Of the batch before: how many were answered, how long they waited for the disk, and how long the
    // worker had waited for the first of them.
    let (mut answered, mut flush, mut gap) = (0, Duration::ZERO, Duration::MAX);
    loop {
        if answered > 1 {
            gather(flush);
        }
        let asked = Instant::now();
        let next = if answered == 1 && gap < POLL { poll(server) } else { server.recv().ok() };
        gap = asked.elapsed();
        match next {
            Some(request) => taken.push(Taken::new(request)),
            // `unblock` was called, to wake the worker or to stop it, or may have been: polling for a
            // request swallows such a call.
            None => {
                // What waits in the queue was begun before the stop, and is answered.
                if let Ok(Some(request)) = server.try_recv() {
                    taken.push(Taken::new(request));
                } else if stopping.load(Ordering::SeqCst) {
                    break;
                } else {
                    guard(|| service.wake());
                    continue;
                }
            }
        }
        while taken.len() < BATCH_REQUESTS
            && let Ok(Some(request)) = server.try_recv()
        {
            taken.push(Taken::new(request));
        }
        answered = taken.len();
        flush = answer(&mut service, &taken, &mut responses);
        send(taken.drain(..).zip(responses.drain(..)), &mut out);
        // Draining the queue may have swallowed the wake-up call.
        if stopping.load(Ordering::SeqCst) {
            server.unblock();
        }
    }
    guard(|| service.stop());
}

/// Looks out for the next request for a moment, between turns for other threads: one client who asks again
/// at once is answered sooner than a sleeping thread is woken. Whose last request took longer to come is not
/// polled for, so that nothing is spent on slower clients.
fn poll(server: &tiny_http::Server) -> Option<tiny_http::Request> {
    let began = Instant::now();
    while began.elapsed() < POLL {
        if let Ok(Some(request)) = server.try_recv() {
            return Some(request);
        }
        std::thread::yield_now();
    }
    None
}

/// Lets those go first who were woken by the last responses, where requests come in numbers: what they bring
/// makes one batch, while a worker that goes on at once begins with half of it, and the other half waits
/// for that one's flush before it has its own.
fn gather(flush: Duration) {
    match pause(flush) {
        Some(pause) => std::thread::sleep(pause),
        None => std::thread::yield_now(),
    }
}

/// Half the time of a flush: what the documentation of `PostgreSQL` recommends for `commit_delay`, which
/// does the same. `None` where it is too short for a timer.
fn pause(flush: Duration) -> Option<Duration> {
    Some((flush / 2).min(MAX_PAUSE)).filter(|pause| *pause >= MIN_PAUSE)
}

/// Has a batch answered: one response for each request, whatever panics. Returns how long they waited for the
/// disk.
fn answer(service: &mut impl Service, taken: &[Taken], responses: &mut Vec<Response>) -> Duration {
    guard(|| service.begin());
    for taken in taken {
        let response = guard(|| service.answer(&taken.as_request()));
        responses.push(response.unwrap_or_else(|| ApiError::new(Code::Internal).into_response()));
    }
    guard(|| service.end(responses)).unwrap_or_else(|| {
        // Nobody knows what became of the batch, so nobody is told that it succeeded.
        responses.fill_with(|| ApiError::new(Code::Internal).into_response());
        Duration::ZERO
    })
}

/// Runs a part of the service; `None` where it panicked. The panic itself is printed by its hook.
fn guard<T>(part: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(part)).ok()
}

/// Sends the responses in order, as many as possible in one write: a request whose writer is dropped
/// unused only passes the turn on to the next of the connection, and a lane has one connection.
fn send(answered: impl ExactSizeIterator<Item = (Taken, Response)>, out: &mut Vec<u8>) {
    let mut left = answered.len();
    for (taken, response) in answered {
        response.write_to(out);
        left -= 1;
        let mut writer = taken.request.into_writer();
        if left == 0 || out.len() >= SEND_BYTES {
            if let Err(error) = writer.write_all(out).and_then(|()| writer.flush()) {
                log::error!("a lane broke off within a response: {error}");
            }
            out.clear();
        }
    }
    out.shrink_to(SEND_BYTES);
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Read;
    use std::os::unix::net::UnixStream;

    struct Probe {
        answered: usize,
    }

    impl Service for Probe {
        fn begin(&mut self) {
            self.answered = 0;
        }
        fn answer(&mut self, request: &Request) -> Response {
            assert_ne!(request.target, "/panic", "asked to");
            self.answered += 1;
            let body = format!("{} {}", request.target, request.body.len());
            Response { status: 200, body: body.into_bytes(), ..Response::default() }
        }
        fn end(&mut self, responses: &mut [Response]) -> Duration {
            assert!(self.answered <= responses.len());
            MAX_PAUSE
        }
        fn wake(&mut self) {}
        fn stop(&mut self) {}
    }

    /// Sends `requests` and returns the responses, once `end` has come.
    fn exchange(requests: &str, end: &str) -> String {
        let folder = crate::store::tests::Folder::new();
        let path = folder.0.join("lane");
        let lane = Lane::start(&path, "test".to_owned(), Probe { answered: 0 }).unwrap();
        let mut stream = UnixStream::connect(&path).unwrap();
        let mut sending = stream.try_clone().unwrap();
        let requests = requests.to_owned();
        let sender = std::thread::spawn(move || sending.write_all(requests.as_bytes()).unwrap());
        let mut read = Vec::new();
        while !String::from_utf8_lossy(&read).ends_with(end) {
            let mut piece = [0; 4096];
            let length = stream.read(&mut piece).unwrap();
            assert_ne!(length, 0, "{}", String::from_utf8_lossy(&read));
            read.extend_from_slice(&piece[..length]);
        }
        sender.join().unwrap();
        drop(stream);
        lane.stop();
        String::from_utf8(read).unwrap()
    }

    #[test]
    fn pipelined_requests_are_answered_in_order() {
        let mut requests = String::new();
        for i in 0..2000 {
            let body = "x".repeat(i % 7 * 400);
            requests += &format!("POST /{i} HTTP/1.1\r\nContent-Length: {}\r\n\r\n{body}", body.len());
        }
        let responses = exchange(&requests, &format!("/1999 {}", 1999 % 7 * 400));
        let mut rest = responses.as_str();
        for i in 0..2000 {
            let body = format!("\r\n\r\n/{i} {}", i % 7 * 400);
            let at = rest.find(&body).unwrap_or_else(|| panic!("response {i} is missing or out of order"));
            rest = &rest[at + body.len()..];
        }
    }

    /// A service whose batches end only when the test lets them.
    struct Held {
        ending: std::sync::mpsc::Sender<usize>,
        release: std::sync::mpsc::Receiver<()>,
    }

    impl Service for Held {
        fn begin(&mut self) {}
        fn answer(&mut self, _: &Request) -> Response {
            Response { status: 201, body: b"x".to_vec(), ..Response::default() }
        }
        fn end(&mut self, responses: &mut [Response]) -> Duration {
            self.ending.send(responses.len()).unwrap();
            self.release.recv().unwrap();
            Duration::ZERO
        }
        fn wake(&mut self) {}
        fn stop(&mut self) {}
    }

    #[test]
    fn no_response_is_sent_before_its_batch_has_ended() {
        let folder = crate::store::tests::Folder::new();
        let path = folder.0.join("lane");
        let (ending, ended) = std::sync::mpsc::channel();
        let (let_go, release) = std::sync::mpsc::channel();
        let lane = Lane::start(&path, "test".to_owned(), Held { ending, release }).unwrap();
        let mut stream = UnixStream::connect(&path).unwrap();
        stream.write_all(b"POST / HTTP/1.1\r\n\r\n").unwrap();
        assert_eq!(ended.recv(), Ok(1));
        stream.set_nonblocking(true).unwrap();
        let early = stream.read(&mut [0; 1]);
        assert_eq!(early.unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
        stream.set_nonblocking(false).unwrap();
        let_go.send(()).unwrap();
        assert_eq!(stream.read(&mut [0; 1]).unwrap(), 1);
        drop(stream);
        lane.stop();
    }

    #[test]
    fn pause_is_half_a_flush_within_bounds() {
        assert_eq!(pause(Duration::ZERO), None);
        assert_eq!(pause(MIN_PAUSE), None);
        assert_eq!(pause(2 * MIN_PAUSE), Some(MIN_PAUSE));
        assert_eq!(pause(Duration::from_secs(5)), Some(MAX_PAUSE));
    }

    /// A service that says when it is woken.
    struct Woken(std::sync::mpsc::Sender<()>);

    impl Service for Woken {
        fn begin(&mut self) {}
        fn answer(&mut self, _: &Request) -> Response {
            Response { status: 200, body: b"x".to_vec(), ..Response::default() }
        }
        fn end(&mut self, _: &mut [Response]) -> Duration {
            Duration::ZERO
        }
        fn wake(&mut self) {
            let _ = self.0.send(());
        }
        fn stop(&mut self) {}
    }

    #[test]
    fn wake_up_call_and_end_reach_a_worker_that_polls() {
        let folder = crate::store::tests::Folder::new();
        for turn in 0..20 {
            let path = folder.0.join(turn.to_string());
            let (wake, woken) = std::sync::mpsc::channel();
            let lane = Lane::start(&path, "test".to_owned(), Woken(wake)).unwrap();
            let waker = lane.waker();
            let mut stream = UnixStream::connect(&path).unwrap();
            let mut ask = || {
                stream.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
                let mut response = Vec::new();
                while !response.ends_with(b"\r\n\r\nx") {
                    let mut piece = [0; 256];
                    let length = stream.read(&mut piece).unwrap();
                    assert_ne!(length, 0, "the lane broke off");
                    response.extend_from_slice(&piece[..length]);
                }
            };
            for _ in 0..20 {
                // One request after the other is what a worker polls for.
                (0..5).for_each(|_| ask());
                woken.try_iter().for_each(drop);
                waker();
                woken.recv().unwrap();
            }
            ask();
            lane.stop();
        }
    }

    #[test]
    fn panic_costs_one_response() {
        let responses =
            exchange("GET /a HTTP/1.1\r\n\r\nGET /panic HTTP/1.1\r\n\r\nGET /b HTTP/1.1\r\n\r\n", "/b 0");
        assert!(responses.contains("\r\n\r\n/a 0HTTP/1.1 500 "), "{responses}");
        assert!(responses.contains("\"code\":\"internal_error\""), "{responses}");
    }
}
