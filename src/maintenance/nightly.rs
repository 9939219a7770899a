//! Dated backups: each is checked before it gets its name, and only then the oldest go.
//!
//! Whatever is interrupted leaves whole backups alone: a killed process leaves a partial file, which the next one
//! removes, or a backup too many, which the next one removes as well.

use std::fs::File;
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::check::usable;
use super::note::{Note, last_backup};
use super::partial::{Partial, flush_folder, rename_new};
use super::series::Series;
use super::{OnProgress, copy};
use crate::clock::unix_time;
use crate::error::{Error, ErrorKind, fail};
use crate::store::{Snapshot, Whole, log_damage};

/// How often to wait for a second whose name is free. One is enough, unless the clock was set back.
const MOST_TRIES: u32 = 60;
const A_SECOND: Duration = Duration::from_secs(1);

/// The result of [`backup_to`].
#[derive(Debug)]
#[non_exhaustive]
pub struct DatedBackup {
    /// The new file.
    pub file: PathBuf,
    /// Its size in bytes.
    pub bytes: u64,
    /// The number of pets in it.
    pub pets: u64,
    /// What other programs have changed or added in the database, in one line; `None` if nothing.
    pub alterations: Option<String>,
    /// The older backups that were removed.
    pub removed: Vec<PathBuf>,
    /// Why a running service does not learn of this backup: its note could not be written next to the database.
    pub unnoted: Option<Error>,
}

/// Copies a database into a new file in `folder` that only its owner may read, checks the copy, and then removes the
/// oldest such files beyond `keep`. With `None`, it removes none.
///
/// The file is named after the database and the time in UTC: `petstore-2026-11-22T06-25-40Z.db` for `petstore.db`. It
/// has every pet that was acknowledged before the call. Only files with such a name count, and only they are removed,
/// so two databases that back up into one folder need different names. A file gets its name when the copy is complete,
/// flushed to the disk and found sound; a process that is killed before leaves a file with `.partial-` in its name,
/// which the next backup removes. For a moment, one file more than `keep` needs room.
///
/// A copy that is not sound is kept as `petstore-unsound.db`, in place of the one before, and nothing is removed. If the
/// header of the write-ahead log is damaged, no copy is made.
///
/// A small file next to the database, `petstore.db.last-backup`, tells a running service of the result, for its
/// metrics.
///
/// ```no_run
/// use std::num::NonZeroUsize;
/// use std::ops::ControlFlow;
///
/// let made = petstore::backup_to(
///     "petstore.db".as_ref(),
///     "/var/backups".as_ref(),
///     NonZeroUsize::new(14),
///     &mut |_| ControlFlow::Continue(()),
/// )?;
/// println!("{}: {} pets", made.file.display(), made.pets);
/// # Ok::<(), petstore::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::FileMissing`] if there is no such folder, [`ErrorKind::DatabaseDamaged`] or
/// [`ErrorKind::SchemaChanged`] if the copy is not sound, the kinds of a database that cannot be opened or read, and the
/// kinds of a file that cannot be written or removed.
pub fn backup_to(
    database: &Path,
    folder: &Path,
    keep: Option<NonZeroUsize>,
    on_progress: OnProgress,
) -> Result<DatedBackup, Error> {
    let made = make(database, folder, keep, on_progress);
    if made.as_ref().is_err_and(is_unsound) {
        // If even this fails, the last sound backup grows old, which is told as well.
        let _ = Note { is_sound: false, ..last_backup(database).unwrap_or_default() }.write(database);
    }
    made
}

/// Whether an error is about the content of the database.
fn is_unsound(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::DatabaseDamaged | ErrorKind::SchemaChanged)
}

