//! What the service does when a signal comes.

use std::sync::atomic::AtomicBool;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use petstore::{Error, Stopper};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2, SIGXFSZ};
use signal_hook::flag;
use signal_hook::iterator::Signals;
use signal_hook::low_level::{emulate_default_handler, signal_name};

use super::{logging, supervisor};

/// A file that may not grow further (ulimit -f) is a failed write, and no reason to die.
///
/// # Errors
/// One plain line, where the signal cannot be had.
pub fn survive_file_limit() -> Result<(), Error> {
    flag::register(SIGXFSZ, Arc::default()).map(drop).map_err(cannot_watch)
}

/// What the first of these signals sets. The second ends the process at once.
///
/// # Errors
/// One plain line, where the signals cannot be had.
pub fn note(signals: &[i32]) -> Result<Arc<AtomicBool>, Error> {
    let noted = Arc::new(AtomicBool::new(false));
    for signal in signals {
        flag::register_conditional_default(*signal, Arc::clone(&noted)).map_err(cannot_watch)?;
        flag::register(*signal, Arc::clone(&noted)).map_err(cannot_watch)?;
    }
    Ok(noted)
}

fn cannot_watch(error: std::io::Error) -> Error {
    format!("cannot watch signals: {error}").into()
}

/// Ends the service when a signal says so, also in the middle of its start.
#[derive(Clone, Default)]
pub struct Watch(Arc<Mutex<Progress>>);

#[derive(Default)]
struct Progress {
    /// What ends the service, once it has started.
    stopper: Option<Stopper>,
    /// The signal that asked for the end.
    ending: Option<i32>,
}

impl Watch {
    /// Watches from now on, in a thread of its own.
    ///
    /// # Errors
    /// One plain line, where the signals or the thread cannot be had.
    pub fn start() -> Result<Self, Error> {
        survive_file_limit()?;
        let signals = Signals::new([SIGTERM, SIGINT, SIGHUP, SIGUSR1, SIGUSR2]).map_err(cannot_watch)?;
        let watch = Self::default();
        let watching = watch.clone();
        std::thread::Builder::new()
            .name("signals".to_owned())
            .spawn(move || watching.obey(signals))
            .map_err(|error| Error::no_thread(&error))?;
        Ok(watch)
    }

    /// The service has started. It ends at once where a signal has come before.
    pub fn started(&self, stopper: Stopper) {
        let mut progress = self.progress();
        if progress.ending.is_some() {
            stopper.stop();
        }
        progress.stopper = Some(stopper);
    }

    /// The signal that asked for the end; `None`: none did.
    pub fn ending(&self) -> Option<&'static str> {
        self.progress().ending.map(name)
    }

    fn progress(&self) -> MutexGuard<'_, Progress> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn obey(&self, mut signals: Signals) {
        for signal in signals.forever() {
            match signal {
                SIGTERM | SIGINT => self.end(signal),
                // What rotates log files sends it. Others are asked for a word by SIGUSR1 or SIGUSR2.
                SIGHUP => log::warn!("{}: nothing to reload; log lines go to standard error", name(signal)),
                _ => log::info!("{} means nothing here", name(signal)),
            }
        }
    }

    /// The first signal lets what was begun be finished, the start included. The second ends at once.
    fn end(&self, signal: i32) {
        let mut progress = self.progress();
        if progress.ending.is_none() {
            progress.ending = Some(signal);
            log::warn!("{}: ending; a second signal ends at once", name(signal));
            progress.stopper.iter().for_each(Stopper::stop);
            supervisor::say_stopping();
            return;
        }
        log::warn!("{}: ending at once", name(signal));
        logging::flush(logging::SHORT_PATIENCE);
        if let Err(error) = emulate_default_handler(signal) {
            log::error!("cannot end at once: {error}");
        }
    }
}

fn name(signal: i32) -> &'static str {
    signal_name(signal).unwrap_or("a signal")
}
