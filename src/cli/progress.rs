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
        let has_bar = stderr().is_terminal();
        let show = move || {
            let pause = if has_bar { Duration::from_millis(100) } else { Duration::from_secs(10) };
            show(shown, &is_over, &mut stderr(), has_bar, pause);
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
        *lock(&self.stage) = Stage { what, began: Instant::now(), progress };
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

/// Shows the stage after each pause until the other end of the channel is dropped.
fn show(
    stage: Arc<Mutex<Stage>>,
    is_over: &Receiver<()>,
    out: &mut impl Write,
    has_bar: bool,
    pause: Duration,
) {
    let mut is_drawn = false;
    while is_over.recv_timeout(pause) == Err(RecvTimeoutError::Timeout) {
        let Some(text) = text(*lock(&stage), has_bar) else { continue };
        // If nobody reads it, the task goes on.
        let _ = if has_bar {
            is_drawn = true;
            write!(out, "{ERASE}{text}").and_then(|()| out.flush())
        } else {
            writeln!(out, "{text}")
        };
    }
    if is_drawn {
        let _ = write!(out, "{ERASE}");
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
        let pet = format!("{{\"name\":\"{}\",\"categoryId\":1}}\n", "a".repeat(500_000)).repeat(6);
        let source = petstore::Source::Stream(Box::new(std::io::Cursor::new(pet)));
        let options = petstore::ImportOptions::default();
        let import = petstore::Import::check(&database, source, options, |_, why| panic!("{why}")).unwrap();
        import.write(&std::sync::atomic::AtomicBool::new(false), |_| ()).unwrap();
        assert_eq!(what(), ("opening", false));
        let (mut stages, mut texts) = (Vec::new(), Vec::new());
        let done = petstore::backup(&database, &copy, &mut |progress| {
            bar.copied(progress);
            stages.push(what());
            texts.extend([false, true].map(|has_bar| text(*lock(&bar.stage), has_bar).unwrap_or_default()));
            std::ops::ControlFlow::Continue(())
        });
        std::fs::remove_dir_all(&folder).unwrap();
        done.unwrap();
        stages.dedup();
        assert_eq!(stages, [("copying", true), ("checking", false)]);
        assert!(texts[0].starts_with("copied 1 of 3 MiB (3"), "{texts:?}");
        assert!(texts[1].starts_with("[#####") && texts[1].contains("--] 1 of 3 MiB (3"), "{texts:?}");
    }

    #[test]
    fn stage_of_unknown_length_is_told_from_its_first_second_on() {
        let at = |began| text(Stage { what: "checking", began, progress: None }, true);
        assert_eq!(at(Instant::now()), None);
        let earlier = Instant::now().checked_sub(Duration::from_secs(12)).unwrap();
        assert_eq!(at(earlier).as_deref(), Some("checking for 12 s"));
    }

    /// Hands over what is written.
    struct Handed(Sender<String>);

    impl Write for Handed {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            let _ = self.0.send(String::from_utf8_lossy(bytes).into_owned());
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn terminal_gets_a_line_that_is_erased_and_a_file_gets_whole_lines() {
        for (has_bar, first, last) in [(true, ERASE, ERASE), (false, "checking for 12 s\n", "s\n")] {
            let began = Instant::now().checked_sub(Duration::from_secs(12)).unwrap();
            let stage = Arc::new(Mutex::new(Stage { what: "checking", began, progress: None }));
            let ((end, is_over), (out, shown)) = (channel::<()>(), channel());
            let pause = Duration::from_millis(1);
            let showing = std::thread::spawn(move || show(stage, &is_over, &mut Handed(out), has_bar, pause));
            let mut text = String::new();
            while !text.contains("checking for 12 s") && text.len() < 1000 {
                text += &shown.recv_timeout(Duration::from_secs(30)).expect("progress is shown");
            }
            drop(end);
            showing.join().unwrap();
            text.extend(shown.iter());
            assert!(text.starts_with(first) && text.ends_with(last), "{text:?}");
            assert_eq!((text.contains('\n'), text.contains('\x1b')), (!has_bar, has_bar), "{text:?}");
        }
    }

    #[test]
    fn nothing_is_shown_after_the_end() {
        let bar = Bar::new("opening");
        let stage = Arc::clone(&bar.stage);
        let begun = Instant::now();
        drop(bar);
        assert!(Arc::strong_count(&stage) == 1 || begun.elapsed() >= PATIENCE, "the thread has ended");
    }
}
