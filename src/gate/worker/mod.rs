//! The worker's end of a lane: a tiny_http server on a private Unix socket, and one worker that drains its
//! queue. No other room names tiny_http. This one knows nothing of pets, or of the sockets of clients.
//!
//! A worker takes all waiting requests, lets the service answer them together, and then sends the responses, in order.
//! tiny_http blocks the response to a pipelined request until the ones before it are sent, so a lane has one worker and
//! is first in, first out.

mod lane_listener;
mod workers;

use std::collections::VecDeque;
use std::io::Write;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::lane::{Content, Ticket, ticket_of, write_response};
use petstore_base::error::{Error, ErrorKind};
use petstore_base::http::response::Disposition;
use petstore_base::http::{Request, Response, name_all};
use petstore_base::threads::start_thread;

pub use lane_listener::LaneListener;
pub use workers::Workers;

/// Answers the requests of a worker.
pub trait Service: Send + 'static {
    /// Answers at least the first request, or more, with one response each. They are sent when this returns. Returns the
    /// time that they waited for the disk, or zero.
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration;
    /// Called before each wait for a request. Does other work that is due, and returns the time until more is due; `None`
    /// if no more is.
    fn rest(&mut self) -> Option<Duration> {
        None
    }
    /// Called last, before the worker ends.
    fn stop(&mut self) {}
}

/// A function that answers one request at a time.
impl<F: FnMut(&Request) -> Response + Send + 'static> Service for F {
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        responses.extend(requests.iter().map(self));
        Duration::ZERO
    }
}

/// A running worker and its server. Dropping it stops them.
pub struct Worker {
    server: Arc<tiny_http::Server>,
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
    /// After the server.
    _unblocker: lane_listener::Unblocker,
}

/// The most threads of a worker and its server.
pub const THREADS: usize = 7;

impl Worker {
    /// Starts the server of a lane, and the worker. `died` is called if the worker ends without a stop.
    ///
    /// # Errors
    /// If the threads cannot be created.
    pub fn start(
        listener: LaneListener,
        name: String,
        service: impl Service,
        died: impl FnOnce() + Send + 'static,
    ) -> Result<Self, Error> {
        // tiny_http panics if it cannot start its first thread.
        let LaneListener {
            listener,
            unblocker,
        } = listener;
        let server = catch_unwind(|| tiny_http::Server::from_listener(listener, None))
            .map_err(|_| Error::no_thread(std::io::ErrorKind::WouldBlock.into()))?
            .map_err(|error| Error::new(ErrorKind::Io, format!("cannot open a lane: {error}")))?;
        let server = Arc::new(server);
        let stopping = Arc::new(AtomicBool::new(false));
        let source = Arc::clone(&server);
        let is_stopping = Arc::clone(&stopping);
        let work = move || {
            // It ends only by a stop or a panic.
            if guard(|| work(&source, &is_stopping, service)).is_none() {
                died();
            }
        };
        let thread = Some(start_thread(name, work)?);
        Ok(Self {
            server,
            stopping,
            thread,
            _unblocker: unblocker,
        })
    }
}

impl Drop for Worker {
    /// Lets the worker finish the waiting requests, and stops it.
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.server.unblock();
        // Its panic, if it had one, has been logged.
        let _ = self.thread.take().map(JoinHandle::join);
    }
}

fn work(server: &tiny_http::Server, stopping: &AtomicBool, mut service: impl Service) {
    let mut pacing = Pacing::default();
    let mut responses = Vec::new();
    let mut out = Vec::new();
    loop {
        let rest = guard(|| service.rest()).flatten();
        let Some(first) = pacing.receive(server, rest) else {
            if stopping.load(Ordering::SeqCst) {
                break;
            }
            continue;
        };
        let waiting = std::iter::from_fn(|| server.try_recv().ok().flatten());
        let mut batch = batch_of(std::iter::once(first).chain(waiting));
        let (count, mut flush) = (batch.len(), Duration::ZERO);
        while !batch.is_empty() {
            flush = answer(&mut service, &batch, &mut responses);
            send(&mut batch, responses.drain(..), &mut out);
        }
        pacing.answered = count;
        pacing.flush = flush;
        // Draining the queue may have swallowed the call to stop.
        if stopping.load(Ordering::SeqCst) {
            server.unblock();
        }
    }
    guard(|| service.stop());
}

/// Lets the service answer some of a batch: at least one request, and at most all.
fn answer(
    service: &mut impl Service,
    batch: &VecDeque<Job>,
    responses: &mut Vec<Response>,
) -> Duration {
    let requests: Vec<Request> = batch.iter().map(Job::as_request).collect();
    let flush = guard(|| service.answer(&requests, responses));
    if flush.is_none() || responses.is_empty() || responses.len() > requests.len() {
        // The outcome of the batch is unknown, so no response may report success.
        log::error!(
            "{}: a service failed to answer",
            name_all(requests.iter().map(|request| request.id))
        );
        responses.clear();
        responses.extend(requests.iter().map(|_| Response::only(Disposition::Fail)));
    }
    flush.unwrap_or_default()
}

