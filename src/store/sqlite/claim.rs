//! One service at a time has a database, whatever names its file has. Only the owner may read a new file.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind as Os};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::log_check;
use super::open_file::{FileId, OpenFile, cannot_open, failed, held, log_of};
use crate::error::{Error, ErrorKind};

/// How long to wait for a lock that a petstore command holds for a moment.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

/// Makes sure that there is a file that can be a database, and returns whether it is new. A new file is empty,
/// and only its owner may read it, because it will hold the digests of keys. SQLite gives the files next to it
/// the same mode.
///
/// # Errors
/// If the path is not a regular file, or none can be created there.
pub fn prepare(path: &Path) -> Result<bool, Error> {
    let name = path.display();
    let text = path.to_string_lossy();
    if text.is_empty() || text == ":memory:" || text.starts_with("file:") {
        let message = format!("the database must be a file, and '{name}' is not one");
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    let log = log_of(path);
    if fs::symlink_metadata(path).is_err() && fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
        let message = format!("there is no database {name}, but its log {} is there", log.display());
        return Err(Error::new(ErrorKind::LogOrphaned, message));
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => return Ok(true),
        Err(error) if error.kind() == Os::AlreadyExists => {}
        Err(error) => return Err(failed(&format!("cannot create the database {name}"), path, error)),
    }
    let file = match fs::metadata(path) {
        Ok(file) => file,
        Err(error) if error.kind() == Os::NotFound => {
            let message = format!("the database {name} is a symbolic link to a file that does not exist");
            return Err(Error::new(ErrorKind::DatabaseMissing, message).caused_by(error));
        }
        Err(error) => return Err(cannot_open(path, error)),
    };
    if !file.is_file() {
        let what = if file.is_dir() { "a folder" } else { "not a regular file" };
        let message = format!("the database must be a file, but {name} is {what}");
        return Err(Error::new(ErrorKind::InvalidInput, message));
    }
    // Do not open it here: if this process has it open already, closing it would cancel SQLite's locks.
    Ok(false)
}

/// The files that services of this process have claimed, with the logs that they use.
static CLAIMED: Mutex<Vec<(FileId, PathBuf)>> = Mutex::new(Vec::new());

