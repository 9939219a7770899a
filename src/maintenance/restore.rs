//! Restore: puts a copy of a backup in the place of the database, and keeps the old database under a dated name.
//!
//! The steps, and what the database's name leads to after each, also if the process is killed there:
//!
//! 1. Write the copy next to the database, flush and check it: the old database.
//! 2. Lock the old database, and move its write-ahead log into it: the old database, in one file.
//! 3. Give the copy the dated name: the old database.
//! 4. Exchange the two names: the new database. The old one has the dated name.
//!
//! If the old database is too damaged for step 2, or the log is not its own, the log gets a dated name after step 4.
//! After a kill in between, every start refuses the new database with that log, until the restore is run again. The
//! other order would leave the old database without its log, which a start does not notice. A journal gets its dated
//! name before step 3, because SQLite would apply it to the new database. If there is no old database, the copy is
//! renamed to its name, never over a database that was created meanwhile.

use std::fs::{self, Metadata};
use std::io::ErrorKind as Os;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use super::backup::backup;
use super::check::usable;
use super::partial::{Partial, dated, exists, flush_folder, folder, names_after, rename_new, with_suffix};
use super::{BESIDE, OnProgress, copy};
use crate::clock::unix_time;
use crate::error::{Error, ErrorKind, check_supported, fail, is_cluster};
use crate::store::{self, Claim, Retired, Snapshot, lacks_log, lock_log, log_of, renew_mark, retire};

/// The suffix of the log's index, which SQLite can create again.
const INDEX: &str = "-shm";
/// The most dated names for one second.
const MOST_NAMES: usize = 100;

/// The result of a [`restore`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// The number of pets in the database now.
    pub pets: u64,
    /// What other programs have changed or added in the backup, in one line; `None` if nothing. It is restored too.
    pub alterations: Option<String>,
    /// The new path of the old database, or of its log if only that existed; `None` if there was neither.
    pub kept: Option<PathBuf>,
}

/// Replaces a database by a copy of the backup `file`.
///
/// The old database is kept in its folder under a dated name, such as `petstore.db.2026-11-21T18-30-00Z` (UTC).
/// Only the owner of the old database may read the new one; if there is none and root restores, the folder's owner. A process that is killed meanwhile leaves the old
/// database or the new one in place, never a mixture.
///
/// # Errors
/// [`ErrorKind::DatabaseInUse`] if a service or another program uses the database,
/// [`ErrorKind::BackupUnsound`] if `file` is not a sound backup, [`ErrorKind::SchemaChanged`] if SQL repairs it,
/// [`ErrorKind::DatabaseNewer`] if it is of a later version, [`ErrorKind::FileMissing`] if there is no such file, [`ErrorKind::ClusterUnsupported`] if the database is a cluster, [`ErrorKind::InvalidInput`] if `file` is the database itself or the database is not a regular file, and
/// the kinds of a file that cannot be written. Nothing is changed then.
pub fn restore(file: &Path, database: &Path, on_progress: OnProgress) -> Result<Restored, Error> {
    check_supported(database)?;
    if is_cluster(database) {
        return restore_cluster(file, database, on_progress);
    }
    // Replace the file itself, so that a link to it stays a link.
    let target = fs::canonicalize(database).unwrap_or_else(|_| database.to_owned());
    let old = fs::symlink_metadata(&target).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return unusable(database, "is not a file that can be replaced");
    }
    let is_old = |file: &Metadata| old.as_ref().is_some_and(|old| id(old) == id(file));
    if fs::metadata(file).is_ok_and(|file| is_old(&file)) {
        return unusable(file, "is the database itself, not a backup");
    }
    // Held until the new database is in place, and longer than every connection to the old one.
    let claim = old.as_ref().map(|_| Claim::take(&target)).transpose()?;
    let log = (old.is_none() && log_of(&target).exists()).then(|| lock_log(&target)).transpose()?;
    if log.as_ref().is_some_and(|log| log.metadata().is_ok_and(|log| log.len() > 0)) && lacks_log(file) {
        let (file, log) = (file.display(), log_of(&target));
        let message = format!(
            "{file} may be the database of {}, which has its newest pets; if it is a backup, first move the log elsewhere",
            log.display()
        );
        return fail(ErrorKind::LogOrphaned, message);
    }
    // The log of another database must not be moved into the old one.
    let is_whole = claim.as_ref().is_some_and(|claim| claim.check_log(&target).is_ok());
    let partial = Partial::beside(&target)?;
    match &old {
        Some(old) => give(&partial, old, database)?,
        None => give_to_owner_of_folder(&partial, &target),
    }
    let (pets, alterations) = fill(&partial, file, &target, on_progress)?;
    let kept = exchange(partial, &target, old.is_some(), is_whole)?;
    Ok(Restored { pets, alterations, kept })
}

