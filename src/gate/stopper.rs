//! What ends a running gate from another thread, and what asks it.

use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use mio::Waker;

/// Tells a running service to end.
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
    /// Has the service finish what was begun, and end.
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

    /// How many requests were begun and not finished when the service ended, as their time was over. While it
    /// ends: how many are not finished yet, up to a tenth of a second late. 0 before.
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
