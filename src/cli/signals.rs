//! Signals: the first one stops the service in order, a later one ends the process immediately.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, LazyLock, OnceLock};
use std::time::{Duration, Instant};

use log::Level;
use petstore::{Error, Stopper, start_thread};
use sd_notify::NotifyState;
use signal_hook::consts::{SIGINT, SIGTERM};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, exit, signal_name};

use super::{logging, supervisor};

/// Signals within this time of the first count as the same request: a supervisor and a shell may both send one,
/// and timeout(1) sends two.
const SAME: Duration = Duration::from_secs(1);

/// True while the signals of [`end_as_first`] end the process.
static ENDS: LazyLock<Arc<AtomicBool>> = LazyLock::new(|| Arc::new(AtomicBool::new(true)));

/// Makes SIGTERM and SIGINT end process 1 of a container immediately. They end other processes by default, but process
/// 1 gets only signals that it catches (`pid_namespaces(7)`).
pub fn end_as_first() -> Result<(), Error> {
    if std::process::id() != 1 {
        return Ok(());
    }
    let catch =
        |signal| flag::register_conditional_shutdown(signal, 128 + signal, Arc::clone(&ENDS));
    [SIGTERM, SIGINT]
        .into_iter()
        .try_for_each(|signal| catch(signal).map(drop))
        .map_err(cannot_watch)
}

/// Returns these signals without those that the process was started to ignore, such as SIGHUP after `nohup`. If it caught
/// them, its child processes would no longer ignore them.
pub fn heeded(signals: &[i32]) -> Vec<i32> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status
        .lines()
        .find_map(|line| line.strip_prefix("SigIgn:"))
        .unwrap_or("0");
    let ignored = u64::from_str_radix(mask.trim(), 16).unwrap_or(0);
    signals
        .iter()
        .copied()
        .filter(|signal| ignored >> (signal - 1) & 1 == 0)
        .collect()
}

/// Makes each of these signals set a flag, instead of its earlier effect, and returns the flag.
pub fn note(signals: &[i32]) -> Result<Arc<AtomicBool>, Error> {
    let noted = Arc::new(AtomicBool::new(false));
    for signal in signals {
        flag::register(*signal, Arc::clone(&noted)).map_err(cannot_watch)?;
    }
    if signals.contains(&SIGTERM) {
        ENDS.store(false, Ordering::Relaxed);
    }
    Ok(noted)
}

/// Makes SIGTERM or SIGINT stop the service after the requests in progress, and a second one end the process
/// immediately. The returned cell gets the name of the first signal.
pub fn end(stopper: Stopper, began: Instant) -> Result<Arc<OnceLock<&'static str>>, Error> {
    let mut signals = Signals::new([SIGTERM, SIGINT]).map_err(cannot_watch)?;
    ENDS.store(false, Ordering::Relaxed);
    let ending = Arc::new(OnceLock::new());
    let noted = Arc::clone(&ending);
    let handle = move || {
        let mut asked = began;
        for signal in signals.forever() {
            let name = signal_name(signal).unwrap_or("a signal");
            if noted.set(name).is_ok() {
                asked = Instant::now();
                log::info!(
                    "{name}: finishing the requests in progress; a second signal stops the service immediately"
                );
                stopper.stop();
                supervisor::notify(&[NotifyState::Stopping]);
            } else if asked.elapsed() >= SAME {
                log_end(
                    Level::Warn,
                    &format!("a second signal, {name}"),
                    began,
                    &stopper,
                );
                logging::flush();
                if std::process::id() == 1 {
                    exit(128 + signal);
                }
                let _ = emulate_default_handler(signal);
            }
        }
    };
    start_thread("signals", handle)?;
    Ok(ending)
}

/// Logs the end of the service; as a warning at least, if requests were cut off.
pub fn log_end(level: Level, why: &str, began: Instant, stopper: &Stopper) {
    let ran = began.elapsed().as_secs_f64();
    let cut_off = stopper.cut_off();
    let level = if cut_off > 0 {
        level.min(Level::Warn)
    } else {
        level
    };
    log::log!(
        level,
        "ended after {ran:.1} s: {why}; unfinished requests: {cut_off}"
    );
}

/// The error for signals that cannot be caught.
pub fn cannot_watch(error: std::io::Error) -> Error {
    Error::io("cannot catch signals", error)
}
