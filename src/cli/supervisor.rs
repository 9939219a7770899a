//! What the program and its supervisor say to each other, as systemd has it: the passed socket
//! (`sd_listen_fds`), the notices (`sd_notify`) and the watchdog.

use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use petstore::{Error, HealthCheck};
use sd_notify::NotifyState;

use super::pending::pending;
use super::start_thread;

/// How long a notice is waited for.
const PATIENCE: Duration = Duration::from_millis(200);

/// The socket that the supervisor passes (`LISTEN_FDS`), if it does and means this process (`LISTEN_PID`).
///
/// It is called before anything is opened, as a descriptor that was not passed could become another file.
/// The variables stay as they are: the service starts no other program.
///
/// # Errors
/// One plain line, where it is not one socket.
pub fn take_socket() -> Result<Option<OwnedFd>, Error> {
    let refused = |what: &str| Err(format!("{what} (LISTEN_FDS)").into());
    let Ok(mut passed) = sd_listen_fds::get() else {
        return refused("the supervisor does not say how many sockets it passes");
    };
    if passed.len() > 1 {
        let line = format!("the supervisor passes {} sockets, and one is expected", passed.len());
        // They may not be open, and then cannot be closed.
        std::mem::forget(passed);
        return refused(&line);
    }
    let Some((_, socket)) = passed.pop() else { return Ok(None) };
    let socket = socket.into_std();
    // The copy is closed on exec, which the one that was passed is not.
    match socket.try_clone() {
        Ok(copy) => Ok(Some(copy)),
        Err(_) => {
            std::mem::forget(socket);
            refused("the supervisor passes no open socket")
        }
    }
}

/// Says that clients are let in, and where.
pub fn say_ready(address: &petstore::Address) {
    say(NotifyState::Ready, Some(format!("listening on {address}")));
}

/// Says that the service ends.
pub fn say_stopping() {
    say(NotifyState::Stopping, Some("finishing what was begun".to_owned()));
}

/// Nothing where no supervisor waits for it (`NOTIFY_SOCKET`).
///
/// In a thread of its own, as a supervisor that does not listen must not hold up anything for long.
fn say(state: NotifyState<'static>, status: Option<String>) {
    if std::env::var_os("NOTIFY_SOCKET").is_none() {
        return;
    }
    let (pending, told) = pending();
    let tell = move || {
        let mut notices = vec![state];
        notices.extend(status.as_deref().map(NotifyState::Status));
        if let Err(error) = sd_notify::notify(&notices) {
            log::warn!("cannot tell the supervisor (NOTIFY_SOCKET) how the service is: {error}");
        }
        drop(pending);
    };
    match start_thread("notify", Box::new(tell)) {
        // The end of the process would end the thread as well.
        Ok(()) => told.wait(PATIENCE),
        Err(error) => log::warn!("{error}"),
    }
}

/// Keeps the supervisor's watchdog (`WATCHDOG_USEC`) quiet for as long as the service answers.
///
/// # Errors
/// One plain line, where there is no thread for it.
pub fn start_watchdog(health: HealthCheck) -> Result<(), Error> {
    let Some(interval) = sd_notify::watchdog_enabled() else { return Ok(()) };
    let watch = move || {
        loop {
            let pause =
                ask(interval, |patience| health.is_answered(patience), || say(NotifyState::Watchdog, None));
            std::thread::sleep(pause);
        }
    };
    // It ends with the process.
    start_thread("watchdog", Box::new(watch))
}

/// Asks once, and tells the supervisor where it was answered. Returns how long to wait for the next time.
fn ask(interval: Duration, is_answered: impl Fn(Duration) -> bool, tell: impl Fn()) -> Duration {
    let begun = Instant::now();
    if is_answered(interval) {
        tell();
        // Twice within the interval, as sd_watchdog_enabled(3) has it.
        (interval / 2).saturating_sub(begun.elapsed())
    } else {
        log::warn!("the service does not answer itself (GET /healthz), so the watchdog is not told");
        interval / 8
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::Cell;

    const INTERVAL: Duration = Duration::from_secs(3600);

    #[test]
    fn watchdog_is_told_only_where_the_service_answers() {
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
