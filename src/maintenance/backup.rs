//! Backup: a copy of a database, which may be in use.

use std::path::Path;

use super::partial::{Partial, exists, with_suffix};
use super::{BESIDE, OnProgress, copy};
use crate::error::{Error, ErrorKind, fail};
use crate::store::{Snapshot, Whole};

/// Copies a database into one new file that only its owner may read, also while a service uses the database.
/// Returns the size of the file in bytes.
///
/// The copy has every pet that was acknowledged before the call. When this returns, the file is complete and
/// flushed to the disk, or there is no file. A process that is killed meanwhile leaves a file with the suffix
/// `.partial-` and a random number; the next backup to the same file removes it.
///
/// The copy pauses for as long as it works, so that a service can flush its writes to the disk. Until the copy
/// ends, the write-ahead log of the database grows by what is written.
///
/// ```
/// # fn main() -> Result<(), petstore::Error> {
/// # let folder = std::env::temp_dir().join(format!("petstore-doc-backup-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let (database, copy) = (folder.join("pets.db"), folder.join("copy.db"));
/// # petstore::KeyRing::open(&database)?;
/// use std::ops::ControlFlow;
///
/// petstore::backup(&database, &copy, &mut |progress| {
///     eprintln!("{} of {} bytes", progress.done, progress.total);
///     ControlFlow::Continue(())
/// })?;
/// assert!(petstore::check(&copy)?.faults.is_empty());
///
/// let restored = petstore::restore(&copy, &database, &mut |_| ControlFlow::Continue(()))?;
/// println!("{} pets; the old database is {:?}", restored.pets, restored.kept);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ErrorKind::FileExists`] if there is a file of this name, or a write-ahead log for it, the kinds of a
/// database that cannot be opened or read, and the kinds of a file that cannot be written.
pub fn backup(database: &Path, file: &Path, on_progress: OnProgress) -> Result<u64, Error> {
    if file.symlink_metadata().is_ok() {
        return Err(exists(file));
    }
    // SQLite would apply them to the new file.
    for suffix in BESIDE {
        let left = with_suffix(file, suffix);
        if left.symlink_metadata().is_ok() {
            let line =
                format!("{} is left over from another database, and SQLite would read it", left.display());
            return fail(ErrorKind::FileExists, line);
        }
    }
    let database = Whole::of(database)?;
    let snapshot = Snapshot::of_database(&database)?;
    let partial = Partial::beside(file)?;
    let size = copy(&snapshot, &partial, file, on_progress)?;
    partial.put(file)?;
    Ok(size)
}
