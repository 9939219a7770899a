//! State that the threads of a run share: the model, the address of the service, and the progress of the round.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::model::Model;

/// The most lines that are kept of what a thread did last.
const RECENT: usize = 12;

/// Set as soon as a thread has failed, so that the others end too.
pub static FAILED: AtomicBool = AtomicBool::new(false);

pub fn has_failed() -> bool {
    FAILED.load(Ordering::SeqCst)
}

thread_local! {
    static RECENTLY: RefCell<VecDeque<String>> = const { RefCell::new(VecDeque::new()) };
}

/// Notes what this thread does, for the words of a failure.
pub fn note(what: String) {
    RECENTLY.with_borrow_mut(|recent| {
        recent.push_back(what);
        if recent.len() > RECENT {
            recent.pop_front();
        }
    });
}

/// The last lines of this thread.
pub fn recent() -> Vec<String> {
    RECENTLY.with_borrow(|recent| recent.iter().cloned().collect())
}

/// The disturbances of the round so far, which decide what a response may be.
#[derive(Default)]
pub struct Excuses {
    /// A process held the lock for longer than a create waits, or the service got SIGTERM while one did.
    pub lock: AtomicBool,
    /// The disk was full.
    pub full: AtomicBool,
    /// The service ended.
    pub ended: AtomicBool,
}

pub struct Run {
    model: Mutex<Model>,
    address: Mutex<Option<SocketAddr>>,
    /// Operations that clients have ended.
    pub progress: AtomicU64,
    pub excuses: Excuses,
    /// The service fails on purpose.
    pub is_drill: bool,
    counts: Mutex<BTreeMap<String, u64>>,
}

impl Run {
    pub fn new(model: Model, is_drill: bool) -> Self {
        Self {
            model: Mutex::new(model),
            address: Mutex::default(),
            progress: AtomicU64::new(0),
            excuses: Excuses::default(),
            is_drill,
            counts: Mutex::default(),
        }
    }

    /// The model. After a failure of another thread it may be read on.
    pub fn model(&self) -> MutexGuard<'_, Model> {
        self.model.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn into_model(self) -> Model {
        self.model
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts something for the summary.
    pub fn count(&self, what: impl Into<String>) {
        let mut counts = self.counts.lock().unwrap_or_else(PoisonError::into_inner);
        *counts.entry(what.into()).or_insert(0) += 1;
    }

    pub fn counts(&self) -> BTreeMap<String, u64> {
        self.counts
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone()
    }

    /// Where the service listens; `None` while there is none.
    pub fn address(&self) -> Option<SocketAddr> {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn set_address(&self, address: Option<SocketAddr>) {
        *self.address.lock().unwrap_or_else(PoisonError::into_inner) = address;
    }
}

/// Looks again after a moment. Counted rather than timed, so that a run can be stopped for as long as one likes.
pub fn wait_for(what: &str, mut condition: impl FnMut() -> bool) {
    for _ in 0..60_000 {
        if condition() || has_failed() {
            return;
        }
        std::thread::sleep(Duration::from_millis(2));
    }
    panic!("waited in vain for {what}");
}
