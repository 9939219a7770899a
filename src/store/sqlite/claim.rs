//! One service at a time has a database, whatever names its file has. Only the owner may read a new file.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind as Os, Seek};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use super::log_check;
use super::open_file::{FileId, OpenFile, cannot_open, failed, held, index_of, log_of};
use crate::base::error::{Error, ErrorKind, fail};

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
        return fail(ErrorKind::InvalidInput, message);
    }
    let log = log_of(path);
    if fs::symlink_metadata(path).is_err() && fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
        let message = format!("there is no database {name}, but its log {} is there", log.display());
        return fail(ErrorKind::LogOrphaned, message);
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => return Ok(true),
        Err(error) if error.kind() == Os::AlreadyExists => {}
        Err(error) => return Err(failed(&format!("cannot create the database {name}"), path, error)),
    }
    match fs::metadata(path) {
        // Do not open it here: if this process has it open already, closing it would cancel SQLite's locks.
        Ok(file) if file.is_file() && is_mounted_alone(path) => {
            let message = format!(
                "{name} is mounted alone, so its log would be in another place and be lost with it: mount the whole folder of the database"
            );
            fail(ErrorKind::InvalidInput, message)
        }
        Ok(file) if file.is_file() => Ok(false),
        Ok(file) => {
            let what = if file.is_dir() { "a folder" } else { "not a regular file" };
            fail(ErrorKind::InvalidInput, format!("the database must be a file, but {name} is {what}"))
        }
        Err(error) if error.kind() == Os::NotFound => {
            let message = format!("the database {name} is a symbolic link to a file that does not exist");
            fail(ErrorKind::DatabaseMissing, message)
        }
        Err(error) => Err(cannot_open(path, error)),
    }
}

/// How long a service takes at most from its claim to the index of its log.
const START: Duration = Duration::from_secs(1);
const BRIEFLY: Duration = Duration::from_millis(10);

/// Refuses a file that another process holds under another name. SQLite would not find the log of that one, and a file
/// next to this name that only looks like it would be used.
///
/// # Errors
/// If it is held so, or its file system has no locks.
pub fn refuse_second_name(path: &Path, file: &OpenFile) -> Result<(), Error> {
    let claimed = held(&CLAIMED);
    // A file that announces no log, such as a backup, is whole under each of its names.
    if claimed.contains(&file.id) || !file.has_log_mode().unwrap_or(false) {
        return Ok(());
    }
    drop(claimed);
    let began = Instant::now();
    // A service keeps the index of its log next to the name that it uses, soon after it has the lock. It never uses a
    // file that is mounted alone, and what is next to that is not its own.
    while !index_of(path).exists() || is_mounted_alone(path) {
        match file.try_lock_shared() {
            Ok(()) => return file.unlock().map_err(|error| cannot_open(path, error)),
            Err(TryLockError::Error(error)) => return Err(cannot_open(path, error)),
            Err(TryLockError::WouldBlock) if began.elapsed() < START => thread::sleep(BRIEFLY),
            Err(TryLockError::WouldBlock) => {
                let message = format!(
                    "another process holds {}: a restore, or a service under another name of the file, next to which its \
                     newest pets are. Use that name, and mount whole folders into containers",
                    path.display()
                );
                return fail(ErrorKind::DatabaseLocked, message);
            }
        }
    }
    Ok(())
}

/// Whether the file is a mount of its own, as `docker run -v ./pets.db:/data/pets.db` makes it. Linux tells this since 5.8.
#[cfg(target_os = "linux")]
fn is_mounted_alone(path: &Path) -> bool {
    use rustix::fs::{AtFlags, CWD, StatxAttributes, StatxFlags, statx};
    statx(CWD, path, AtFlags::empty(), StatxFlags::empty())
        .is_ok_and(|file| file.stx_attributes.contains(StatxAttributes::MOUNT_ROOT))
}

#[cfg(not(target_os = "linux"))]
fn is_mounted_alone(_: &Path) -> bool {
    false
}

/// The files that services of this process have claimed.
static CLAIMED: Mutex<Vec<FileId>> = Mutex::new(Vec::new());

/// A database that belongs to one service, whatever links point to it. Drop it after every connection of the
/// service to the database.
#[derive(Debug)]
pub struct Claim {
    /// Whether the claim has created the file.
    pub is_new: bool,
    locked: OpenFile,
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
        let tried = if claimed.contains(&locked.id) {
            Err(TryLockError::WouldBlock)
        } else {
            // A command that looks has it for a moment.
            locked.try_lock().or_else(|_| {
                thread::sleep(BRIEFLY);
                locked.try_lock()
            })
        };
        tried.map_err(|error| match error {
            TryLockError::WouldBlock => {
                let name = path.display();
                let message = format!("another process holds the database {name}, perhaps a running service");
                Error::new(ErrorKind::DatabaseInUse, message)
            }
            TryLockError::Error(error) => cannot_open(path, error),
        })?;
        claimed.push(locked.id);
        drop(claimed);
        Ok(Self { is_new, locked })
    }

    /// The file, from its beginning. Closing another handle of it would cancel SQLite's locks.
    ///
    /// # Errors
    /// If the system cannot go back to its beginning.
    pub fn file(&self) -> io::Result<&File> {
        (&*self.locked).rewind()?;
        Ok(&self.locked)
    }

    /// Refuses the write-ahead log of another database. Call this before opening the database.
    ///
    /// # Errors
    /// If the log is that of another database.
    pub fn check_log(&self, path: &Path) -> Result<(), Error> {
        log_check::check_log(path, &self.locked)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut claimed = held(&CLAIMED);
        // Others may have the file open for longer.
        let _ = self.locked.unlock();
        claimed.retain(|id| *id != self.locked.id);
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
        assert!(!claim.is_new);
        for name in [&path, &hard, &soft] {
            assert_eq!(Claim::take(name).unwrap_err().kind(), ErrorKind::DatabaseInUse);
        }
        drop(claim);
        Claim::take(&soft).unwrap();
    }

    #[test]
    fn claim_is_of_the_file_and_its_log_and_not_of_the_path() {
        let folder = Folder::new();
        let path = folder.database();
        let claim = Claim::take(&path).unwrap();
        assert!(claim.is_new);
        // An empty log has nothing of another database.
        fs::write(log_of(&path), "").unwrap();
        claim.check_log(&path).unwrap();
        fs::write(log_of(&path), "what SQLite would delete").unwrap();
        assert_eq!(claim.check_log(&path).unwrap_err().kind(), ErrorKind::LogForeign);
    }
}
