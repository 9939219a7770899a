//! Starts threads, and locks what they share.

use std::io;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use std::thread::{self, JoinHandle};

use super::error::{Error, ErrorKind};

impl Error {
    /// Creates the error for a thread that could not be started.
    pub fn no_thread(error: io::Error) -> Self {
        let what =
            "cannot start a thread (ulimit -u, ulimit -v; Docker before 20.10.10 refuses clone3)";
        Self::io(what, error).with_kind(ErrorKind::Resources)
    }
}

/// Locks what stays usable after a panic.
pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Starts a thread.
///
/// # Errors
/// [`ErrorKind::Resources`] if the system allows no more.
pub fn start_thread<T: Send + 'static>(
    name: impl Into<String>,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<JoinHandle<T>, Error> {
    thread::Builder::new()
        .name(name.into())
        .spawn(work)
        .map_err(Error::no_thread)
}

/// Checks that the process can have `count` more threads, by starting and ending them.
///
/// # Errors
/// [`ErrorKind::Resources`] if the system allows fewer.
pub fn check_threads(count: usize) -> Result<(), Error> {
    let running = || std::fs::read_dir("/proc/self/task").map_or(0, Iterator::count);
    let before = running();
    let lock = RwLock::new(());
    let started = thread::scope(|scope| {
        let _held = lock.write();
        let start = |_| {
            thread::Builder::new()
                .spawn_scoped(scope, || drop(lock.read()))
                .map(drop)
        };
        (0..count).try_for_each(start)
    });
    // An ended thread still counts for a moment, so wait until the system has removed them.
    for _ in 0..1000 {
        if running() <= before {
            break;
        }
        thread::yield_now();
    }
    started.map_err(Error::no_thread)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn refused_thread_is_explained() {
        let none_left = Error::no_thread(Errno::AGAIN.into());
        assert_eq!(none_left.kind(), ErrorKind::Resources);
        assert!(none_left.to_string().contains("ulimit -u"), "{none_left}");
        let refused = Error::no_thread(Errno::PERM.into());
        assert!(refused.to_string().contains("clone3"), "{refused}");
    }
}
