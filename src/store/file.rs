//! The database's file: made for its owner only, and claimed by one service.

use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::ops::Deref;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
use rustix::io::Errno;

use super::mark;

/// Identifies a file, whatever its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Asks for the inode alone, which `fs::metadata` does not: since Linux 6.13 a file whose times were asked for
    /// gets a fine-grained time at its next write, and its flush becomes dearer by two fifths
    /// (`docs.kernel.org/filesystems/multigrain-ts.html`).
    pub fn of(path: &Path) -> io::Result<Self> {
        match statx(CWD, path, AtFlags::empty(), StatxFlags::INO) {
            Ok(file) => {
                Ok(Self { device: makedev(file.stx_dev_major, file.stx_dev_minor), inode: file.stx_ino })
            }
            // Before Linux 4.11, or in a sandbox that does not know it.
            Err(Errno::NOSYS) => fs::metadata(path).map(|file| Self::from(&file)),
            Err(error) => Err(error.into()),
        }
    }
}

impl From<&Metadata> for FileId {
    fn from(file: &Metadata) -> Self {
        Self { device: file.dev(), inode: file.ino() }
    }
}

/// Makes sure that there is a file that can be a database. A new one is empty, and only its owner may read
/// it: it will hold the digests of keys. SQLite gives the files beside it the same mode. Says whether it is new.
///
/// # Errors
/// One plain line that names the file and says what is wrong with it.
pub fn prepare(path: &Path) -> Result<bool, String> {
    let name = path.display();
    let text = path.to_string_lossy();
    if text.is_empty() || text == ":memory:" || text.starts_with("file:") {
        return Err(format!("the database must be a file, and '{name}' is none"));
    }
    let log = log_of(path);
    if fs::symlink_metadata(path).is_err() && fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
        return Err(format!(
            "there is no database {name}, but its log {log} is there: put the database back, or restore a backup; \
             to begin anew, move the log away",
            log = log.display()
        ));
    }
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => return Ok(true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => {}
        Err(error) => return Err(format!("cannot create the database {name}: {}", plain(&error, path))),
    }
    let file = fs::metadata(path).map_err(|error| match error.kind() {
        ErrorKind::NotFound => format!("the database {name} is a link that leads nowhere"),
        _ => format!("cannot open the database {name}: {}", plain(&error, path)),
    })?;
    if file.is_dir() {
        return Err(format!("the database {name} is a folder"));
    }
    if !file.is_file() {
        return Err(format!("the database {name} is not a regular file"));
    }
    // It is not opened here: closing it would cancel SQLite's locks where this process has it open already.
    Ok(false)
}

/// What the operating system means, in words for an operator.
fn plain(error: &io::Error, path: &Path) -> String {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match error.kind() {
        ErrorKind::NotFound => format!("the folder {} does not exist", folder.display()),
        ErrorKind::PermissionDenied => {
            format!(
                "this user may not read and write it; look at the modes of it and of {}",
                folder.display()
            )
        }
        ErrorKind::ReadOnlyFilesystem => "its file system can only be read".to_owned(),
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => "the disk is full".to_owned(),
        ErrorKind::NotADirectory => format!("{} is not a folder", folder.display()),
        _ => format!("the system says: {error}"),
    }
}

/// Opens the file of a database, for a connection to it.
///
/// # Errors
/// One plain line.
pub fn open(path: &Path) -> Result<Opened, String> {
    Opened::at(path)
        .map_err(|error| format!("cannot open the database {}: {}", path.display(), plain(&error, path)))
}

/// The files that services of this process have claimed.
static CLAIMED: Mutex<Vec<FileId>> = Mutex::new(Vec::new());

/// Files that SQLite locks, and that this process has open otherwise as well. Closing one cancels SQLite's locks of
/// the same process on it (`sqlite.org/howtocorrupt.html`, section 2.2). So each is opened once, and closed after the
/// last connection.
static OPEN: Mutex<Vec<(FileId, Arc<File>)>> = Mutex::new(Vec::new());

fn held<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A file that stays open as long as anybody in this process has one of these.
#[derive(Debug)]
pub struct Opened {
    id: FileId,
    /// Empty only at the end.
    file: Option<Arc<File>>,
}

