//! Work on a whole database: backup, check and restore. Knows files and the store, and no SQL.

mod atomic_file;
mod backup;
mod check;
mod last_backup;
mod restore;
mod rotation;

pub use backup::{Backup, backup, backup_to};
pub use check::{Soundness, check};
pub(crate) use last_backup::last_backup;
pub use restore::{Restored, RestoredKeys, restore};

/// Returns true, after each MiB of a copy, if the task is to stop. It then ends with
/// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) and changes nothing.
pub type Stop<'a> = &'a dyn Fn() -> bool;
