//! Backup: copies a database, which may be in use. The copy is renamed to its target when it is complete, checked and
//! flushed.

use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use super::atomic_file::{Partial, dated, exists};
use super::check::usable;
use super::last_backup::{Note, last_backup};
use super::rotation::{Series, remove_oldest};
use super::{Backup, Stop};
use crate::store::cluster::{self, Whole, is_cluster};
use crate::store::{Snapshot, left_of};
use petstore_base::clock::{unix_time, warn_if_early};
use petstore_base::error::{Error, ErrorKind, fail};

/// Copies a database into one new file that only its owner may read, and checks the copy. A service may use the
/// database meanwhile.
///
/// The copy has every pet that was acknowledged before the call. On success, the file is complete and flushed to the
/// disk, and a service can use it; on failure, there is no file. A process that is killed leaves a file with the suffix
/// `.partial`; the next backup to the same file removes it.
///
/// The copy pauses as long as it works, so that a service can flush its writes to the disk. Until the copy ends, no
/// checkpoint can shorten the write-ahead log of the database, which grows with every write.
///
/// ```
/// # fn main() -> Result<(), petstore::Error> {
/// # let folder = std::env::temp_dir().join(format!("petstore-doc-backup-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let (database, copy) = (folder.join("pets.db"), folder.join("copy.db"));
/// # petstore::KeyRing::open(&database)?;
/// petstore::backup(&database, &copy, &|| false)?;
/// let restored = petstore::restore(&copy, &database, petstore::RestoredKeys::Automatic, &|| false)?;
/// println!("{} pets; the old database is {:?}", restored.pets, restored.kept);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ErrorKind::FileExists`] if there is a file of this name, [`ErrorKind::DatabaseDamaged`] or
/// [`ErrorKind::SchemaChanged`] if the copy is not sound, the kinds of a database that cannot be opened or read, and
/// the kinds of a file that cannot be written.
pub fn backup(database: &Path, file: &Path, stop: Stop) -> Result<Backup, Error> {
    // What another program has left there would be played into the backup.
    if let Some(there) = file
        .symlink_metadata()
        .map_or_else(|_| left_of(file), |_| Some(file.to_owned()))
    {
        return Err(exists(&there));
    }
    let partial = copied(&cluster::whole(database)?, file, stop)?;
    let copy = checked(&partial, database)?;
    partial.put(file)?;
    Ok(Backup {
        file: file.to_owned(),
        ..copy
    })
}

/// Makes a [`backup`] in `folder`, and then rotates: the newest `keep` backups are retained, and older ones are
/// removed. With `None`, all are retained. All are also retained if the new backup has fewer than half as many pets as
/// the newest of the others.
///
/// The file is named after the database and the time in UTC: `petstore-2026-11-22T06-25-40Z.db` for `petstore.db`. Only
/// files with such a name count and are removed, so two databases that are backed up into one folder need different
/// names. Backups of an earlier database with the same name, and files that cannot be read, are retained and do not
/// count. During the call, the disk needs space for one file more than `keep`. If the copy is not sound, or has faults,
/// nothing is removed.
///
/// A small file next to the database, `petstore.db.last-backup`, reports the result to a running service, for its
/// metrics. For a cluster there is no such file.
///
/// ```no_run
/// use std::num::NonZeroUsize;
///
/// let made = petstore::backup_to(
///     "petstore.db".as_ref(),
///     "/var/backups".as_ref(),
///     NonZeroUsize::new(14),
///     &|| false,
/// )?;
/// println!("{}: {} pets", made.file.display(), made.pets);
/// # Ok::<(), petstore::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::FileMissing`] if the folder does not exist, [`ErrorKind::Conflict`] if another process is backing up
/// this database into it, and the kinds of [`backup`].
pub fn backup_to(
    database: &Path,
    folder: &Path,
    keep: Option<NonZeroUsize>,
    stop: Stop,
) -> Result<Backup, Error> {
    if !folder.is_dir() {
        return fail(
            ErrorKind::FileMissing,
            format!("there is no folder {}", folder.display()),
        );
    }
    let whole = cluster::whole(database)?;
    let series = Series::new(&whole);
    // Named after the database, so that the next backup finds it if this process is killed.
    let unnamed = folder.join(whole.file_name().unwrap_or_default());
    let partial = copied(&whole, &unnamed, stop)?;
    let before = last_backup(database).unwrap_or_default();
    let note = |note: Note| {
        if !is_cluster(database)
            && let Err(error) = note.write(database)
        {
            log::warn!("cannot tell the service about this backup: {error}");
        }
    };
    let copy = checked(&partial, database).inspect_err(|error| {
        if matches!(
            error.kind(),
            ErrorKind::DatabaseDamaged | ErrorKind::SchemaChanged
        ) {
            note(Note {
                is_sound: false,
                ..before
            });
        }
    })?;
    warn_if_early(unix_time());
    let file = dated(|date| folder.join(series.name(date)));
    partial.put(&file)?;
    note(Note {
        unix_time: unix_time(),
        pets: copy.pets,
        is_sound: copy.faults.is_empty(),
    });
    let mut backup = Backup { file, ..copy };
    if !backup.faults.is_empty() && keep.is_some() {
        log::warn!("the backup is not sound: no older one was removed");
    } else if let Some(keep) = keep {
        let rotated = rotate(&series, &backup, keep);
        let complete = || format!("{} is complete, but", backup.file.display());
        backup.removed = rotated.map_err(|error| error.context(complete()))?;
    }
    Ok(backup)
}

/// Removes the oldest backups beyond `keep`, and returns their paths. Only a file that shows that it is a backup of the
/// same database counts, and nothing is removed if the newest of them has far more pets than the new backup.
fn rotate(series: &Series, backup: &Backup, keep: NonZeroUsize) -> Result<Vec<PathBuf>, Error> {
    let identity = |file: &Path| Snapshot::of_file(file).ok()?.identity();
    let own = identity(&backup.file);
    let is_own = |file: &Path| own.is_some() && identity(file) == own;
    let older = series.older(&backup.file, is_own)?;
    let pets_of = |file: &Path| Snapshot::of_file(file).ok()?.pets();
    let pets = backup.pets;
    let before = older.last().map_or(Some(0), |last| pets_of(last));
    match before {
        Some(before) if pets >= before.div_ceil(2) => return remove_oldest(older, keep),
        Some(before) => log::warn!(
            "the backup has {pets} pets, and the one before had {before}: no backup was removed"
        ),
        None => log::warn!("the backup before cannot be read: no backup was removed"),
    }
    Ok(Vec::new())
}

/// Copies a database into a partial file for the target.
pub(super) fn copied(database: &Whole, target: &Path, stop: Stop) -> Result<Partial, Error> {
    let snapshot = Snapshot::of_database(database)?;
    let partial = Partial::beside(target)?;
    snapshot
        .reader
        .copy(&partial.file, &partial.path, &partial.path, stop)?;
    Ok(partial)
}

/// Checks a copy with [`usable`].
fn checked(copy: &Partial, database: &Path) -> Result<Backup, Error> {
    let name = database.display();
    let found = usable(&copy.path, format_args!("the copy of {name}"));
    found.map_err(|error| {
        error.followed_by(format!(
            "{name} itself may be damaged, and no backup was made"
        ))
    })
}