/// Runs a part of the service; `None` if it panics. The panic hook logs the panic.
fn guard<T>(part: impl FnOnce() -> T) -> Option<T> {
    catch_unwind(AssertUnwindSafe(part)).ok()
}

/// The most requests answered together.
const MAX_REQUESTS: usize = 512;
/// The bytes of responses at which to send them, so that memory stays bounded.
const SEND_BYTES: usize = 64 * 1024;

/// A request from tiny_http with its content, which must be read before tiny_http reads the next request.
struct Job {
    request: tiny_http::Request,
    content: Vec<u8>,
    ticket: Ticket,
}

impl Job {
    fn new(mut request: tiny_http::Request) -> Self {
        let mut content = Vec::with_capacity(request.body_length().unwrap_or_default());
        if let Err(error) = request.as_reader().read_to_end(&mut content) {
            // The gate sends complete requests, so its end of the lane is closed, which it reports itself.
            log::debug!("a lane broke off within a request: {error}");
        }
        let ticket = ticket_of(&content);
        Self {
            request,
            content,
            ticket,
        }
    }

    fn as_request(&self) -> Request<'_> {
        // Content that is not from the gate counts as none.
        let Content {
            id,
            fields: headers,
            body,
        } = Content::read(&self.content).unwrap_or_default();
        Request {
            id,
            method: self.request.method().as_str(),
            target: self.request.url(),
            headers,
            body,
        }
    }
}

/// Reads the requests that are answered together, in the order of arrival.
fn batch_of(requests: impl Iterator<Item = tiny_http::Request>) -> VecDeque<Job> {
    requests.take(MAX_REQUESTS).map(Job::new).collect()
}

/// Sends the responses to the first requests of a batch, with few writes. A dropped writer of tiny_http lets the next
/// request of its connection respond.
fn send(
    batch: &mut VecDeque<Job>,
    responses: impl ExactSizeIterator<Item = Response>,
    out: &mut Vec<u8>,
) {
    let mut left = responses.len();
    for (job, response) in batch.drain(..left.min(batch.len())).zip(responses) {
        let is_head = *job.request.method() == tiny_http::Method::Head;
        let response = if is_head {
            response.without_body()
        } else {
            response
        };
        print(&response, &job, out);
        left -= 1;
        let mut writer = job.request.into_writer();
        if left == 0 || out.len() >= SEND_BYTES {
            if let Err(error) = writer.write_all(out).and_then(|()| writer.flush()) {
                log::debug!("a lane broke off within a response: {error}");
            }
            out.clear();
        }
    }
    out.shrink_to(SEND_BYTES);
}

/// Writes a response. If it cannot be written, only this one becomes a 500.
fn print(response: &Response, job: &Job, out: &mut Vec<u8>) {
    if let Err(flaw) = write_response(response, job.ticket, out) {
        log::error!(
            "request {}: a response was not sent: {flaw}",
            job.as_request().id
        );
        // This response can always be written.
        let _ = write_response(&Response::only(Disposition::Fail), job.ticket, out);
    }
}

/// The longest pause in which requests gather.
const MAX_PAUSE: Duration = Duration::from_millis(5);
/// The shortest pause; the operating system's timers are not more precise.
const MIN_PAUSE: Duration = Duration::from_micros(50);
/// The time for which a worker polls for the next request before it goes to sleep.
const POLL: Duration = Duration::from_micros(200);

/// Facts about the previous batch that predict the next one.
#[derive(Default)]
pub struct Pacing {
    /// The number of its requests.
    answered: usize,
    /// The time that its responses waited for the disk.
    flush: Duration,
    /// The first of them came at once.
    came_at_once: bool,
}

impl Pacing {
    /// Waits for the first request of the next batch, for at most this time. `None` if none came in time, or if the server
    /// may have been unblocked, because polling swallows that call.
    pub fn receive(
        &mut self,
        server: &tiny_http::Server,
        most: Option<Duration>,
    ) -> Option<tiny_http::Request> {
        if self.answered > 1 {
            gather(self.flush);
        }
        let asked = Instant::now();
        let next = match most {
            _ if self.answered == 1 && self.came_at_once => poll(server),
            Some(most) => server.recv_timeout(most).ok().flatten(),
            None => server.recv().ok(),
        };
        self.came_at_once = asked.elapsed() < POLL;
        if next.is_none() {
            self.answered = 0;
        }
        // Requests in the queue came before the stop, so they are answered.
        next.or_else(|| server.try_recv().ok().flatten())
    }
}

/// Polls briefly for the next request, and yields to other threads in between: this answers a client that asks again at
/// once sooner than a sleeping thread could wake up. If the last request took longer to come, there is no polling, so
/// slower clients cost nothing.
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

/// Lets other threads run, so that the clients of the last responses can send again and share the next batch. Without
/// this pause, a batch would have half of them, and the other half would wait for two flushes. The documentation of
/// `PostgreSQL` recommends half the time of a flush for `commit_delay`, which does the same.
fn gather(flush: Duration) {
    let pause = (flush / 2).min(MAX_PAUSE);
    if pause >= MIN_PAUSE {
        std::thread::sleep(pause);
    } else {
        std::thread::yield_now();
    }
}

#[cfg(test)]
mod tests;
