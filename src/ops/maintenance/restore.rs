//! Restore: puts a copy of a backup in the place of the database, and keeps the old database under a dated name.
//!
//! The steps, and the database to which the name leads after each, also if the process is killed there:
//!
//! 1. Write the copy next to the database, flush and check it: the old database.
//! 2. Lock the old database, and run a checkpoint: the old database, in one file. If the log is not its own, or the
//!    database is too damaged, the log stays for now.
//! 3. Give the copy the API keys and the highest ids of the old database: the old database.
//! 4. Give the old database the dated name as well, or copy it where a file cannot have two names: the old database.
//! 5. Rename the copy to the database's name: the new database. The old one has the dated name.
//! 6. Give the log that has stayed the dated name. Until then nothing opens the new database, as it is not its log.
//!
//! A failure before the end of step 5 removes the files that were made.

use std::fs::{self, Metadata};
use std::io::{self, Read};
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use super::Stop;
use super::atomic_file::{Partial, cannot_create, dated, flush_name, flush_new};
use super::backup::copied;
use super::check::usable;
use crate::base::error::{Error, ErrorKind, fail};
use crate::base::files::folder_of;
use crate::store::{
    self, Claim, Snapshot, Whole, carry_over, check_supported, is_cluster, lacks_log, lock_old, log_of,
};

/// The bytes after which a copy asks whether to stop.
const STEP: u64 = 1 << 20;

/// The result of a [`restore`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// The number of pets in the database now.
    pub pets: u64,
    /// The new path of the old database, or of its log if only that existed; `None` if there was neither.
    pub kept: Option<PathBuf>,
    /// True if the API keys are still those of the old database. Otherwise they are those of the backup.
    pub has_old_keys: bool,
}

/// Whose API keys a database has after a restore.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RestoredKeys {
    /// Those of the database that is replaced, so that no key is valid again that was revoked since the backup. If it
    /// is no earlier or later state of the backup's database, or cannot be read, those of the backup.
    Current,
    /// Those of the backup.
    FromBackup,
}

/// Replaces a database by a copy of the backup `file`.
///
/// The old database is kept in its folder under a dated name, such as `petstore.db.2026-11-21T18-30-00Z` (UTC).
/// Only the owner of the old database may read the new one; if there is none and root restores, the folder's owner. A
/// process that is killed leaves the old database or the new one in place, never a mixture.
///
/// The ids that the old database has given to pets are not given again.
///
/// # Errors
/// [`ErrorKind::DatabaseInUse`] if a service or another program uses the database,
/// [`ErrorKind::BackupUnsound`] if `file` is not a sound backup, [`ErrorKind::SchemaChanged`] if SQL repairs it,
/// [`ErrorKind::DatabaseNewer`] if it is of a later version, [`ErrorKind::FileMissing`] if there is no such file,
/// [`ErrorKind::ClusterUnsupported`] if the database is a cluster, [`ErrorKind::InvalidInput`] if the database is not a
/// regular file, and the kinds of a file that cannot be written. Nothing is changed then.
pub fn restore(file: &Path, database: &Path, keys: RestoredKeys, stop: Stop) -> Result<Restored, Error> {
    let with_keys = keys == RestoredKeys::Current;
    check_supported(database)?;
    if is_cluster(database) {
        return restore_cluster(file, database, with_keys, stop);
    }
    // Replace the file itself, so that a link to it stays a link.
    let target = fs::canonicalize(database).unwrap_or_else(|_| database.to_owned());
    // Held until the new database is in place, and longer than every connection to the old one.
    let old = target.symlink_metadata().is_ok().then(|| Claim::take(&target)).transpose()?;
    if old.is_none() && fs::metadata(log_of(&target)).is_ok_and(|log| log.len() > 0) && lacks_log(file) {
        let message = format!(
            "{} may be the database of {}, which has its newest pets; if it is a backup, first move the log elsewhere",
            file.display(),
            log_of(&target).display()
        );
        return fail(ErrorKind::LogOrphaned, message);
    }
    let partial = Partial::beside(&target)?;
    match &old {
        Some(old) => old.file().and_then(|old| give(&partial, &old.metadata()?)).map_err(|error| {
            let line = format!("{} belongs to another user", database.display());
            Error::new(ErrorKind::PermissionDenied, line).caused_by(error)
        })?,
        // Only root can do this. For others, the file stays theirs.
        None => drop(fs::metadata(folder_of(&target)).and_then(|folder| give(&partial, &folder))),
    }
    let pets = fill(&partial, file, &target, stop)?;
    put(partial, pets, &target, old.as_ref(), with_keys, stop)
}

