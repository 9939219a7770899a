//! What ends a running gate from another thread, and what asks it.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mio::Waker;

/// Ends a running [`Server`](crate::Server) from any thread. Clones end the same server.
#[derive(Clone, Default)]
pub struct Stopper(Arc<Word>);

#[derive(Default)]
struct Word {
    stopping: AtomicBool,
    /// Why it stops, where that is a failure.
    reason: OnceLock<String>,
    failure: OnceLock<String>,
    /// Requests that were not finished when it was looked last, since the end began.
    cut_off: AtomicUsize,
    /// Connections of the service's own, which are not let in yet.
    own: Mutex<Vec<UnixStream>>,
    /// Wakes the gate, once there is one.
    waker: OnceLock<Waker>,
}

impl Stopper {
    /// Ends the service once the requests under way are finished. Returns at once;
    /// [`Server::wait`](crate::Server::wait) returns at the end.
    pub fn stop(&self) {
        self.0.stopping.store(true, Ordering::SeqCst);
        self.wake();
    }

    /// Has the service finish what was begun, and end with this reason as a failure. The first one counts.
    pub(crate) fn stop_because(&self, reason: String) {
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

    /// Has the service tell its clients that it cannot go on, and end with this reason. The first one counts.
    pub(crate) fn fail(&self, reason: String) {
        let _ = self.0.failure.set(reason);
        self.wake();
    }

    /// Has the gate serve the other end of a connection of our own, which does not wait for bytes.
    pub(super) fn let_in(&self, stream: UnixStream) {
        self.0.own.lock().unwrap_or_else(PoisonError::into_inner).push(stream);
        self.wake();
    }

    pub(super) fn take_own(&self) -> Vec<UnixStream> {
        std::mem::take(&mut *self.0.own.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Whether it was told to end.
    pub(crate) fn is_stopping(&self) -> bool {
        self.0.stopping.load(Ordering::SeqCst)
    }

    pub(super) fn reason(&self) -> Option<&str> {
        self.0.reason.get().map(String::as_str)
    }

    pub(super) fn failure(&self) -> Option<&str> {
        self.0.failure.get().map(String::as_str)
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
