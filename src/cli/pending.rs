//! Waiting for work in another thread, but not for ever. A channel would do, but compiles to much more code.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

type Shared = Arc<(Mutex<bool>, Condvar)>;

/// Work that lasts until this is dropped.
pub struct Pending(Shared);

/// Waits for the end of the work.
pub struct Waiter(Shared);

/// Creates the two ends: one to drop when the work is done, one to wait with.
pub fn pending() -> (Pending, Waiter) {
    let shared = Shared::default();
    (Pending(Arc::clone(&shared)), Waiter(shared))
}

impl Drop for Pending {
    fn drop(&mut self) {
        let (has_ended, changed) = &*self.0;
        *has_ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
        changed.notify_all();
    }
}

impl Waiter {
    /// Waits for the end of the work, for `patience` at most.
    pub fn wait(&self, patience: Duration) {
        let (has_ended, changed) = &*self.0;
        let has_ended = has_ended.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = changed.wait_timeout_while(has_ended, patience, |has_ended| !*has_ended);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waiting_ends_with_the_work_or_with_patience() {
        let (work, waiter) = pending();
        waiter.wait(Duration::ZERO);
        // The work also ends if its thread panics.
        let thread = std::thread::spawn(move || {
            let _work = work;
            panic!("on purpose");
        });
        waiter.wait(Duration::MAX);
        assert!(thread.join().is_err());
        waiter.wait(Duration::MAX);
    }
}
