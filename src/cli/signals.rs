//! Signals: the first one asks for an orderly end, a later one ends the process at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use petstore::{Error, Stopper};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, signal_name};

use super::output::start_thread;
use super::{logging, supervisor};

/// Signals within this time of the first count as the same request: a supervisor and a shell may both send one,
/// and timeout(1) sends two.
const SAME: Duration = Duration::from_secs(1);

/// Makes a write beyond the file size limit (ulimit -f) fail instead of killing the process.
pub fn survive_file_limit() -> Result<(), Error> {
    ignore(&[SIGXFSZ])
}

/// Returns a flag that the first of these signals sets. A second signal ends the process at once.
pub fn note(signals: &[i32]) -> Result<Arc<AtomicBool>, Error> {
    let noted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&noted);
    watch(signals, Box::new(move |_| flag.store(true, Ordering::SeqCst)), Box::new(|_| {}))?;
    Ok(noted)
}

/// The signals of the service. A signal ends it, also in the middle of its start.
#[derive(Clone)]
pub struct ServiceSignals(Arc<Mutex<State>>);

struct State {
    /// When the start began.
    began: Instant,
    /// Ends the service, once it has started.
    stopper: Option<Stopper>,
    /// The first signal that asked for the end.
    ending: Option<i32>,
}

impl ServiceSignals {
    /// Catches signals from now on, in a thread of its own.
    pub fn start() -> Result<Self, Error> {
        // Programs that rotate log files send SIGHUP or SIGUSR1.
        ignore(&[SIGHUP, SIGUSR1, SIGUSR2])?;
        let state = State { began: Instant::now(), stopper: None, ending: None };
        let own = Self(Arc::new(Mutex::new(state)));
        let (ended, killed) = (own.clone(), own.clone());
        let first = move |signal| ended.end(signal);
        let second = move |signal| {
            killed.state().log_end(&format!("a second signal, {}", name(signal)));
            logging::flush(logging::SHORT_PATIENCE);
        };
        watch(&[SIGTERM, SIGINT], Box::new(first), Box::new(second))?;
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

    /// Ends the service after the work under way, the start included.
    fn end(&self, signal: i32) {
        let mut state = self.state();
        state.ending = Some(signal);
        log::warn!(
            "{}: finishing the requests in progress; a second signal stops the service immediately",
            name(signal)
        );
        state.stopper.iter().for_each(Stopper::stop);
        supervisor::say_stopping();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    fn log_end(&self, why: &str) {
        let (ran, cut_off) =
            (self.began.elapsed().as_secs_f64(), self.stopper.as_ref().map_or(0, Stopper::cut_off));
        log::warn!("ended after {ran:.1} s: {why}; unfinished requests: {cut_off}");
    }
}

fn ignore(signals: &[i32]) -> Result<(), Error> {
    signals
        .iter()
        .try_for_each(|signal| flag::register(*signal, Arc::default()).map(drop))
        .map_err(cannot_watch)
}

/// From now on, calls `first` for the first of these signals, in a thread of its own. A second one ends the process
/// after `second`.
fn watch(
    signals: &[i32],
    first: Box<dyn Fn(i32) + Send>,
    second: Box<dyn Fn(i32) + Send>,
) -> Result<(), Error> {
    let mut signals = Signals::new(signals).map_err(cannot_watch)?;
    let obey = move || {
        let mut asked: Option<Instant> = None;
        for signal in signals.forever() {
            match asked {
                None => {
                    asked = Some(Instant::now());
                    first(signal);
                }
                Some(asked) if asked.elapsed() < SAME => {}
                Some(_) => {
                    second(signal);
                    let _ = emulate_default_handler(signal);
                }
            }
        }
    };
    start_thread("signals", Box::new(obey))
}

fn cannot_watch(error: std::io::Error) -> Error {
    Error::io("cannot catch signals", error)
}

fn name(signal: i32) -> &'static str {
    signal_name(signal).unwrap_or("a signal")
}
