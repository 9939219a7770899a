//! A copy of a database in use.

use std::path::Path;

use super::partial::{Partial, exists};
use super::{OnProgress, copy};
use crate::Error;
use crate::store::Snapshot;

/// Copies a database, also while a service has it, into one new file that only its owner may read. Every animal
/// that was acknowledged before is in it. Returns its size in bytes.
///
/// The file is whole and on the disk when this returns, or there is none. A process that is killed meanwhile
/// leaves a file whose name goes on with `.partial-` and a random number; the next backup to the same file removes it.
///
/// The copy rests for as long as it works, so that the service's creates get their turn at the disk. Meanwhile the
/// write-ahead log of the database grows by what is written.
///
/// # Errors
/// Where the database is not there, not ours or cannot be read, or the file is there already or cannot be written.
pub fn backup(database: &Path, file: &Path, on_progress: OnProgress) -> Result<u64, Error> {
    if file.symlink_metadata().is_ok() {
        return Err(exists(file).into());
    }
    let snapshot = Snapshot::of_database(database)?;
    let partial = Partial::beside(file)?;
    let size = copy(&snapshot, &partial, file, on_progress)?;
    partial.put(file)?;
    Ok(size)
}
