//! The protocol between the program and its supervisor, such as systemd: the passed socket (`sd_listen_fds`), the
//! notifications (`sd_notify`) and the watchdog.

use std::os::fd::OwnedFd;
use std::time::Duration;

use petstore::{Error, ErrorKind, HealthCheck, start_thread};
use rustix::io::{FdFlags, fcntl_setfd};
use sd_notify::NotifyState;

/// Takes the socket that the supervisor passes (`LISTEN_FDS`) to this process (`LISTEN_PID`); `None` if it passes none.
///
/// Call this before opening any file: if the descriptor was not really passed, its number could be that of the file.
/// A command after `--` does not inherit it.
///
/// # Errors
/// [`ErrorKind::SocketUnusable`] if it is not exactly one open socket.
pub fn take_socket() -> Result<Option<OwnedFd>, Error> {
    let refused =
        |what: &str| Error::new(ErrorKind::SocketUnusable, format!("{what} (LISTEN_FDS)"));
    let passed = sd_listen_fds::get();
    let mut passed = passed
        .map_err(|_| refused("the number of sockets that the supervisor passes is malformed"))?;
    if passed.len() > 1 {
        let line = format!(
            "the supervisor passes {} sockets instead of one",
            passed.len()
        );
        // They may not be open, and then closing them would panic.
        std::mem::forget(passed);
        return Err(refused(&line));
    }
    let socket = passed.pop().map(|(_, socket)| socket.into_std());
    if let Some(socket) = &socket {
        // A descriptor that is not open is refused later, as one that is no socket.
        let _ = fcntl_setfd(socket, FdFlags::CLOEXEC);
    }
    Ok(socket)
}

/// Sends notifications to the supervisor, if one waits for them (`NOTIFY_SOCKET`).
pub fn notify(notices: &[NotifyState]) {
    if let Err(error) = sd_notify::notify(notices) {
        log::warn!("cannot notify the supervisor (NOTIFY_SOCKET): {error}");
    }
}

/// Notifies the supervisor's watchdog (`WATCHDOG_USEC`) while the service answers its own health checks.
pub fn start_watchdog(health: HealthCheck) -> Result<(), Error> {
    let Some(interval) = sd_notify::watchdog_enabled() else {
        return Ok(());
    };
    let watch = move || {
        loop {
            check(
                interval,
                |patience| health.is_answered(patience),
                || notify(&[NotifyState::Watchdog]),
            );
            // At least twice in each interval, as sd_watchdog_enabled(3) recommends.
            std::thread::sleep(interval / 4);
        }
    };
    // The thread ends with the process.
    start_thread("watchdog", watch).map(drop)
}

/// Checks once, and calls `notify` if the service answered.
fn check(interval: Duration, is_answered: impl Fn(Duration) -> bool, notify: impl Fn()) {
    if is_answered(interval) {
        notify();
    } else {
        log::warn!(
            "the service does not answer its own health check (GET /healthz), so the watchdog is not notified"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const INTERVAL: Duration = Duration::from_secs(3600);

    #[test]
    fn watchdog_is_notified_only_if_the_service_answers() {
        for answers in [true, false] {
            let notified = Cell::new(0);
            let is_answered = |patience| {
                assert_eq!(patience, INTERVAL);
                answers
            };
            check(INTERVAL, is_answered, || notified.set(notified.get() + 1));
            assert_eq!(notified.get(), i32::from(answers));
        }
    }
}