fn make(
    database: &Path,
    folder: &Path,
    keep: Option<NonZeroUsize>,
    on_progress: OnProgress,
) -> Result<DatedBackup, Error> {
    if !folder.is_dir() {
        return fail(ErrorKind::FileMissing, format!("there is no folder {}", folder.display()));
    }
    let whole = Whole::of(database)?;
    let (database, is_cluster) = (&*whole, &*whole != database);
    let series = Series::of(database)?;
    // One after the other, so that the newest name has the newest content. Without the lock, only that is lost.
    let _turn = File::open(folder).and_then(|folder| folder.lock().map(|()| folder));
    // A copy would lack the pets in the log, and might be the only one that is kept.
    if let Some(damage) = log_damage(database) {
        let line = format!("{} is not sound, so no backup is made: {damage}", database.display());
        return fail(ErrorKind::DatabaseDamaged, line);
    }
    let (partial, bytes) = copied(database, &folder.join(series.name(unix_time())), on_progress)?;
    let (pets, alterations) = match usable(&partial.path, Path::new("the copy")) {
        Err(error) if is_unsound(&error) => {
            let file = folder.join(series.unsound());
            let kept = partial.replace(&file);
            let kept = kept.map_or(String::new(), |()| format!(", and is kept as {}", file.display()));
            let database = database.display();
            let line = format!(
                "the copy is not sound{kept}; {database} itself may be damaged; no backup was removed"
            );
            return Err(Error::new(error.kind(), line).caused_by(error));
        }
        found => found?,
    };
    let (file, now) = name(partial, folder, &series, || std::thread::sleep(A_SECOND))?;
    // A cluster has no folder for a note.
    let note = Note { unix_time: now, pets, is_sound: true };
    let unnoted = if is_cluster { None } else { note.write(database).err() };
    let removed = keep.map_or(Ok(Vec::new()), |keep| series.thin(&file, now, keep));
    let removed = removed.map_err(|error| error.context(format!("{} is complete, but", file.display())))?;
    Ok(DatedBackup { file, bytes, pets, alterations, removed, unnoted })
}

/// Copies the database into a partial file, and ends the snapshot, so that the write-ahead log can shrink.
fn copied(database: &Path, file: &Path, on_progress: OnProgress) -> Result<(Partial, u64), Error> {
    let snapshot = Snapshot::of_database(database)?;
    // Named after the database, so that the next backup finds it if this process is killed.
    let partial = Partial::beside(&file.with_file_name(database.file_name().unwrap_or_default()))?;
    let bytes = copy(&snapshot, &partial, file, on_progress)?;
    Ok((partial, bytes))
}

/// Gives the copy its name, never over another file. Returns the file and its time. `wait` waits for the next second.
fn name(
    partial: Partial,
    folder: &Path,
    series: &Series,
    mut wait: impl FnMut(),
) -> Result<(PathBuf, i64), Error> {
    let mut tries = 0;
    loop {
        let now = unix_time();
        let file = folder.join(series.name(now));
        match rename_new(&partial.path, &file) {
            // The backup before was made in the same second.
            Err(error) if error.kind() == ErrorKind::FileExists && tries < MOST_TRIES => {
                tries += 1;
                wait();
            }
            Err(error) => return Err(error),
            Ok(()) => {
                drop(partial);
                flush_folder(&file)?;
                return Ok((file, now));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn copies_of_the_same_second_get_names_of_their_own() {
        let folder = Folder::new();
        let series = Series::of(&folder.database()).unwrap();
        let wait = || std::thread::sleep(A_SECOND);
        let named =
            || name(Partial::beside(&folder.database()).unwrap(), &folder.0, &series, wait).unwrap().0;
        let files = [named(), named(), named()];
        assert!(files[0] < files[1] && files[1] < files[2], "{files:?}");
        assert!(files.iter().all(|file| file.exists()));
    }

    #[test]
    fn only_a_name_that_is_taken_is_waited_for_and_not_for_ever() {
        let folder = Folder::new();
        let series = Series::of(&folder.database()).unwrap();
        let partial = || Partial::beside(&folder.database()).unwrap();
        let never = || panic!("no waiting makes a folder");
        let error = name(partial(), &folder.0.join("missing"), &series, never).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::FileMissing, "{error}");
        // As if the clock had been set back.
        let now = unix_time();
        for second in now..now + 600 {
            std::fs::write(folder.0.join(series.name(second)), "").unwrap();
        }
        let mut waits = 0;
        let wait = || {
            waits += 1;
            assert!(waits <= MOST_TRIES, "it waits for ever");
        };
        let error = name(partial(), &folder.0, &series, wait).unwrap_err();
        assert_eq!((error.kind(), waits), (ErrorKind::FileExists, MOST_TRIES), "{error}");
    }
}