/// Locks a file for one service; `false`: another one has it.
fn lock(file: &File) -> io::Result<bool> {
    let begun = Instant::now();
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(true),
            Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => return Ok(false),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Locks the write-ahead log of a database, which SQLite itself does not lock.
///
/// # Errors
/// If a service has it, or it cannot be opened.
pub fn lock_log(path: &Path) -> Result<File, Error> {
    let log = log_of(path);
    let cannot = |error: io::Error| failed(&format!("cannot open {}", log.display()), &log, error);
    let file = File::open(&log).map_err(cannot)?;
    if lock(&file).map_err(cannot)? {
        return Ok(file);
    }
    let name = path.display();
    let message =
        format!("another process holds the log of {name}, and still uses an earlier database of this name");
    Err(Error::new(ErrorKind::DatabaseInUse, message))
}

/// Whether a service has the file.
fn is_locked(file: &File) -> bool {
    match file.try_lock_shared() {
        Err(error) => matches!(error, TryLockError::WouldBlock),
        Ok(()) => file.unlock().is_err(),
    }
}

/// Refuses to write to a database that a service has under another name, and to one that has taken the place of a
/// service's database. SQLite finds the write-ahead log by name, and writes to the wrong log are lost. Returns whether
/// the service of another process has the database.
///
/// # Errors
/// If such a service runs, or the log is that of another database.
pub fn check_before_writing(path: &Path) -> Result<bool, Error> {
    check(path, false)
}

/// Refuses to read a database without its log, because a service has it under another name, or with the log of
/// another one.
///
/// # Errors
/// If such a service runs, or the log is that of another database.
pub fn check_before_reading(path: &Path) -> Result<(), Error> {
    // A file that promises no log is whole. A restore holds such a file while it checks it.
    let is_whole = OpenFile::at(path).is_ok_and(|file| file.has_log_mode().is_ok_and(|has_log| !has_log));
    check(path, is_whole).map(|_| ())
}

/// Returns whether the service of another process has the database.
fn check(path: &Path, is_whole: bool) -> Result<bool, Error> {
    let name = path.display();
    let begun = Instant::now();
    loop {
        let id = FileId::of(path).map_err(|error| cannot_open(path, error))?;
        let claimed = held(&CLAIMED);
        // A service of this process holds the lock itself.
        let own = claimed.iter().find(|(claimed, _)| *claimed == id);
        let locked = own.map_or_else(|| locks(path), |(_, log)| (true, *log == log_of(path)));
        let is_own = own.is_some();
        drop(claimed);
        let message = match locked {
            (true, true) => return Ok(!is_own),
            (true, false) if !is_whole => {
                format!(
                    "another process holds the database {name}, perhaps a service that uses another name for it"
                )
            }
            (_, false) => return check_log(path).map(|()| false),
            (false, true) => format!("another process holds the log of {name}, but not {name} itself"),
        };
        // A service that starts locks the file first and the log a moment later, so look again.
        if begun.elapsed() >= PATIENCE {
            return Err(Error::new(ErrorKind::DatabaseInUse, message));
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether another process has claimed the file, and its log.
fn locks(path: &Path) -> (bool, bool) {
    (
        OpenFile::at(path).is_ok_and(|file| is_locked(&file)),
        File::open(log_of(path)).is_ok_and(|log| is_locked(&log)),
    )
}

/// Refuses the log of another database, if no service has checked it.
fn check_log(path: &Path) -> Result<(), Error> {
    let Ok(file) = OpenFile::at(path) else { return Ok(()) };
    // If the database changes between the two reads, its log may look foreign for a moment.
    log_check::check_log(path, &file).or_else(|_| {
        std::thread::sleep(PAUSE);
        log_check::check_log(path, &file)
    })
}

/// A database that belongs to one service, whatever links point to it. Drop it after every connection of the
/// service to the database.
#[derive(Debug)]
pub struct Claim {
    is_new: bool,
    locked: OpenFile,
    /// Its write-ahead log, once there is one. Another database that takes the place of this one meanwhile
    /// would have the same log.
    log: Option<File>,
}

impl Claim {
    /// Claims a file, and creates it if there is none.
    ///
    /// # Errors
    /// If it cannot be a database, or another service has it.
    pub fn take(path: &Path) -> Result<Self, Error> {
        let is_new = prepare(path)?;
        let locked = OpenFile::at(path).map_err(|error| cannot_open(path, error))?;
        // A service of this process has the same lock.
        let mut claimed = held(&CLAIMED);
        let is_claimed = claimed.iter().any(|(id, _)| *id == locked.id());
        if is_claimed || !lock(&locked).map_err(|error| cannot_open(path, error))? {
            let message =
                format!("another process holds the database {}, perhaps a running service", path.display());
            return Err(Error::new(ErrorKind::DatabaseInUse, message));
        }
        claimed.push((locked.id(), log_of(path)));
        drop(claimed);
        let mut claim = Self { is_new, locked, log: None };
        claim.check_place(path)?;
        if log_of(path).exists() {
            claim.log = Some(lock_log(path)?);
        }
        Ok(claim)
    }

    /// Refuses the write-ahead log of another database. Call this before opening the database.
    ///
    /// # Errors
    /// If the log is that of another database.
    pub fn check_log(&self, path: &Path) -> Result<(), Error> {
        log_check::check_log(path, &self.locked)
    }

    /// Claims the write-ahead log as well, which exists once the database is open.
    ///
    /// # Errors
    /// If the service of another database has it.
    pub fn take_log(&mut self, path: &Path) -> Result<(), Error> {
        let id = |log: &File| log.metadata().ok().map(|file| FileId::from(&file));
        let found = FileId::of(&log_of(path)).ok();
        if self.log.as_ref().and_then(id).is_none_or(|id| Some(id) != found) {
            self.log = Some(lock_log(path)?);
        }
        Ok(())
    }

    /// Refuses a path that leads to another file by now.
    ///
    /// # Errors
    /// If it does.
    pub fn check_place(&self, path: &Path) -> Result<(), Error> {
        self.locked.check_place(path)
    }

    /// Whether this call created the file.
    pub fn is_new(&self) -> bool {
        self.is_new
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut claimed = held(&CLAIMED);
        // Others may have the file open for longer.
        let _ = self.locked.unlock();
        claimed.retain(|(id, _)| *id != self.locked.id());
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Folder;
    use super::*;
    use std::os::unix::fs::symlink;
    use std::path::PathBuf;

    #[test]
    fn what_is_no_file_is_refused() {
        let folder = Folder::new();
        let dangling = folder.0.join("dangling");
        symlink(folder.0.join("nowhere"), &dangling).unwrap();
        let cycle = folder.0.join("cycle");
        symlink("cycle", &cycle).unwrap();
        for (path, kind, said) in [
            (cycle, ErrorKind::Io, "cannot"),
            (PathBuf::from(":memory:"), ErrorKind::InvalidInput, "must be a file"),
            (PathBuf::from("file:pets.db"), ErrorKind::InvalidInput, "must be a file"),
            (folder.0.clone(), ErrorKind::InvalidInput, "is a folder"),
            (folder.0.join("missing/pets.db"), ErrorKind::DatabaseMissing, "missing does not exist"),
            (PathBuf::from("/dev/null"), ErrorKind::InvalidInput, "not a regular file"),
            (dangling, ErrorKind::DatabaseMissing, "a file that does not exist"),
        ] {
            let error = prepare(&path).unwrap_err();
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(said), "{error}");
        }
    }

    #[test]
    fn log_without_its_database_is_not_written_over() {
        let folder = Folder::new();
        fs::write(log_of(&folder.database()), "log").unwrap();
        assert_eq!(prepare(&folder.database()).unwrap_err().kind(), ErrorKind::LogOrphaned);
        assert!(!folder.database().exists());
        // An empty one has nothing to lose.
        fs::write(log_of(&folder.database()), "").unwrap();
        assert!(prepare(&folder.database()).unwrap());
    }

    #[test]
    fn database_has_one_service_whatever_its_name() {
        let folder = Folder::new();
        let path = folder.database();
        assert!(prepare(&path).unwrap());
        assert!(!prepare(&path).unwrap());
        let (hard, soft) = (folder.0.join("hard"), folder.0.join("soft"));
        fs::hard_link(&path, &hard).unwrap();
        symlink(&path, &soft).unwrap();
        let claim = Claim::take(&path).unwrap();
        assert!(!claim.is_new());
        for name in [&path, &hard, &soft] {
            assert_eq!(Claim::take(name).unwrap_err().kind(), ErrorKind::DatabaseInUse);
        }
        // Its log is found by this name and by a symbolic link.
        check_before_writing(&path).and_then(|_| check_before_writing(&soft)).unwrap();
        assert_eq!(check_before_writing(&hard).unwrap_err().kind(), ErrorKind::DatabaseInUse);
        drop(claim);
        Claim::take(&soft).unwrap();
    }

    #[test]
    fn claim_is_of_the_file_and_its_log_and_not_of_the_path() {
        let folder = Folder::new();
        let path = folder.database();
        let claim = Claim::take(&path).unwrap();
        assert!(claim.is_new());
        // An empty log has nothing of another database.
        fs::write(log_of(&path), "").unwrap();
        claim.check_log(&path).and_then(|()| claim.check_place(&path)).unwrap();
        fs::write(log_of(&path), "what SQLite would delete").unwrap();
        assert_eq!(claim.check_log(&path).unwrap_err().kind(), ErrorKind::LogForeign);
        fs::rename(&path, folder.0.join("elsewhere")).unwrap();
        fs::write(&path, "").unwrap();
        assert_eq!(claim.check_place(&path).unwrap_err().kind(), ErrorKind::Conflict);
    }
}
