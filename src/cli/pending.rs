//! The end of a work in another thread, which is waited for, but not for ever. A channel could tell it too, with
//! much more code.

use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

type Shared = Arc<(Mutex<bool>, Condvar)>;

/// A work that goes on until this is dropped.
pub struct Pending(Shared);

/// Waits for the end of a work.
pub struct Waiter(Shared);

/// A work that has begun, and what waits for its end.
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
    /// Waits for the end, for so long at the most.
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
    fn end_is_waited_for_and_not_for_ever() {
        let (work, waiter) = pending();
        waiter.wait(Duration::ZERO);
        // It ends where the thread panics, too.
        let thread = std::thread::spawn(move || {
            let _work = work;
            panic!("on purpose");
        });
        waiter.wait(Duration::MAX);
        assert!(thread.join().is_err());
        waiter.wait(Duration::MAX);
    }
}
