//! Signals: the first one asks for an orderly end, a later one ends the process at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use petstore::{Error, Stopper};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGTSTP, SIGUSR1, SIGUSR2, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, signal_name};

use super::command::Done;
use super::output::start_thread;
use super::{logging, supervisor};

/// Signals within this time of the first count as the same request: a supervisor and a shell may both send one,
/// and timeout(1) sends two.
const SAME: Duration = Duration::from_secs(1);

/// Makes a write beyond the file size limit (ulimit -f) fail instead of killing the process.
pub fn survive_file_limit() -> Done {
    flag::register(SIGXFSZ, Arc::default()).map_err(cannot_watch)?;
    Ok(())
}

/// Returns a flag that the first of these signals sets. A second signal ends the process at once.
pub fn note(signals: &[i32]) -> Result<Arc<AtomicBool>, Error> {
    let noted = Arc::new(AtomicBool::new(false));
    let (flag, mut ending) = (Arc::clone(&noted), EndRequest::default());
    let obey = move |signal| match ending.note(Instant::now()) {
        Signal::First => flag.store(true, Ordering::SeqCst),
        Signal::Same => {}
        Signal::Second => end_at_once(signal),
    };
    watch(signals, Box::new(obey))?;
    Ok(noted)
}

/// Returns a flag that SIGTSTP sets (Ctrl-Z on a terminal). The process goes on until [`sleep_if_noted`].
pub fn note_sleep() -> Result<Arc<AtomicBool>, Error> {
    let noted = Arc::new(AtomicBool::new(false));
    flag::register(SIGTSTP, Arc::clone(&noted)).map_err(cannot_watch)?;
    Ok(noted)
}

/// Stops the process as SIGTSTP does by default, if it has come. Returns when the process is continued.
pub fn sleep_if_noted(noted: &AtomicBool) {
    if noted.swap(false, Ordering::SeqCst)
        && let Err(error) = emulate_default_handler(SIGTSTP)
    {
        log::error!("cannot stop: {error}");
    }
}

/// Calls `obey` for each of these signals from now on, in a thread of its own.
fn watch(signals: &[i32], mut obey: Box<dyn FnMut(i32) + Send>) -> Result<(), Error> {
    let mut signals = Signals::new(signals).map_err(cannot_watch)?;
    start_thread("signals", Box::new(move || signals.forever().for_each(&mut obey)))
}

fn cannot_watch(error: std::io::Error) -> Error {
    Error::io("cannot catch signals", error)
}

fn end_at_once(signal: i32) {
    if let Err(error) = emulate_default_handler(signal) {
        log::error!("cannot stop immediately: {error}");
    }
}

/// When the end was requested first.
#[derive(Default)]
struct EndRequest(Option<Instant>);

/// What a signal that asks for the end means.
#[derive(Debug, PartialEq)]
enum Signal {
    /// Finish the work under way, and end.
    First,
    /// Another signal for the same request.
    Same,
    /// End at once.
    Second,
}

impl EndRequest {
    /// Notes a signal that arrived at this time.
    fn note(&mut self, now: Instant) -> Signal {
        match self.0 {
            None => {
                self.0 = Some(now);
                Signal::First
            }
            Some(first) if now.saturating_duration_since(first) < SAME => Signal::Same,
            Some(_) => Signal::Second,
        }
    }
}

/// The signals of the service. A signal ends it, also in the middle of its start.
#[derive(Clone)]
pub struct ServiceSignals(Arc<Mutex<State>>);

struct State {
    /// When the start began.
    began: Instant,
    /// Ends the service, once it has started.
    stopper: Option<Stopper>,
    end_request: EndRequest,
    /// The first signal that asked for the end.
    ending: Option<i32>,
}

impl ServiceSignals {
    /// Catches signals from now on, in a thread of its own.
    pub fn start() -> Result<Self, Error> {
        let began = Instant::now();
        let state = State { began, stopper: None, end_request: EndRequest::default(), ending: None };
        let own = Self(Arc::new(Mutex::new(state)));
        let watching = own.clone();
        let obey = move |signal| watching.obey(signal);
        watch(&[SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2], Box::new(obey))?;
        Ok(own)
    }

    /// Notes that the service has started. If a signal came before, the service ends now.
    pub fn started(&self, stopper: Stopper) {
        let mut state = self.state();
        if state.ending.is_some() {
            stopper.stop();
        }
        state.stopper = Some(stopper);
    }

    /// Logs the end of the service.
    pub fn ended(&self, has_failed: bool) {
        let state = self.state();
        state.log_end(if has_failed { "a failure" } else { state.ending.map_or("no signal", name) });
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn obey(&self, signal: i32) {
        match signal {
            SIGTERM | SIGINT => self.end(signal),
            // Programs that rotate log files send SIGHUP. SIGUSR1 and SIGUSR2 ask other programs for a report.
            SIGHUP => log::warn!(
                "{} is ignored: there is nothing to reload, and log lines go to standard error",
                name(signal)
            ),
            _ => log::info!("{} is ignored", name(signal)),
        }
    }

    /// The first signal ends the service after the work under way, the start included. The second ends it at once.
    fn end(&self, signal: i32) {
        let mut state = self.state();
        match state.end_request.note(Instant::now()) {
            Signal::First => {
                state.ending = Some(signal);
                log::warn!(
                    "{}: finishing the requests in progress; a second signal stops the service immediately",
                    name(signal)
                );
                state.stopper.iter().for_each(Stopper::stop);
                supervisor::say_stopping();
            }
            Signal::Same => {}
            Signal::Second => {
                state.log_end(&format!("a second signal, {}", name(signal)));
                logging::flush(logging::SHORT_PATIENCE);
                end_at_once(signal);
            }
        }
    }
}

impl State {
    fn log_end(&self, why: &str) {
        let (ran, cut_off) =
            (self.began.elapsed().as_secs_f64(), self.stopper.as_ref().map_or(0, Stopper::cut_off));
        log::warn!("ended after {ran:.1} s: {why}; unfinished requests: {cut_off}");
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
        let (mut request, first) = (EndRequest::default(), Instant::now());
        assert_eq!(request.note(first), Signal::First);
        assert_eq!([request.note(first), request.note(first + SAME * 9 / 10)], [Signal::Same, Signal::Same]);
        assert_eq!(
            [request.note(first + SAME), request.note(first + 9 * SAME)],
            [Signal::Second, Signal::Second]
        );
    }
}
