//! The progress of a long task: on a terminal a line that is drawn again and again, elsewhere a line every ten seconds.

use std::io::{IsTerminal, Write, stderr};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use petstore::Progress;

use super::output::{PATIENCE, start_thread};

/// The width of the bar, in characters.
const WIDTH: u64 = 30;
const MIB: u64 = 1024 * 1024;
/// The control sequence that erases the line (ECMA-48, section 8.3.41).
pub const ERASE: &str = "\r\x1b[K";

/// What a task is doing, and since when.
#[derive(Clone, Copy)]
struct Stage {
    /// Such as `checking`.
    what: &'static str,
    began: Instant,
    /// How far it is, if that is known.
    progress: Option<Progress>,
}

/// Shows progress on standard error from a thread of its own, until it is dropped. A bar is erased then.
pub struct Bar {
    stage: Arc<Mutex<Stage>>,
    /// Dropped to end the thread.
    end: Option<Sender<()>>,
    /// Disconnected when the thread has ended.
    ended: Receiver<()>,
}

impl Bar {
    /// Begins with a stage, such as `checking`, that may take any time.
    pub fn new(what: &'static str) -> Self {
        let stage = Arc::new(Mutex::new(Stage { what, began: Instant::now(), progress: None }));
        let ((end, is_over), (finished, ended)) = (channel(), channel());
        let shown = Arc::clone(&stage);
        let show = move || {
            show(&shown, &is_over);
            drop(finished);
        };
        // Without a thread there is no progress to see, and the task goes on.
        let _ = start_thread("progress", Box::new(show));
        Self { stage, end: Some(end), ended }
    }

    /// Notes how far a copy is. A complete copy is checked next.
    pub fn copied(&self, progress: Progress) {
        let (what, progress) =
            if progress.done < progress.total { ("copying", Some(progress)) } else { ("checking", None) };
        let mut stage = lock(&self.stage);
        let began = if stage.what == what { stage.began } else { Instant::now() };
        *stage = Stage { what, began, progress };
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.end = None;
        // If nobody reads standard error, the thread may hang.
        let _: Result<(), RecvTimeoutError> = self.ended.recv_timeout(PATIENCE);
    }
}

fn lock(stage: &Mutex<Stage>) -> std::sync::MutexGuard<'_, Stage> {
    stage.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Shows the stage until the other end of the channel is dropped.
fn show(stage: &Mutex<Stage>, is_over: &Receiver<()>) {
    let is_terminal = stderr().is_terminal();
    let pause = if is_terminal { Duration::from_millis(100) } else { Duration::from_secs(10) };
    let mut is_drawn = false;
    while is_over.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let text = text(*lock(stage), is_terminal);
        // If nobody reads it, the task goes on.
        let _ = match text {
            None => Ok(()),
            Some(text) if is_terminal => {
                is_drawn = true;
                write!(stderr(), "{ERASE}{text}").and_then(|()| stderr().flush())
            }
            Some(text) => writeln!(stderr(), "{text}"),
        };
    }
    if is_drawn {
        let _ = write!(stderr(), "{ERASE}");
    }
}

/// One line about a stage. `None`: it has only just begun.
fn text(Stage { what, began, progress }: Stage, has_bar: bool) -> Option<String> {
    match progress {
        Some(Progress { done, total, .. }) if has_bar => {
            Some(format!("{} {}", cells(done, total), part(done, total)))
        }
        Some(Progress { done, total, .. }) => Some(format!("copied {}", part(done, total))),
        None => Some(began.elapsed().as_secs()).filter(|s| *s > 0).map(|s| format!("{what} for {s} s")),
    }
}

/// A bar that is full to the part `done` of `total`.
pub fn cells(done: u64, total: u64) -> String {
    let full = (done * WIDTH).checked_div(total).unwrap_or(WIDTH).min(WIDTH);
    let cells = |count: u64, cell: &str| cell.repeat(usize::try_from(count).unwrap_or(0));
    format!("[{}{}]", cells(full, "#"), cells(WIDTH - full, "-"))
}

fn part(done: u64, total: u64) -> String {
    let percent = (done * 100).checked_div(total).unwrap_or(100);
    format!("{} of {} MiB ({percent} %)", done / MIB, total.div_ceil(MIB))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_grows_with_the_copy() {
        for (done, total, expected) in [
            (0, 30 * MIB, "[------------------------------] 0 of 30 MiB (0 %)"),
            (15 * MIB, 30 * MIB, "[###############---------------] 15 of 30 MiB (50 %)"),
            (4096, 4096, "[##############################] 0 of 1 MiB (100 %)"),
            (0, 0, "[##############################] 0 of 0 MiB (100 %)"),
        ] {
            assert_eq!(format!("{} {}", cells(done, total), part(done, total)), expected);
        }
    }

    #[test]
    fn complete_copy_is_checked() {
        let bar = Bar::new("opening");
        let what = || {
            let stage = lock(&bar.stage);
            (stage.what, stage.progress.is_some())
        };
        // The library makes a progress, so this is one that a real copy has shown.
        let folder = std::env::temp_dir().join(format!("petstore-progress-{}", std::process::id()));
        std::fs::create_dir_all(&folder).unwrap();
        let (database, copy) = (folder.join("pets.db"), folder.join("copy.db"));
        petstore::KeyRing::open(&database).map(drop).unwrap();
        assert_eq!(what(), ("opening", false));
        let done = petstore::backup(&database, &copy, &mut |progress| {
            bar.copied(progress);
            std::ops::ControlFlow::Continue(())
        });
        std::fs::remove_dir_all(&folder).unwrap();
        done.unwrap();
        assert_eq!(what(), ("checking", false));
    }

    #[test]
    fn stage_of_unknown_length_is_told_from_its_first_second_on() {
        let at = |began| text(Stage { what: "checking", began, progress: None }, true);
        assert_eq!(at(Instant::now()), None);
        let earlier = Instant::now().checked_sub(Duration::from_secs(12)).unwrap();
        assert_eq!(at(earlier).as_deref(), Some("checking for 12 s"));
    }
}