/// Replaces the database of a cluster, and keeps the old one next to the backup.
fn restore_cluster(file: &Path, database: &Path, with_keys: bool, stop: Stop) -> Result<Restored, Error> {
    let target = file.with_file_name("petstore.db");
    let partial = Partial::beside(&target)?;
    let pets = fill(&partial, file, database, stop)?;
    let kept = dated(|date| target.with_added_extension(date)).path;
    // From here on, no instance acknowledges a write that would be in neither database.
    let closed = store::close(database)?;
    let kept =
        match Whole::new(database).and_then(|old| copied(&old, &kept, stop)).and_then(|copy| copy.put(&kept))
        {
            Ok(()) => Some(kept),
            Err(error) if error.kind() == ErrorKind::ClusterOutdated => None,
            // Its message says so already.
            Err(error) if error.kind() == ErrorKind::Interrupted => return Err(error),
            Err(error) => return Err(error.followed_by("nothing was changed")),
        };
    let old = kept.as_ref().map(|kept| Snapshot::of_file(kept)).transpose()?;
    let has_old_keys = old.map_or(Ok(false), |old| carry_over(old.connection(), &partial.path, with_keys))?;
    closed.load(&partial.path)?;
    Ok(Restored { pets, kept, has_old_keys })
}

/// Step 1. The check reads the copy, because that comes into place. Returns the number of pets.
fn fill(partial: &Partial, file: &Path, target: &Path, stop: Stop) -> Result<u64, Error> {
    let snapshot = Snapshot::of_file(file).map_err(of_backup)?;
    snapshot.copy(&partial.file, &partial.path, target, stop).map_err(of_backup)?;
    usable(&partial.path, file.display()).map(|usable| usable.pets).map_err(of_backup)
}

/// The failure to read a backup, which is not that of the database.
fn of_backup(error: impl Into<Error>) -> Error {
    let error = error.into();
    match error.kind() {
        ErrorKind::DatabaseForeign | ErrorKind::DatabaseDamaged | ErrorKind::DatabaseMissing => {
            error.with_kind(ErrorKind::BackupUnsound)
        }
        _ => error,
    }
}

/// Steps 2 to 6.
fn put(
    partial: Partial,
    pets: u64,
    target: &Path,
    old: Option<&Claim>,
    with_keys: bool,
    stop: Stop,
) -> Result<Restored, Error> {
    // The log of another database must not be applied to the old one.
    let is_whole = old.is_some_and(|old| old.check_log(target).is_ok());
    // Held until the new database is in place, so that nobody writes to the old one.
    let locked = is_whole.then(|| lock_old(target)).transpose()?.flatten();
    if old.is_some() && locked.is_none() {
        log::warn!("the old database cannot be read, so ids that it has given may be given again");
    }
    let has_old_keys = locked.as_ref().map_or(Ok(false), |old| carry_over(old, &partial.path, with_keys))?;
    let flushed = partial.file.sync_all();
    flushed.map_err(|error| Error::io(format!("cannot write {}", partial.path.display()), error))?;
    let kept = dated(|date| target.with_added_extension(date)).path;
    let log = log_of(target);
    let kept_log = log_of(&kept);
    let has_log = log.exists();
    let in_place = match old {
        Some(old) => keep(old, target, &kept, stop)
            .and_then(|()| partial.replace(target).inspect_err(|_| drop(fs::remove_file(&kept)))),
        None => partial.put(target),
    };
    in_place.map_err(|error| error.followed_by("nothing was changed"))?;
    let kept = old.map(|_| kept).or_else(|| has_log.then(|| kept_log.clone()));
    let move_log = || fs::rename(&log, &kept_log).map_err(|error| cannot_create(&kept_log, error));
    let finished = flush_name(target)
        .and_then(|()| if has_log { move_log().and_then(|()| flush_name(&kept_log)) } else { Ok(()) });
    finished.map_err(|error| {
        let old = kept.iter().map(|kept| format!(", and the old one is {}", kept.display()));
        let left = log.exists().then(|| format!("; move {} elsewhere", log.display()));
        error.followed_by("the new database is in place".to_owned() + &old.chain(left).collect::<String>())
    })?;
    Ok(Restored { pets, kept, has_old_keys })
}

/// Step 4. If it fails, there is nothing with the dated name.
fn keep(old: &Claim, target: &Path, kept: &Path, stop: Stop) -> Result<(), Error> {
    if fs::hard_link(target, kept).is_ok() {
        // Otherwise, a power cut could keep the rename and lose this name.
        return flush_new(kept);
    }
    // Without a date, so that the next restore removes what a killed one leaves.
    let mut copy = Partial::beside(&target.with_added_extension("old"))?;
    let cannot = |error| Error::io(format!("cannot write {}", kept.display()), error);
    let content = old.file().map_err(cannot)?;
    while io::copy(&mut content.take(STEP), &mut copy.file).map_err(cannot)? > 0 {
        if stop() {
            return fail(ErrorKind::Interrupted, "interrupted");
        }
    }
    let owner = content.metadata().map_err(cannot)?;
    give(&copy, &owner).and_then(|()| copy.file.sync_all()).map_err(cannot)?;
    copy.put(kept)
}

/// Gives the copy to the owner of a file or folder, as the service of another user could not read it otherwise.
fn give(partial: &Partial, like: &Metadata) -> std::io::Result<()> {
    let own = partial.file.metadata()?;
    let is_owner = (own.uid(), own.gid()) == (like.uid(), like.gid());
    if is_owner { Ok(()) } else { fchown(&partial.file, Some(like.uid()), Some(like.gid())) }
}