impl Opened {
    /// Opens a file for reading. Each connection has one of these from before it is opened until it is closed.
    pub fn at(path: &Path) -> io::Result<Self> {
        let mut open = held(&OPEN);
        let id = FileId::of(path)?;
        if let Some((_, file)) = open.iter().find(|(known, _)| *known == id) {
            return Ok(Self { id, file: Some(Arc::clone(file)) });
        }
        let file = Arc::new(File::open(path)?);
        // What has come to this path just now may be known, and is not to be closed before the other one.
        let id = FileId::from(&file.metadata()?);
        open.push((id, Arc::clone(&file)));
        Ok(Self { id, file: Some(file) })
    }

    /// Whether it is still what the path leads to.
    fn is_at(&self, path: &Path) -> bool {
        FileId::of(path).ok() == Some(self.id)
    }
}

impl Deref for Opened {
    type Target = File;

    fn deref(&self) -> &File {
        match &self.file {
            Some(file) => file,
            None => unreachable!("it is empty only at the end"),
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        let mut open = held(&OPEN);
        self.file = None;
        // The last one closes it, before anybody opens it anew.
        let is_used = |id| open.iter().any(|(other, file)| *other == id && Arc::strong_count(file) > 1);
        if !is_used(self.id) {
            open.retain(|(id, _)| *id != self.id);
        }
    }
}

/// A database that this service has, and no other, whatever links lead to it. It must be dropped after every
/// connection of the service to the database is closed.
#[derive(Debug)]
pub struct Claim {
    is_new: bool,
    locked: Opened,
    /// Its write-ahead log, once there is one. A database that comes into the place of this one meanwhile would
    /// have the same log.
    log: Option<File>,
}

/// How long a lock of a petstore that only looks is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
pub const PAUSE: Duration = Duration::from_millis(20);

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

/// Locks the write-ahead log of a database. SQLite itself does not.
///
/// # Errors
/// One plain line, where a service has it or it cannot be opened.
pub fn lock_log(path: &Path) -> Result<File, String> {
    let (log, name) = (log_of(path), path.display());
    let cannot = |error: io::Error| format!("cannot open {}: {}", log.display(), plain(&error, &log));
    let file = File::open(&log).map_err(cannot)?;
    match lock(&file).map_err(cannot)? {
        true => Ok(file),
        false => Err(format!(
            "another process holds the log beside {name}, and serves a database that was there before; end it first"
        )),
    }
}

/// Whether a service has the file.
fn is_locked(file: &File) -> bool {
    match file.try_lock_shared() {
        Err(error) => matches!(error, TryLockError::WouldBlock),
        Ok(()) => file.unlock().is_err(),
    }
}

/// Refuses work beside a service that has this database under another name, or another database under this
/// one: SQLite finds the write-ahead log by the name, and what is written to the wrong one is lost.
///
/// # Errors
/// One plain line that says what to do.
pub fn check_neighbour(path: &Path) -> Result<(), String> {
    let name = path.display();
    let begun = Instant::now();
    loop {
        let id = FileId::of(path)
            .map_err(|error| format!("cannot open the database {name}: {}", plain(&error, path)))?;
        // A service of this process has it, and the lock that it would see.
        let claimed = held(&CLAIMED);
        if claimed.contains(&id) {
            return Ok(());
        }
        let locked = locks(path);
        drop(claimed);
        let line = match locked {
            (true, true) => return Ok(()),
            (false, false) => return check_log(path),
            (true, false) => {
                format!("another process holds the database {name} under another name; use that name")
            }
            (false, true) => format!(
                "another process holds the log beside {name}, and not {name} itself; stop that process first"
            ),
        };
        // A service that starts takes the one after the other.
        if begun.elapsed() >= PATIENCE {
            return Err(line);
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether another process has claimed the file, and its log.
fn locks(path: &Path) -> (bool, bool) {
    (
        Opened::at(path).is_ok_and(|file| is_locked(&file)),
        File::open(log_of(path)).is_ok_and(|log| is_locked(&log)),
    )
}

/// Refuses to read a database with the log of another one. Whoever has claimed it has looked at that.
///
/// # Errors
/// One plain line that says what to do.
pub fn check_before_reading(path: &Path) -> Result<(), String> {
    let is_ours = FileId::of(path).is_ok_and(|id| held(&CLAIMED).contains(&id));
    if is_ours || locks(path) != (false, false) { Ok(()) } else { check_log(path) }
}

/// Refuses the log of another database, where no service has looked at it.
fn check_log(path: &Path) -> Result<(), String> {
    let Ok(file) = Opened::at(path) else { return Ok(()) };
    // What moves on between the look at the log and that at the file may look foreign for a moment.
    mark::check_log(path, &file).or_else(|_| {
        std::thread::sleep(PAUSE);
        mark::check_log(path, &file)
    })
}

impl Claim {
    /// Claims a file, which is made where there is none.
    ///
    /// # Errors
    /// One plain line, where it can be no database, or another service has it.
    pub fn take(path: &Path) -> Result<Self, String> {
        let is_new = prepare(path)?;
        let name = path.display();
        let taken = || format!("another process holds the database {name}, such as a service; stop it first");
        let cannot = |error: io::Error| format!("cannot open the database {name}: {}", plain(&error, path));
        let locked = Opened::at(path).map_err(cannot)?;
        // A service of this process has the same lock.
        let mut claimed = held(&CLAIMED);
        if claimed.contains(&locked.id) || !lock(&locked).map_err(cannot)? {
            return Err(taken());
        }
        claimed.push(locked.id);
        drop(claimed);
        let mut claim = Self { is_new, locked, log: None };
        if !claim.locked.is_at(path) {
            return Err(format!("the database {name} was replaced just now; try again"));
        }
        if log_of(path).exists() {
            claim.log = Some(lock_log(path)?);
        }
        Ok(claim)
    }

    /// Refuses a write-ahead log that is not that of the database. To be asked before the database is opened.
    ///
    /// # Errors
    /// One plain line that says what to do.
    pub fn check_log(&self, path: &Path) -> Result<(), String> {
        mark::check_log(path, &self.locked)
    }

    /// Claims the write-ahead log as well, which is there once the database is open.
    ///
    /// # Errors
    /// One plain line, where the service of another database has it.
    pub fn take_log(&mut self, path: &Path) -> Result<(), String> {
        let id = |log: &File| log.metadata().ok().map(|file| FileId::from(&file));
        let found = FileId::of(&log_of(path)).ok();
        if self.log.as_ref().and_then(id).is_none_or(|id| Some(id) != found) {
            self.log = Some(lock_log(path)?);
        }
        Ok(())
    }

    /// Whether this has made the file.
    pub fn is_new(&self) -> bool {
        self.is_new
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

/// The write-ahead log beside a database. SQLite puts it beside the file itself, not beside a link to it.
pub fn log_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// The rollback journal of a database that is changed without a log (`sqlite.org/lockingv3.html#rollback`).
pub fn journal_of(path: &Path) -> PathBuf {
    beside(path, "-journal")
}

/// The index of the write-ahead log, which the processes share.
pub fn index_of(path: &Path) -> PathBuf {
    beside(path, "-shm")
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()).into_os_string();
    name.push(suffix);
    name.into()
}

#[cfg(test)]
mod tests {
    use super::super::tests::Folder;
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_is_no_file_is_refused() {
        let folder = Folder::new();
        let dangling = folder.0.join("dangling");
        symlink(folder.0.join("nowhere"), &dangling).unwrap();
        for (path, said) in [
            (PathBuf::from(":memory:"), "must be a file"),
            (PathBuf::from("file:pets.db"), "must be a file"),
            (folder.0.clone(), "is a folder"),
            (folder.0.join("missing/pets.db"), "missing does not exist"),
            (PathBuf::from("/dev/null"), "not a regular file"),
            (dangling, "leads nowhere"),
        ] {
            let error = prepare(&path).unwrap_err();
            assert!(error.contains(said), "{}: {error}", path.display());
        }
    }

    #[test]
    fn log_without_its_database_is_not_written_over() {
        let folder = Folder::new();
        fs::write(log_of(&folder.database()), "log").unwrap();
        assert!(prepare(&folder.database()).unwrap_err().contains("put the database back"));
        assert!(!folder.database().exists());
    }

    #[test]
    fn database_has_one_service_whatever_its_name() {
        let folder = Folder::new();
        let path = folder.database();
        assert_eq!(prepare(&path), Ok(true));
        assert_eq!(prepare(&path), Ok(false));
        let (hard, soft) = (folder.0.join("hard"), folder.0.join("soft"));
        fs::hard_link(&path, &hard).unwrap();
        symlink(&path, &soft).unwrap();
        let claim = Claim::take(&path).unwrap();
        for name in [&path, &hard, &soft] {
            assert!(Claim::take(name).unwrap_err().contains("another process"));
        }
        drop(claim);
        Claim::take(&soft).unwrap();
    }
}
