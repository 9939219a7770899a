//! Restore: replaces the database by a copy of a backup, and keeps the old database under a dated name.
//!
//! The steps. After each is the database that the name leads to, even if the process is killed at that point:
//!
//! 1. Write the copy next to the database, flush and check it: the old database.
//! 2. Lock the old database, and run a checkpoint: the old database, in one file. If the log or the journal may belong to
//!    another database, or the database is too damaged, it stays for now.
//! 3. Give the copy the API keys and the highest ids of the old database: the old database.
//! 4. Give the old database the dated name as well, or copy it where a file cannot have two names: the old database.
//! 5. Rename the copy to the database's name: the new database. The old one has the dated name.
//! 6. If the log or the journal has stayed, rename it to match the dated name. Until then, the new database cannot be
//!    opened, since it belongs to another database.
//!
//! If a step up to the fifth fails, the new files are removed.

use std::fs::{self, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{MetadataExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};

use super::Stop;
use super::atomic_file::{Partial, cannot_create, dated, flush_name, flush_new};
use super::check::usable;
use crate::store::cluster::{self, check_supported, is_cluster};
use crate::store::{
    Claim, FileId, OldDatabase, RestoredKeys, Snapshot, carry_over, journal_of, lacks_log, left_of,
    lock_old, log_of, renew_changes,
};
use petstore_base::error::{Error, ErrorKind, fail};
use petstore_base::files::folder_of;

/// The result of a [`restore`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// The number of pets in the database now.
    pub pets: u64,
    /// The new path of the old database, or of its log if only that existed; `None` if there was neither.
    pub kept: Option<PathBuf>,
    /// True if the database has the API keys of the old one; false if it has those of the backup.
    pub has_old_keys: bool,
    /// Domains and redirects that were removed since the backup, and are served again.
    pub served_again: Vec<String>,
}

/// Replaces a database by a copy of the backup `file`.
///
/// The old database is kept in its folder under a dated name, such as `petstore.db.2026-11-21T18-30-00Z` (UTC). The new
/// database has the owner, the group and the mode of the old one. If there is none, only its owner may read it: you, or
/// the owner of the folder if root restores. A process that is killed leaves the old database or the new one in place,
/// never a mixture.
///
/// The new database does not reuse ids that the old one has assigned to pets.
///
/// # Errors
/// [`ErrorKind::DatabaseInUse`] if a service or another program uses the database, [`ErrorKind::BackupUnsound`] if
/// `file` is not a sound backup, [`ErrorKind::SchemaChanged`] if SQL can repair it, [`ErrorKind::DatabaseNewer`] if it
/// is of a later version, [`ErrorKind::DatabaseDamaged`] if the keys must be the [`Current`](RestoredKeys::Current) ones and
/// cannot be read, [`ErrorKind::FileMissing`] if there is no such file, [`ErrorKind::ClusterUnsupported`] if the
/// database is a cluster, [`ErrorKind::InvalidInput`] if the database is not a regular file or `file` is the database
/// itself, and the kinds of a file that cannot be written. Nothing is changed then.
pub fn restore(
    file: &Path,
    database: &Path,
    keys: RestoredKeys,
    stop: Stop,
) -> Result<Restored, Error> {
    check_supported(database)?;
    if is_cluster(database) {
        return restore_cluster(file, database, keys, stop);
    }
    // Replace the file itself, so that a link to it stays a link.
    let target = fs::canonicalize(database).unwrap_or_else(|_| database.to_owned());
    refuse_itself(file, &target)?;
    // Held until the new database is in place and every connection to the old one is closed.
    let old = match target.symlink_metadata() {
        Ok(_) => Some(Claim::take(&target)?),
        Err(_) => None,
    };
    if old.is_none() {
        refuse_orphan(file, &target)?;
    }

    // 1. The copy.
    let partial = Partial::beside(&target)?;
    take_owner(&partial, old.as_ref(), &target, database)?;
    let pets = fill(&partial, file, &target, stop)?;

    // 2. The lock on the old database, held so that nobody writes to it.
    let locked = match &old {
        Some(old) => lock(old, &target)?,
        None => None,
    };

    // 3. The keys, the highest ids, and the record of changes.
    let (has_old_keys, served_again) = carry_over(locked.as_ref(), &partial.path, keys)?;
    renew_changes(locked.as_ref(), &partial.path)?;
    if old.is_some() && locked.is_none() {
        log::warn!("the old database cannot be read, so ids that it has given may be given again");
    }
    partial
        .file
        .sync_all()
        .map_err(|error| Error::io(format!("cannot write {}", partial.path.display()), error))?;

    // 4. The dated name.
    let dated_name = dated(|date| target.with_added_extension(date));
    let left: Vec<_> = [log_of, journal_of]
        .map(|of| (of(&target), of(&dated_name)))
        .into_iter()
        .filter(|(left, _)| left.exists())
        .collect();
    let unchanged = |error: Error| error.followed_by("nothing was changed");
    if let Some(old) = &old {
        name_as_well(old, &target, &dated_name).map_err(unchanged)?;
    }

    // 5. The database's name.
    if old.is_none() {
        partial.put(&target).map_err(unchanged)?;
    } else if let Err(error) = partial.replace(&target) {
        let _ = fs::remove_file(&dated_name);
        return Err(unchanged(error));
    }

    // 6. The log or the journal.
    let kept = match &old {
        Some(_) => Some(dated_name),
        None => left.first().map(|(_, moved)| moved.clone()),
    };
    move_left(&target, &left).map_err(|error| {
        let mut now = "the new database is in place".to_owned();
        if let Some(kept) = &kept {
            now += &format!(", and the old one is {}", kept.display());
        }
        for (left, _) in left.iter().filter(|(left, _)| left.exists()) {
            now += &format!("; move {} elsewhere", left.display());
        }
        error.followed_by(now)
    })?;
    Ok(Restored {
        pets,
        kept,
        has_old_keys,
        served_again,
    })
}

