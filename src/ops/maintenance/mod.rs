//! Work on a whole database: backup, check and restore. Knows files and the store, and no SQL.

mod atomic_file;
mod backup;
mod check;
mod last_backup;
mod restore;
mod rotation;

pub use crate::store::RestoredKeys;
pub use backup::{Backup, backup, backup_to};
pub use check::{Soundness, check};
pub(crate) use last_backup::last_backup;
pub use restore::{Restored, restore};

/// A function that returns true if a task should stop. The task calls it after each MiB of a copy; once it returns
/// true, the task fails with [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) and changes nothing.
pub type Stop<'a> = &'a dyn Fn() -> bool;
