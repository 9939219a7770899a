//! Signals: the first one asks for an orderly end, a later one ends the process at once.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use petstore::{Error, Stopper};
use sd_notify::NotifyState;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, signal_name};

use super::output::start_thread;
use super::{logging, supervisor};

/// Signals within this time of the first count as the same request: a supervisor and a shell may both send one,
/// and timeout(1) sends two.
const SAME: Duration = Duration::from_secs(1);

/// Returns a flag that each of these signals sets, in place of what it did before.
pub fn note(signals: &[i32]) -> Result<Arc<AtomicBool>, Error> {
    let noted = Arc::new(AtomicBool::new(false));
    signals
        .iter()
        .try_for_each(|signal| flag::register(*signal, Arc::clone(&noted)).map(drop))
        .map_err(cannot_watch)?;
    Ok(noted)
}

/// From now on, SIGTERM or SIGINT ends the service after the requests in progress, and a second one ends the process at
/// once. Returns where the name of the first will be.
pub fn end(stopper: Stopper, began: Instant) -> Result<Arc<OnceLock<&'static str>>, Error> {
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(cannot_watch)?;
    let ending = Arc::new(OnceLock::new());
    let noted = Arc::clone(&ending);
    let obey = move || {
        let mut asked = began;
        for signal in signals.forever() {
            let name = signal_name(signal).unwrap_or("a signal");
            if noted.set(name).is_ok() {
                asked = Instant::now();
                log::warn!(
                    "{name}: finishing the requests in progress; a second signal stops the service immediately"
                );
                stopper.stop();
                supervisor::say(&[NotifyState::Stopping]);
            } else if asked.elapsed() >= SAME {
                log_end(&format!("a second signal, {name}"), began, &stopper);
                logging::flush();
                let _ = emulate_default_handler(signal);
            }
        }
    };
    start_thread("signals", Box::new(obey))?;
    Ok(ending)
}

/// Logs the end of the service.
pub fn log_end(why: &str, began: Instant, stopper: &Stopper) {
    let (ran, cut_off) = (began.elapsed().as_secs_f64(), stopper.cut_off());
    log::warn!("ended after {ran:.1} s: {why}; unfinished requests: {cut_off}");
}

fn cannot_watch(error: std::io::Error) -> Error {
    Error::io("cannot catch signals", error)
}
