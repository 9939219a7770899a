//! Helpers for unit tests: a temporary folder, a timeout, and captured log lines.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

pub mod fuzzing;
pub mod random;

use std::cell::RefCell;
use std::path::{Path, PathBuf};
use std::sync::Once;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// The timeout of tests, longer than any step of a test takes.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A temporary folder for one test, removed on drop.
#[derive(Debug)]
pub struct Folder(pub PathBuf);

impl Default for Folder {
    fn default() -> Self {
        Self::new()
    }
}

impl Folder {
    /// Creates a folder where the system keeps temporary files.
    pub fn new() -> Self {
        Self::within(&std::env::temp_dir())
    }

    /// Creates a folder in memory, if the system has `/dev/shm`.
    pub fn in_memory() -> Self {
        let memory = Path::new("/dev/shm");
        if memory.is_dir() {
            Self::within(memory)
        } else {
            Self::new()
        }
    }

    /// Creates a folder with a path short enough for a socket in it, which `TMPDIR` may not be.
    pub fn for_sockets() -> Self {
        Self::within(Path::new("/tmp"))
    }

    fn within(parent: &Path) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let name = format!("petstore-test-{}-{count}", std::process::id());
        let path = parent.join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    /// The path of a database in it.
    pub fn database(&self) -> PathBuf {
        self.0.join("pets.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

thread_local! {
    /// The log lines of this thread, while a test captures them.
    static LOGGED: RefCell<Option<Vec<String>>> = const { RefCell::new(None) };
}

struct Lines;

impl log::Log for Lines {
    /// Other packages log too.
    fn enabled(&self, metadata: &log::Metadata) -> bool {
        metadata.target().starts_with("petstore") && LOGGED.with_borrow(Option::is_some)
    }

    fn log(&self, record: &log::Record) {
        if self.enabled(record.metadata()) {
            let line = format!("{} {}", record.level(), record.args());
            LOGGED.with_borrow_mut(|lines| lines.get_or_insert_default().push(line));
        }
    }

    fn flush(&self) {}
}

/// Runs `work`, and returns the lines that this thread logs meanwhile, each after its level: `WARN the disk is full`.
pub fn logged(work: impl FnOnce()) -> Vec<String> {
    static LOGGER: Once = Once::new();
    LOGGER.call_once(|| {
        log::set_logger(&Lines).unwrap();
        log::set_max_level(log::LevelFilter::Trace);
    });
    LOGGED.set(Some(Vec::new()));
    work();
    LOGGED.take().unwrap_or_default()
}
