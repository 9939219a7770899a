//! Work on a whole database: backup, check and restore. Knows files and the store, and no SQL.

mod backup;
mod check;
mod note;
mod partial;
mod restore;
mod series;

pub use backup::{Backup, backup, backup_to};
pub use check::{Soundness, check};
pub(crate) use note::last_backup;
pub use restore::{Restored, RestoredKeys, restore};

/// Says, after each MiB of a copy, whether the task is to stop. It then ends with
/// [`ErrorKind::Interrupted`](crate::ErrorKind::Interrupted) and changes nothing.
pub type Stop<'a> = &'a dyn Fn() -> bool;
