//! Work on a whole database: backup, check and restore. Knows files and the store, and no SQL.

mod atomic_file;
mod backup;
mod check;
mod last_backup;
mod restore;
mod rotation;

use std::path::PathBuf;

pub use crate::store::RestoredKeys;
pub use backup::{backup, backup_to};
pub use check::{Soundness, check};
pub(crate) use last_backup::last_backup;
pub use restore::{Restored, restore};

/// A function that returns true if a task should stop. The task calls it after each MiB of a copy; once it returns
/// true, the task fails with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) and changes nothing.
pub type Stop<'a> = &'a dyn Fn() -> bool;

/// The result of a [`backup()`].
#[derive(Debug)]
#[non_exhaustive]
pub struct Backup {
    /// The new file.
    pub file: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// The number of pets in it.
    pub pets: u64,
    /// What other programs have written into it that no column can have, one line each; empty if the backup is sound. A
    /// service can use a backup with such values: text that is not UTF-8 is shown with U+FFFD.
    pub faults: Vec<String>,
    /// The older backups that [`backup_to`] removed.
    pub removed: Vec<PathBuf>,
}
