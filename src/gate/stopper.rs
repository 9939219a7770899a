//! Ends a running gate from another thread, and checks its health from within the process.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::Duration;

use mio::Waker;

use petstore_base::error::Error;
use petstore_base::threads::lock;

/// Ends a running server from any thread. Clones end the same server.
///
/// ```
/// # fn end_with_the_input(stopper: &petstore_gate::Stopper) {
/// let stopper = stopper.clone();
/// std::thread::spawn(move || {
///     let _ = std::io::stdin().read_line(&mut String::new());
///     stopper.stop();
/// });
/// # }
/// ```
#[derive(Clone, Debug, Default)]
pub struct Stopper(Arc<Signals>);

#[derive(Debug, Default)]
struct Signals {
    stopping: AtomicBool,
    /// The failure that ends the service, if one does.
    reason: OnceLock<Error>,
    /// The service cannot even finish the requests under way.
    failing: AtomicBool,
    /// The number of unfinished requests at the last check since the end began.
    cut_off: AtomicUsize,
    /// The connections of health checks, not accepted yet.
    health_checks: Mutex<Vec<UnixStream>>,
    /// Wakes the gate, once there is one.
    waker: OnceLock<Waker>,
}

impl Stopper {
    /// Ends the service once the requests under way are finished. Returns at once: [`Gate::run`](crate::Gate::run)
    /// returns at the end.
    ///
    /// Idle threads of tiny_http, about ten a server, end five seconds after that. They hold no file and no connection.
    pub fn stop(&self) {
        self.0.stopping.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Ends the service with this failure once the requests under way are finished. The first failure counts.
    pub fn stop_because(&self, reason: Error) {
        if self.0.reason.set(reason).is_ok() {
            self.stop();
        }
    }

    /// The number of requests that were still unfinished when the service ended, because their time was over. While
    /// the service ends: the number of unfinished requests, up to a tenth of a second ago. Before: 0.
    pub fn cut_off(&self) -> usize {
        self.0.cut_off.load(Ordering::SeqCst)
    }

    pub(super) fn note_cut_off(&self, count: usize) {
        self.0.cut_off.store(count, Ordering::SeqCst);
    }

    /// Ends the service with this failure. The requests under way get a 503. The first failure counts.
    pub fn fail(&self, reason: Error) {
        let _ = self.0.reason.set(reason);
        self.0.failing.store(true, Ordering::SeqCst);
        self.stop();
    }

    /// Passes the gate a connection of a health check, which must be nonblocking.
    pub(super) fn add_health_check(&self, stream: UnixStream) {
        lock(&self.0.health_checks).push(stream);
        self.wake();
    }

    pub(super) fn take_health_checks(&self) -> Vec<UnixStream> {
        std::mem::take(&mut *lock(&self.0.health_checks))
    }

    /// Returns whether the service ends.
    pub(super) fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::SeqCst)
    }

    pub(super) fn is_failing(&self) -> bool {
        self.0.failing.load(Ordering::SeqCst)
    }

    /// The failure that ends the service, if one does: a copy, because other threads need it too.
    pub(super) fn reason(&self) -> Option<Error> {
        self.0
            .reason
            .get()
            .map(|reason| Error::new(reason.kind(), reason.to_string()))
    }

    pub(super) fn attach(&self, waker: Waker) {
        let _ = self.0.waker.set(waker);
    }

    fn wake(&self) {
        if let Some(Err(error)) = self.0.waker.get().map(Waker::wake) {
            log::error!("cannot wake the gate: {error}");
        }
    }
}

const EXPECTED: &[u8] = b"HTTP/1.1 200 ";

/// Checks from within the process whether a running service answers, like a GET from outside.
///
/// The request takes the way of all others, through the gate, a reading thread and the writing thread. It needs no free
/// connection, but queues as any request does: a busy service passes if it answers in time.
///
/// ```
/// # fn watch(check: &petstore_gate::HealthCheck) {
/// if !check.is_answered(std::time::Duration::from_secs(5)) {
///     eprintln!("the service does not answer");
/// }
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct HealthCheck {
    stopper: Stopper,
    path: &'static str,
}

impl HealthCheck {
    /// A check that asks for a path of the server that `stopper` stops.
    pub fn new(stopper: Stopper, path: &'static str) -> Self {
        Self { stopper, path }
    }

    /// Sends a request, and returns whether the service answers it within `patience`.
    pub fn is_answered(&self, patience: Duration) -> bool {
        self.ask(patience).unwrap_or(false)
    }

    fn ask(&self, patience: Duration) -> io::Result<bool> {
        let (mut here, there) = UnixStream::pair()?;
        write!(
            here,
            "GET {} HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: watchdog\r\nConnection: close\r\n\r\n",
            self.path
        )?;
        there.set_nonblocking(true)?;
        self.stopper.add_health_check(there);
        // A timeout of zero is not allowed. The gate sends a response in one piece, so one timeout is enough.
        here.set_read_timeout(Some(patience.max(Duration::from_millis(1))))?;
        let mut start = [0; EXPECTED.len()];
        here.read_exact(&mut start)?;
        Ok(start == EXPECTED)
    }
}
