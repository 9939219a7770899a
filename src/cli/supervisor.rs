//! The protocol between the program and its supervisor, such as systemd: the passed socket (`sd_listen_fds`), the
//! notifications (`sd_notify`) and the watchdog.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use petstore::{Error, ErrorKind, HealthCheck};
use sd_notify::NotifyState;

use super::output::start_thread;

/// Takes the socket that the supervisor passes (`LISTEN_FDS`) to this process (`LISTEN_PID`), if any.
///
/// Call this before opening any file: the number of a descriptor that was not passed could become that file.
/// The environment variables stay as they are, because the service starts no other program.
///
/// # Errors
/// [`ErrorKind::SocketUnusable`] if it is not exactly one open socket.
pub fn take_socket() -> Result<Option<OwnedFd>, Error> {
    let refused = |what: &str| Err(Error::new(ErrorKind::SocketUnusable, format!("{what} (LISTEN_FDS)")));
    let Ok(mut passed) = sd_listen_fds::get() else {
        return refused("the number of sockets that the supervisor passes is malformed");
    };
    if passed.len() > 1 {
        let line = format!("the supervisor passes {} sockets instead of one", passed.len());
        // They may not be open, and closing them would panic then.
        std::mem::forget(passed);
        return refused(&line);
    }
    let Some((_, socket)) = passed.pop() else { return Ok(None) };
    let socket = socket.into_std();
    // The copy is closed on exec, unlike the descriptor that was passed.
    match socket.try_clone() {
        Ok(copy) => Ok(Some(copy)),
        Err(_) => {
            std::mem::forget(socket);
            refused("the supervisor passes a descriptor that is not open")
        }
    }
}

/// Tells the supervisor that the service accepts clients, and where.
pub fn say_ready(address: &petstore::Address) {
    say(NotifyState::Ready, Some(&format!("listening on {address}")));
}

/// Tells the supervisor that the service is ending.
pub fn say_stopping() {
    say(NotifyState::Stopping, Some("finishing the requests in progress"));
}

/// Sends a notification to the supervisor, if one waits for it (`NOTIFY_SOCKET`).
fn say(state: NotifyState, status: Option<&str>) {
    let notices = std::iter::once(state).chain(status.map(NotifyState::Status));
    if let Err(error) = sd_notify::notify(&notices.collect::<Vec<_>>()) {
        log::warn!("cannot notify the supervisor (NOTIFY_SOCKET): {error}");
    }
}

/// Notifies the supervisor's watchdog (`WATCHDOG_USEC`) as long as the service answers its own health check.
pub fn start_watchdog(health: HealthCheck) -> Result<(), Error> {
    let Some(interval) = sd_notify::watchdog_enabled() else { return Ok(()) };
    let watch = move || {
        loop {
            let pause =
                ask(interval, |patience| health.is_answered(patience), || say(NotifyState::Watchdog, None));
            std::thread::sleep(pause);
        }
    };
    // The thread ends with the process.
    start_thread("watchdog", Box::new(watch))
}

/// Checks once, and calls `tell` if the service answered. Returns how long to wait before the next check.
fn ask(interval: Duration, is_answered: impl Fn(Duration) -> bool, tell: impl Fn()) -> Duration {
    let begun = Instant::now();
    if is_answered(interval) {
        tell();
        // Twice in each interval, as sd_watchdog_enabled(3) recommends.
        (interval / 2).saturating_sub(begun.elapsed())
    } else {
        log::warn!(
            "the service does not answer its own health check (GET /healthz), so the watchdog is not notified"
        );
        interval / 8
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
            let told = Cell::new(0);
            let is_answered = |patience| {
                assert_eq!(patience, INTERVAL);
                answers
            };
            let pause = ask(INTERVAL, is_answered, || told.set(told.get() + 1));
            assert_eq!(told.get(), i32::from(answers));
            assert!(pause <= INTERVAL / 2 && pause >= INTERVAL / 8, "{pause:?}");
        }
    }
}