/// Fails if the backup is the database.
fn refuse_itself(file: &Path, target: &Path) -> Result<(), Error> {
    match (FileId::from_path(file), FileId::from_path(target)) {
        (Ok(backup), Ok(database)) if backup == database => {
            let line = format!(
                "{} is the database itself, and not a backup of it",
                file.display()
            );
            fail(ErrorKind::InvalidInput, line)
        }
        _ => Ok(()),
    }
}

/// Fails if there is no database, and the backup may be that of the log or the journal at its name. Nothing in a journal
/// tells whether this is its database; a log has its newest pets.
fn refuse_orphan(file: &Path, target: &Path) -> Result<(), Error> {
    match left_of(target) {
        Some(left) if left == journal_of(target) || lacks_log(file) => {
            let message = format!(
                "{} may be the database of {}; if it is a backup, first move that file elsewhere",
                file.display(),
                left.display()
            );
            fail(ErrorKind::LogOrphaned, message)
        }
        _ => Ok(()),
    }
}

/// Gives the copy the owner, the group and the mode of the old database or, if there is none, the owner of its folder.
fn take_owner(
    partial: &Partial,
    old: Option<&Claim>,
    target: &Path,
    database: &Path,
) -> Result<(), Error> {
    let Some(old) = old else {
        // Only root can do this. Other users keep the file.
        let _ = fs::metadata(folder_of(target)).and_then(|folder| give(partial, &folder));
        return Ok(());
    };
    let given = old.file().and_then(|file| give(partial, &file.metadata()?));
    given.map_err(|error| {
        let line = format!("{} belongs to another user", database.display());
        Error::new(ErrorKind::PermissionDenied, line).caused_by(error)
    })
}

/// Step 2. `None` if the old database cannot be read, or its log may be that of another database, which must not be
/// applied to it.
fn lock(old: &Claim, target: &Path) -> Result<Option<OldDatabase>, Error> {
    match old.check_log(target) {
        Ok(()) => lock_old(target),
        Err(error) if error.kind() == ErrorKind::DatabaseLocked => Err(error),
        Err(_) => Ok(None),
    }
}

/// Step 6, for each file that has stayed and its new name. First it flushes the new name of the database.
fn move_left(target: &Path, left: &[(PathBuf, PathBuf)]) -> Result<(), Error> {
    flush_name(target)?;
    for (left, moved) in left {
        fs::rename(left, moved).map_err(|error| cannot_create(moved, error))?;
        flush_name(moved)?;
    }
    Ok(())
}

/// Makes a backup the database of a cluster that has none. Nothing of it is served that only a file has, such as custom
/// domains, but it is there again in a backup of the cluster.
fn restore_cluster(
    file: &Path,
    database: &Path,
    keys: RestoredKeys,
    stop: Stop,
) -> Result<Restored, Error> {
    let partial = Partial::beside(&file.with_file_name("petstore.db"))?;
    let pets = fill(&partial, file, database, stop)?;
    let (has_old_keys, served_again) = carry_over(None, &partial.path, keys)?;
    cluster::load(database, &partial.path)?;
    Ok(Restored {
        pets,
        kept: None,
        has_old_keys,
        served_again,
    })
}

/// Step 1. The check reads the copy, not the backup, because the copy becomes the database. Returns the number of pets.
fn fill(partial: &Partial, file: &Path, target: &Path, stop: Stop) -> Result<u64, Error> {
    let filled = Snapshot::of_file(file)
        .and_then(|snapshot| {
            snapshot
                .reader
                .copy(&partial.file, &partial.path, target, stop)
        })
        .and_then(|()| usable(&partial.path, file.display()));
    filled
        .map(|copy| copy.pets)
        .map_err(|error| match error.kind() {
            // The kinds of a database would mean the database to replace.
            ErrorKind::DatabaseForeign
            | ErrorKind::DatabaseDamaged
            | ErrorKind::DatabaseMissing => error.with_kind(ErrorKind::BackupUnsound),
            _ => error,
        })
}

/// Step 4. If it fails, it leaves no file with the dated name.
fn name_as_well(old: &Claim, target: &Path, kept: &Path) -> Result<(), Error> {
    if fs::hard_link(target, kept).is_ok() {
        // Without this flush, a power cut could keep the later rename and lose this name.
        return flush_new(kept);
    }
    // Without a date, so that the next restore removes the file if this process is killed.
    let mut copy = Partial::beside(&target.with_added_extension("old"))?;
    let cannot = |error| Error::io(format!("cannot write {}", kept.display()), error);
    let mut content = old.file().map_err(cannot)?;
    io::copy(&mut content, &mut copy.file).map_err(cannot)?;
    let owner = content.metadata().map_err(cannot)?;
    give(&copy, &owner)
        .and_then(|()| copy.file.sync_all())
        .map_err(cannot)?;
    copy.put(kept)
}

/// Changes the owner, the group and the mode of the copy to those of another file: a service that runs as that user could
/// not read it otherwise. Of a folder, it takes the owner and the group.
fn give(partial: &Partial, like: &Metadata) -> std::io::Result<()> {
    let own = partial.file.metadata()?;
    if (own.uid(), own.gid()) != (like.uid(), like.gid()) {
        fchown(&partial.file, Some(like.uid()), Some(like.gid()))?;
    }
    if like.is_file() {
        // Not all file systems have modes.
        let mode = Permissions::from_mode(like.mode() & 0o777);
        let _ = partial.file.set_permissions(mode);
    }
    Ok(())
}
