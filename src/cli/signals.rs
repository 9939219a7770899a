//! What the service does when a signal comes.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use petstore::{Error, Stopper};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, signal_name};

use super::{logging, start_thread, supervisor};

/// Signals that come so soon after the first are the same wish: a supervisor and a shell may both send one, and
/// timeout(1) sends two.
const SAME: Duration = Duration::from_secs(1);

/// A file that may not grow further (ulimit -f) is a failed write, and no reason to die.
///
/// # Errors
/// One plain line, where the signal cannot be had.
pub fn survive_file_limit() -> Result<(), Error> {
    flag::register(SIGXFSZ, Arc::default()).map(drop).map_err(cannot_watch)
}

/// What the first of these signals sets. A second one ends the process at once.
///
/// # Errors
/// One plain line, where the signals or the thread cannot be had.
pub fn note(signals: &[i32]) -> Result<Arc<AtomicBool>, Error> {
    let noted = Arc::new(AtomicBool::new(false));
    let (flag, mut wish) = (Arc::clone(&noted), Wish::default());
    let obey = move |signal| match wish.hear(Instant::now()) {
        Heard::First => flag.store(true, Ordering::SeqCst),
        Heard::Same => {}
        Heard::Second => end_at_once(signal),
    };
    watch(signals, Box::new(obey))?;
    Ok(noted)
}

/// Calls `obey` with each of these signals from now on, in a thread of its own.
fn watch(signals: &[i32], mut obey: Box<dyn FnMut(i32) + Send>) -> Result<(), Error> {
    let mut signals = Signals::new(signals).map_err(cannot_watch)?;
    start_thread("signals", Box::new(move || signals.forever().for_each(&mut obey)))
}

fn cannot_watch(error: std::io::Error) -> Error {
    format!("cannot watch signals: {error}").into()
}

fn end_at_once(signal: i32) {
    if let Err(error) = emulate_default_handler(signal) {
        log::error!("cannot end at once: {error}");
    }
}

/// The wish to end, since when it is known.
#[derive(Default)]
struct Wish(Option<Instant>);

/// What a signal says of the end.
#[derive(Debug, PartialEq)]
enum Heard {
    /// What was begun is to be finished.
    First,
    /// The same again.
    Same,
    /// There is no time for that.
    Second,
}

impl Wish {
    /// Takes a signal that has come at this time.
    fn hear(&mut self, now: Instant) -> Heard {
        match self.0 {
            None => {
                self.0 = Some(now);
                Heard::First
            }
            Some(first) if now.saturating_duration_since(first) < SAME => Heard::Same,
            Some(_) => Heard::Second,
        }
    }
}

/// Ends the service when a signal says so, also in the middle of its start.
#[derive(Clone)]
pub struct Watch(Arc<Mutex<Progress>>);

struct Progress {
    /// When the service began to start.
    began: Instant,
    /// What ends the service, once it has started.
    stopper: Option<Stopper>,
    wish: Wish,
    /// The signal that asked for the end first.
    ending: Option<i32>,
}

impl Watch {
    /// Watches from now on, in a thread of its own.
    ///
    /// # Errors
    /// One plain line, where the signals or the thread cannot be had.
    pub fn start() -> Result<Self, Error> {
        survive_file_limit()?;
        let progress = Progress { began: Instant::now(), stopper: None, wish: Wish::default(), ending: None };
        let own = Self(Arc::new(Mutex::new(progress)));
        let watching = own.clone();
        let obey = move |signal| watching.obey(signal);
        watch(&[SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2], Box::new(obey))?;
        Ok(own)
    }

    /// The service has started. It ends at once where a signal has come before.
    pub fn started(&self, stopper: Stopper) {
        let mut progress = self.progress();
        if progress.ending.is_some() {
            stopper.stop();
        }
        progress.stopper = Some(stopper);
    }

    /// The service has ended, which the log says.
    pub fn ended(&self, has_failed: bool) {
        let progress = self.progress();
        progress.log_end(if has_failed { "a failure" } else { progress.ending.map_or("no signal", name) });
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn obey(&self, signal: i32) {
        match signal {
            SIGTERM | SIGINT => self.end(signal),
            // What rotates log files sends it. Others are asked for a word by SIGUSR1 or SIGUSR2.
            SIGHUP => log::warn!("{}: nothing to reload; log lines go to standard error", name(signal)),
            _ => log::info!("{} means nothing here", name(signal)),
        }
    }

    /// The first signal lets what was begun be finished, the start included. The second ends at once.
    fn end(&self, signal: i32) {
        let mut progress = self.progress();
        match progress.wish.hear(Instant::now()) {
            Heard::First => {
                progress.ending = Some(signal);
                log::warn!("{}: ending; one more after a second ends at once", name(signal));
                progress.stopper.iter().for_each(Stopper::stop);
                supervisor::say_stopping();
            }
            Heard::Same => {}
            Heard::Second => {
                progress.log_end(&format!("a second signal, {}", name(signal)));
                logging::flush(logging::SHORT_PATIENCE);
                end_at_once(signal);
            }
        }
    }
}

impl Progress {
    fn log_end(&self, why: &str) {
        let (ran, cut_off) =
            (self.began.elapsed().as_secs_f64(), self.stopper.as_ref().map_or(0, Stopper::cut_off));
        log::warn!("ended after {ran:.1} s: {why}; requests cut off: {cut_off}");
    }
}

fn name(signal: i32) -> &'static str {
    signal_name(signal).unwrap_or("a signal")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_within_a_second_of_the_first_are_the_same() {
        let (mut wish, first) = (Wish::default(), Instant::now());
        assert_eq!(wish.hear(first), Heard::First);
        assert_eq!([wish.hear(first), wish.hear(first + SAME * 9 / 10)], [Heard::Same, Heard::Same]);
        assert_eq!([wish.hear(first + SAME), wish.hear(first + 9 * SAME)], [Heard::Second, Heard::Second]);
    }
}
