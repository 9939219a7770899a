//! A copy in the place of the database, which is kept under another name.
//!
//! What stands under the database's name, after each step. A process killed there leaves it so.
//!
//! 1. The copy is made beside it, flushed and checked: the old database.
//! 2. The old write-ahead log is moved into the old database: the old database, in one file.
//! 3. The old database gets its dated name as well: the old database, under two names.
//! 4. The copy is renamed to the database's name: the new database.
//!
//! Where the old database is too damaged for step 2, or the log is not its own, the log gets a dated name in step 3
//! and is then removed beside it: SQLite would read it into the new one. Where there is no old database, the copy gets
//! its name in step 4 as a second one, so that a database made meanwhile stays.

use std::fs::{self, Metadata};
use std::io::ErrorKind;
use std::os::unix::fs::{MetadataExt, fchown};
use std::path::{Path, PathBuf};

use super::check::check;
use super::partial::{Partial, exists, flush_folder, link, names_after, with_suffix};
use super::{OnProgress, copy};
use crate::Error;
use crate::clock::{rfc3339, unix_time};
use crate::store::{Claim, Snapshot, lock_log, log_of, retire};

/// What SQLite keeps beside a database and needs with it.
const BESIDE: [&str; 2] = ["-wal", "-journal"];
/// The index of the log, which SQLite makes anew.
const INDEX: &str = "-shm";
/// The most restores within one second.
const MOST_NAMES: usize = 100;

/// What a restore did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Restored {
    /// How many animals there are now.
    pub animals: u64,
    /// Where the database is that was there before; `None`: there was none.
    pub kept: Option<PathBuf>,
}

/// Puts a copy of `file` in the place of a database. The database that was there is kept beside it under a dated
/// name, such as `petstore.db.2026-11-21T18-30-00Z` (UTC). Only the owner of the old one may read the new one.
///
/// A process that is killed meanwhile leaves the old database or the new one in place.
///
/// # Errors
/// Where a service or another program has the database, `file` is not sound, or a file cannot be written. Nothing
/// is changed then.
pub fn restore(file: &Path, database: &Path, on_progress: OnProgress) -> Result<Restored, Error> {
    // The file itself, as a link to it is to stay one.
    let target = fs::canonicalize(database).unwrap_or_else(|_| database.to_owned());
    let old = fs::symlink_metadata(&target).ok();
    if old.as_ref().is_some_and(|old| !old.is_file()) {
        return Err(format!("{} is not a file that can be replaced", database.display()).into());
    }
    let is_old = |file: &Metadata| old.as_ref().is_some_and(|old| id(old) == id(file));
    if fs::metadata(file).is_ok_and(|file| is_old(&file)) {
        return Err(format!("{} is the database itself; name a backup", file.display()).into());
    }
    // Lives until the new database is in place, and longer than every connection to the old one.
    let claim = match &old {
        Some(_) => Some(Claim::take(&target)?),
        None => None,
    };
    let _log = match &old {
        None if log_of(&target).exists() => Some(lock_log(&target)?),
        _ => None,
    };
    // The log of another database is none that the old one is to have.
    let is_whole = claim.as_ref().is_some_and(|claim| claim.check_log(&target).is_ok());
    let partial = Partial::beside(&target)?;
    if let Some(old) = &old {
        give(&partial, old).map_err(|()| {
            format!("{} belongs to another user; restore as that user or as root", database.display())
        })?;
    }
    let animals = fill(&partial, file, &target, on_progress)?;
    let kept = exchange(partial, &target, old.is_some(), is_whole)?;
    Ok(Restored { animals, kept })
}

/// Step 1. Returns how many animals there are in the copy. What comes into place is what was checked.
fn fill(partial: &Partial, file: &Path, target: &Path, on_progress: OnProgress) -> Result<u64, Error> {
    let name = file.display();
    let snapshot = Snapshot::of_file(file)?;
    copy(&snapshot, partial, target, on_progress)?;
    if !snapshot.is_unchanged() {
        return Err(format!("{name} was written to while it was copied; try again").into());
    }
    let sound = check(partial.path())?;
    match sound.faults.first() {
        None => Ok(sound.animals),
        Some(fault) => Err(format!("{name} is not sound: {fault} (petstore check {name} says all)").into()),
    }
}

/// Steps 2 to 4. Returns the new name of what was there.
fn exchange(
    partial: Partial,
    target: &Path,
    has_old: bool,
    is_whole: bool,
) -> Result<Option<PathBuf>, String> {
    let left = || BESIDE.into_iter().filter(|suffix| with_suffix(target, suffix).exists());
    if !has_old && left().next().is_none() {
        put_new(partial, target)?;
        return Ok(None);
    }
    // Lives until the new database is in place, so that nobody writes to the old one.
    let retired = if is_whole { retire(target)? } else { None };
    forget_second_names(target);
    let left: Vec<&str> = if retired.is_some() { Vec::new() } else { left().collect() };
    let kept = keep(target, has_old, &left)?;
    flush_folder(target)?;
    for suffix in left.iter().copied().chain([INDEX]) {
        let path = with_suffix(target, suffix);
        if let Err(error) = fs::remove_file(&path)
            && error.kind() != ErrorKind::NotFound
        {
            return Err(format!("cannot remove {}: {error}", path.display()));
        }
    }
    flush_folder(target)?;
    let put = if has_old { partial.replace(target) } else { put_new(partial, target) };
    if let Err(line) = put {
        // The database keeps its one name.
        forget_second_names(target);
        return Err(line);
    }
    // Where there was no database, its name is not there either.
    Ok(Some(match left.first() {
        Some(suffix) if !has_old => with_suffix(&kept, suffix),
        Some(_) | None => kept,
    }))
}

/// Gives the copy its name, never over a database that has come meanwhile.
fn put_new(partial: Partial, target: &Path) -> Result<(), String> {
    partial.put(target).map_err(|line| match target.exists() {
        true => format!("{} was made meanwhile by another process; end that first", target.display()),
        false => line,
    })
}

/// Gives what is there a dated name as well: the database, where there is one, and what is left beside it.
fn keep(target: &Path, has_old: bool, left: &[&str]) -> Result<PathBuf, String> {
    // Some file systems take no colons.
    let now = with_suffix(target, &format!(".{}", rfc3339(unix_time())).replace(':', "-"));
    let further = (2..=MOST_NAMES).map(|count| with_suffix(&now, &format!("-{count}")));
    let is_free =
        |name: &PathBuf| ["", BESIDE[0], BESIDE[1]].iter().all(|end| !with_suffix(name, end).exists());
    let kept = std::iter::once(now.clone()).chain(further).find(is_free).ok_or_else(|| exists(&now))?;
    if has_old {
        link(target, &kept)?;
    }
    for suffix in left {
        link(&with_suffix(target, suffix), &with_suffix(&kept, suffix))?;
    }
    Ok(kept)
}

/// Removes dated names that are second names of the database itself: a restore that was killed left them, and
/// what is under them changes with the database. One with a log of its own is no mere name.
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

/// Gives the copy to the owner of the old database: a service of another user could not read it otherwise.
fn give(partial: &Partial, old: &Metadata) -> Result<(), ()> {
    let new = partial.file.metadata().map_err(|_| ())?;
    if (new.uid(), new.gid()) == (old.uid(), old.gid()) {
        return Ok(());
    }
    fchown(&partial.file, Some(old.uid()), Some(old.gid())).map_err(|_| ())
}

fn id(file: &Metadata) -> (u64, u64) {
    (file.dev(), file.ino())
}