/// Replaces what a cluster has. Its old database is kept next to the backup.
fn restore_cluster(file: &Path, database: &Path, on_progress: OnProgress) -> Result<Restored, Error> {
    let target = file.with_file_name("petstore.db");
    let partial = Partial::beside(&target)?;
    let (pets, alterations) = fill(&partial, file, database, on_progress)?;
    let kept = dated_name(&target)?;
    // From here on no instance acknowledges what would be in neither database.
    let closed = store::close(database)?;
    let kept = match backup(database, &kept, on_progress) {
        Ok(_) => Some(kept),
        Err(error) if error.kind() == ErrorKind::ClusterOutdated => None,
        // This one says so itself.
        Err(error) if error.kind() == ErrorKind::Interrupted => return Err(error),
        Err(error) => return Err(error.followed_by("nothing was changed")),
    };
    closed.load(&partial.path)?;
    Ok(Restored { pets, alterations, kept })
}

/// Step 1. Returns the number of pets in the copy, and what other programs have changed or added. The copy is checked,
/// because it is what comes into place. What the service works with is restored as it is.
fn fill(
    partial: &Partial,
    file: &Path,
    target: &Path,
    on_progress: OnProgress,
) -> Result<(u64, Option<String>), Error> {
    let name = file.display();
    let snapshot = Snapshot::of_file(file).map_err(of_backup)?;
    copy(&snapshot, partial, target, on_progress).map_err(of_backup)?;
    if !snapshot.is_unchanged() {
        return fail(ErrorKind::Conflict, format!("{name} was written to while it was copied"));
    }
    let (pets, alterations) = usable(&partial.path, file).map_err(of_backup)?;
    // From now on it is another database, so that no log of the old one fits it.
    renew_mark(&partial.path)?;
    Ok((pets, alterations))
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

/// Steps 2 to 4. Returns the new path of the old database.
fn exchange(
    partial: Partial,
    target: &Path,
    has_old: bool,
    is_whole: bool,
) -> Result<Option<PathBuf>, Error> {
    let left = || BESIDE.into_iter().filter(|suffix| with_suffix(target, suffix).exists());
    if !has_old && left().next().is_none() {
        put_new(partial, target)?;
        return Ok(None);
    }
    // Held until the new database is in place, so that nobody writes to the old one.
    let retired = has_old.then(|| retire(target, is_whole)).transpose()?;
    forget_second_names(target);
    let is_one_file = matches!(retired, Some(Retired::Whole(_)));
    let left: Vec<&str> = if is_one_file { Vec::new() } else { left().collect() };
    let kept = dated_name(target)?;
    let take_along = |suffix: &str| match left.contains(&suffix) {
        true => rename_new(&with_suffix(target, suffix), &with_suffix(&kept, suffix)),
        false => Ok(()),
    };
    let [log, journal] = BESIDE;
    take_along(journal)?;
    // The log as well: SQLite does not tell that it could not remove it.
    let left_over = if is_one_file { &[log, INDEX][..] } else { &[INDEX] };
    for path in left_over.iter().map(|suffix| with_suffix(target, suffix)) {
        if let Err(error) = fs::remove_file(&path)
            && error.kind() != Os::NotFound
        {
            return Err(Error::io(format!("cannot remove {}", path.display()), error));
        }
    }
    flush_folder(target)?;
    if has_old { partial.exchange(target, &kept) } else { put_new(partial, target) }?;
    take_along(log)?;
    flush_folder(target)?;
    // If there was no database, only its log has a dated name.
    Ok(Some(match left.first() {
        Some(suffix) if !has_old => with_suffix(&kept, suffix),
        Some(_) | None => kept,
    }))
}

/// Gives the copy its name, never over a database that was created meanwhile.
fn put_new(partial: Partial, target: &Path) -> Result<(), Error> {
    partial.put(target).map_err(|error| match error.kind() {
        ErrorKind::FileExists => {
            let line = format!("another process created {} meanwhile", target.display());
            Error::new(ErrorKind::DatabaseInUse, line)
        }
        _ => error,
    })
}

/// A new name with the time, for the old database and the files left next to it.
fn dated_name(target: &Path) -> Result<PathBuf, Error> {
    let now = with_suffix(target, &format!(".{}", dated(unix_time())));
    let further = (2..=MOST_NAMES).map(|count| with_suffix(&now, &format!("-{count}")));
    let is_free =
        |name: &PathBuf| ["", BESIDE[0], BESIDE[1]].iter().all(|end| !with_suffix(name, end).exists());
    std::iter::once(now.clone()).chain(further).find(is_free).ok_or_else(|| exists(&now))
}

/// Removes dated names that are second names of the database itself, so that the file behind them changes with it. A
/// killed restore has left them if it was an earlier version's, or the file system cannot exchange two names. A name
/// with a log of its own is not one of them.
fn forget_second_names(target: &Path) {
    let Ok(database) = fs::metadata(target) else { return };
    for (path, _) in names_after(target, ".2") {
        let is_second = || fs::symlink_metadata(&path).is_ok_and(|file| id(&file) == id(&database));
        let has_own = || BESIDE.iter().any(|suffix| with_suffix(&path, suffix).exists());
        if is_second() && !has_own() {
            let _ = fs::remove_file(&path);
        }
    }
}

/// Gives the copy to the owner of the old database, as the service of another user could not read it otherwise.
fn give(partial: &Partial, old: &Metadata, database: &Path) -> Result<(), Error> {
    let given = partial.file.metadata().and_then(|new| {
        let is_same = (new.uid(), new.gid()) == (old.uid(), old.gid());
        if is_same { Ok(()) } else { fchown(&partial.file, Some(old.uid()), Some(old.gid())) }
    });
    given.map_err(|error| {
        let line = format!("{} belongs to another user", database.display());
        Error::new(ErrorKind::PermissionDenied, line).caused_by(error)
    })
}

/// Gives what root restores to the owner of the folder, as the service of another user could not read it otherwise.
fn give_to_owner_of_folder(partial: &Partial, target: &Path) {
    let is_of_root = partial.file.metadata().is_ok_and(|new| new.uid() == 0);
    if is_of_root && let Ok(folder) = fs::metadata(folder(target)) {
        // A root that may not do this has the file itself, as if it were any other user.
        let _ = fchown(&partial.file, Some(folder.uid()), Some(folder.gid()));
    }
}

fn unusable<T>(path: &Path, why: &str) -> Result<T, Error> {
    fail(ErrorKind::InvalidInput, format!("{} {why}", path.display()))
}

fn id(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    #[test]
    fn database_that_came_meanwhile_is_in_use() {
        let folder = Folder::new();
        fs::write(folder.database(), "mine").unwrap();
        let error = put_new(Partial::beside(&folder.database()).unwrap(), &folder.database()).unwrap_err();
        let line = format!("another process created {} meanwhile", folder.database().display());
        assert_eq!((error.kind(), error.to_string()), (ErrorKind::DatabaseInUse, line));
    }
}
