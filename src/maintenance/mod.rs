//! Work on a whole database: back it up, check it, restore it. Knows files and the store, and no SQL.

mod backup;
mod check;
mod partial;
mod restore;

use std::ops::ControlFlow;
use std::path::Path;

use crate::Error;
use crate::store::{CopyTarget, Snapshot};
use partial::Partial;

pub use backup::backup;
pub use check::{Soundness, check};
pub use restore::{Restored, restore};

/// How far a copy is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// Bytes copied so far.
    pub done: u64,
    /// Bytes in all.
    pub total: u64,
}

/// What is told how far a copy is, after each MiB. Where it says `Break`, the work fails and changes nothing.
pub type OnProgress<'a> = &'a mut dyn FnMut(Progress) -> ControlFlow<()>;

/// Copies a snapshot into a file that will be `name`. Returns its size in bytes.
fn copy(snapshot: &Snapshot, to: &Partial, name: &Path, on_progress: OnProgress) -> Result<u64, Error> {
    let mut size = 0;
    let target = CopyTarget { file: &to.file, path: to.path(), name };
    let copied = snapshot.copy(&target, |done, total| {
        size = total;
        on_progress(Progress { done, total })
    })?;
    match copied {
        ControlFlow::Continue(()) => Ok(size),
        ControlFlow::Break(()) => Err("stopped before the end; nothing was changed".to_owned().into()),
    }
}
