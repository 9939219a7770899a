//! Signals: the first one asks for an orderly end, a later one ends the process at once.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use petstore::{Error, Stopper};
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, signal_name};

use super::output::start_thread;
use super::{logging, supervisor};

/// Signals within this time of the first count as the same request: a supervisor and a shell may both send one,
/// and timeout(1) sends two.
const SAME: Duration = Duration::from_secs(1);

/// Makes these signals do nothing.
pub fn ignore(signals: &[i32]) -> Result<(), Error> {
    signals
        .iter()
        .try_for_each(|signal| flag::register(*signal, Arc::default()).map(drop))
        .map_err(cannot_watch)
}

/// Returns a flag that the first of these signals sets. A second signal ends the process at once.
pub fn note(signals: &[i32]) -> Result<Arc<AtomicBool>, Error> {
    let noted = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&noted);
    watch(signals, move |_| flag.store(true, Ordering::SeqCst), |_| {})?;
    Ok(noted)
}

/// From now on, SIGTERM or SIGINT ends the service after the requests in progress. Returns where the name of the
/// signal will be.
pub fn end(stopper: Stopper, began: Instant) -> Result<Arc<OnceLock<&'static str>>, Error> {
    let ending = Arc::new(OnceLock::new());
    let (noted, of_second) = (Arc::clone(&ending), stopper.clone());
    let first = move |name| {
        let _ = noted.set(name);
        log::warn!(
            "{name}: finishing the requests in progress; a second signal stops the service immediately"
        );
        stopper.stop();
        supervisor::say_stopping();
    };
    let second = move |name| {
        log_end(&format!("a second signal, {name}"), began, &of_second);
        logging::flush(logging::SHORT_PATIENCE);
    };
    watch(&[SIGTERM, SIGINT], first, second)?;
    Ok(ending)
}

/// Logs the end of the service.
pub fn log_end(why: &str, began: Instant, stopper: &Stopper) {
    let (ran, cut_off) = (began.elapsed().as_secs_f64(), stopper.cut_off());
    log::warn!("ended after {ran:.1} s: {why}; unfinished requests: {cut_off}");
}

/// From now on, calls `first` with the name of the first of these signals, in a thread of its own. A second one ends
/// the process after `second`.
fn watch(
    signals: &[i32],
    first: impl Fn(&'static str) + Send + 'static,
    second: impl Fn(&'static str) + Send + 'static,
) -> Result<(), Error> {
    let mut signals = Signals::new(signals).map_err(cannot_watch)?;
    let obey = move || {
        let mut asked: Option<Instant> = None;
        for signal in signals.forever() {
            let name = signal_name(signal).unwrap_or("a signal");
            match asked {
                None => {
                    asked = Some(Instant::now());
                    first(name);
                }
                Some(asked) if asked.elapsed() < SAME => {}
                Some(_) => {
                    second(name);
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
