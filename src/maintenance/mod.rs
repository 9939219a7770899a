//! Work on a whole database: backup, check and restore. Knows files and the store, and no SQL.

mod backup;
mod check;
mod note;
mod partial;
mod restore;
mod series;

use std::ops::ControlFlow;
use std::path::Path;

use crate::error::{Error, ErrorKind, fail};
use crate::store::{CopyTarget, Snapshot};
use partial::Partial;

pub use backup::{Backup, backup, backup_to};
pub use check::{Soundness, check};
pub(crate) use note::last_backup;
pub use restore::{Restored, restore};

/// How far a copy of a database is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes copied so far.
    pub done: u64,
    /// Bytes to copy in all.
    pub total: u64,
}

/// A callback that gets the progress of a copy after each MiB. If it returns `Break`, the task ends with
/// [`ErrorKind::Interrupted`] and changes nothing.
pub type OnProgress<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// Copies a snapshot into a file that will be `name`. Returns its size in bytes.
fn copy(snapshot: &Snapshot, to: &Partial, name: &Path, on_progress: OnProgress) -> Result<u64, Error> {
    let mut size = 0;
    let target = CopyTarget { file: &to.file, path: &to.path, name };
    let copied = snapshot.copy(&target, |done, total| {
        size = total;
        on_progress(Progress { done, total })
    })?;
    match copied {
        ControlFlow::Continue(()) => Ok(size),
        ControlFlow::Break(()) => fail(ErrorKind::Interrupted, "interrupted; nothing was changed"),
    }
}
