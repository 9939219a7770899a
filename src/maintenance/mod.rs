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

/// Says, after each MiB of a copy, whether the task is to stop. It then ends with [`ErrorKind::Interrupted`] and changes
/// nothing.
pub type Stop<'a> = &'a dyn Fn() -> bool;

/// Copies a snapshot into a file that will be `name`. Returns its size in bytes.
fn copy(snapshot: &Snapshot, to: &Partial, name: &Path, stop: Stop) -> Result<u64, Error> {
    let mut size = 0;
    let target = CopyTarget { file: &to.file, path: &to.path, name };
    let copied = snapshot.copy(&target, |_, total| {
        size = total;
        if stop() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    })?;
    match copied {
        ControlFlow::Continue(()) => Ok(size),
        ControlFlow::Break(()) => fail(ErrorKind::Interrupted, "interrupted; nothing was changed"),
    }
}
