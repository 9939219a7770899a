//! The database's file: made for its owner only, claimed by one service, and watched, so that it is noticed
//! when its path leads to another file or nowhere.

use std::collections::BTreeSet;
use std::fs::{self, File, Metadata, OpenOptions, TryLockError};
use std::io::{self, ErrorKind};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::{StoreError, Trouble};

/// How long a look at the file counts.
const LOOK_HOLDS: Duration = Duration::from_millis(100);

/// Identifies a file, whatever its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    fn of(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|file| Self::from(&file))
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

/// The files that services of this process have claimed.
static CLAIMED: Mutex<BTreeSet<FileId>> = Mutex::new(BTreeSet::new());

/// A database that this service has, and no other, whatever links lead to it. It must be dropped after every
/// connection to the database is closed: closing a file cancels SQLite's locks of the same process on it
/// (`sqlite.org/howtocorrupt.html`, section 2.2).
#[derive(Debug)]
pub struct Claim {
    is_new: bool,
    id: FileId,
    _locked: File,
    /// Its write-ahead log, once there is one. A database that comes into the place of this one meanwhile would
    /// have the same log.
    log: Option<File>,
}

/// How long a lock of a petstore that only looks is waited for.
const PATIENCE: Duration = Duration::from_secs(1);
const PAUSE: Duration = Duration::from_millis(20);

/// Locks a file for one service; `None`: another one has it.
fn lock(path: &Path) -> io::Result<Option<File>> {
    let (file, begun) = (File::open(path)?, Instant::now());
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(Some(file)),
            Err(TryLockError::WouldBlock) if begun.elapsed() < PATIENCE => std::thread::sleep(PAUSE),
            Err(TryLockError::WouldBlock) => return Ok(None),
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Locks the write-ahead log of a database.
fn lock_log(path: &Path) -> Result<File, String> {
    let (log, name) = (log_of(path), path.display());
    let locked =
        lock(&log).map_err(|error| format!("cannot open {}: {}", log.display(), plain(&error, &log)))?;
    locked.ok_or_else(|| {
        format!("another petstore has the log beside {name}, and serves a database that was there before")
    })
}

/// Whether a service has the file.
fn is_locked(path: &Path) -> bool {
    let file = File::open(path);
    file.is_ok_and(|file| matches!(file.try_lock_shared(), Err(TryLockError::WouldBlock)))
}

/// Refuses work beside a service that has this database under another name, or another database under this
/// one: SQLite finds the write-ahead log by the name, and what is written to the wrong one is lost. It opens and
/// closes the file, so a process that has it open already and no [`Claim`] on it loses SQLite's locks.
///
/// # Errors
/// One plain line that says what to do.
pub fn check_neighbour(path: &Path) -> Result<(), String> {
    let name = path.display();
    let begun = Instant::now();
    loop {
        let id = FileId::of(path)
            .map_err(|error| format!("cannot open the database {name}: {}", plain(&error, path)))?;
        // A service of this process has it: closing it would cancel its locks.
        if CLAIMED.lock().unwrap_or_else(PoisonError::into_inner).contains(&id) {
            return Ok(());
        }
        let line = match (is_locked(path), is_locked(&log_of(path))) {
            (true, true) | (false, false) => return Ok(()),
            (true, false) => format!("a service has the database {name} under another name; use that name"),
            (false, true) => format!(
                "{name} is not the database of the service that has the log beside it; stop that service first"
            ),
        };
        // A service that starts takes the one after the other.
        if begun.elapsed() >= PATIENCE {
            return Err(line);
        }
        std::thread::sleep(PAUSE);
    }
}

impl Claim {
    /// Claims a file, which is made where there is none.
    ///
    /// # Errors
    /// One plain line, where it can be no database, another service has it, or a log of another file is beside it.
    pub fn take(path: &Path) -> Result<Self, String> {
        let is_new = prepare(path)?;
        let name = path.display();
        let taken = || format!("another petstore serves the database {name}");
        let cannot = |error: io::Error| format!("cannot open the database {name}: {}", plain(&error, path));
        let id = FileId::of(path).map_err(cannot)?;
        // Looked at first, so that the file is not opened and closed while a service of this process has it.
        let mut claimed = CLAIMED.lock().unwrap_or_else(PoisonError::into_inner);
        if claimed.contains(&id) {
            return Err(taken());
        }
        let locked = lock(path).map_err(cannot)?.ok_or_else(taken)?;
        let is_same = locked.metadata().is_ok_and(|file| FileId::from(&file) == id);
        if !is_same || FileId::of(path).ok() != Some(id) {
            return Err(format!("the database {name} was replaced just now; try again"));
        }
        let log = if log_of(path).exists() { Some(lock_log(path)?) } else { None };
        check_log(path)?;
        claimed.insert(id);
        Ok(Self { is_new, id, _locked: locked, log })
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
        CLAIMED.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.id);
    }
}

/// The write-ahead log beside a database. SQLite puts it beside the file itself, not beside a link to it.
pub fn log_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// The index of the write-ahead log, which the processes share.
fn index_of(path: &Path) -> PathBuf {
    beside(path, "-shm")
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()).into_os_string();
    name.push(suffix);
    name.into()
}

/// Refuses a write-ahead log that was there before the file was: SQLite would read it into the file, and a
/// restored copy would get pages of the database that it replaces. A file that comes into its place by a move
/// keeps its time of modification, and gets a new time of change. One that is made anew is younger than its log.
///
/// # Errors
/// One plain line that says what to do.
fn check_log(path: &Path) -> Result<(), String> {
    let log = log_of(path);
    let (Ok(file), Ok(log_file)) = (fs::metadata(path), fs::metadata(&log)) else { return Ok(()) };
    let changed = |file: &Metadata| (file.ctime(), file.ctime_nsec());
    let modified = (file.mtime(), file.mtime_nsec());
    let was_moved_here = changed(&file) > changed(&log_file) && changed(&file) > modified;
    let was_made_here = matches!((file.created(), log_file.created()), (Ok(file), Ok(log)) if file > log);
    if log_file.len() > 0 && (was_moved_here || was_made_here) {
        return Err(format!(
            "{log} is older than {name} is here: it belongs to another database. Move it away if {name} is a \
             copy that was put here; otherwise run: touch {log}",
            log = log.display(),
            name = path.display()
        ));
    }
    Ok(())
}

/// Looks whether the paths of a database and of the files beside it still lead to the files that were opened.
#[derive(Debug)]
pub struct Watch {
    files: Vec<(PathBuf, FileId)>,
    looked_at: Option<Instant>,
    /// What the last look found.
    verdict: Result<(), StoreError>,
}

impl Watch {
    /// Of a database that is open, with its write-ahead log and the log's index where it has them.
    pub fn new(path: &Path) -> io::Result<Self> {
        let mut files = vec![(path.to_owned(), FileId::of(path)?)];
        let beside = [log_of(path), index_of(path)].into_iter();
        files.extend(beside.filter_map(|path| FileId::of(&path).ok().map(|id| (path, id))));
        Ok(Self { files, looked_at: None, verdict: Ok(()) })
    }

    /// Looks, unless it has looked a moment ago.
    ///
    /// # Errors
    /// Where a path leads elsewhere.
    pub fn look(&mut self) -> Result<(), StoreError> {
        if self.looked_at.is_none_or(|at| at.elapsed() >= LOOK_HOLDS) {
            return self.look_now();
        }
        self.verdict.clone()
    }

    /// Looks.
    ///
    /// # Errors
    /// Where a path leads elsewhere.
    pub fn look_now(&mut self) -> Result<(), StoreError> {
        self.looked_at = Some(Instant::now());
        let is_here = |path: &Path, id: FileId| match FileId::of(path) {
            Ok(found) => found == id,
            // What cannot be seen for another reason, such as too little memory, may still be there.
            Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        };
        self.verdict = self.files.iter().try_for_each(|(path, id)| {
            if is_here(path, *id) {
                return Ok(());
            }
            // It may be on its way back.
            std::thread::sleep(PAUSE);
            if is_here(path, *id) {
                return Ok(());
            }
            let detail = format!("{} is not the file that was opened", path.display());
            Err(StoreError::Unavailable(Trouble::Moved, detail))
        });
        self.verdict.clone()
    }

    /// What the last look found.
    ///
    /// # Errors
    /// Where a path led elsewhere.
    pub fn verdict(&self) -> Result<(), StoreError> {
        self.verdict.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Folder, pair};
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
            assert!(Claim::take(name).unwrap_err().contains("another petstore"));
        }
        drop(claim);
        Claim::take(&soft).unwrap();
    }

    #[test]
    fn moved_files_are_noticed() {
        for (i, leave) in [
            (|path: &Path| fs::remove_file(path).unwrap()) as fn(&Path),
            |path| fs::rename(path, path.with_extension("old")).unwrap(),
            |path| {
                fs::copy(path, path.with_extension("copy")).unwrap();
                fs::rename(path.with_extension("copy"), path).unwrap();
            },
            |path| fs::remove_file(log_of(path)).unwrap(),
            |path| fs::remove_file(index_of(path)).unwrap(),
        ]
        .into_iter()
        .enumerate()
        {
            let (folder, _writer, _reader) = pair();
            let mut watch = Watch::new(&folder.database()).unwrap();
            assert_eq!(watch.look_now(), Ok(()));
            leave(&folder.database());
            assert!(watch.look_now().unwrap_err().is_moved(), "{i}");
            assert!(watch.look().unwrap_err().is_moved() && watch.verdict().is_err(), "{i}");
        }
    }

    #[test]
    fn log_of_another_file_is_refused() {
        let folder = Folder::new();
        let path = folder.database();
        fs::write(&path, "copy").unwrap();
        assert_eq!(check_log(&path), Ok(()));
        fs::write(log_of(&path), "log").unwrap();
        assert_eq!(check_log(&path), Ok(()), "the log is younger");
        let copy = folder.0.join("copy");
        fs::write(&copy, "copy").unwrap();
        // Times of change move on in steps of some milliseconds; each of these calls sets it.
        let ctime = |path: &Path| fs::metadata(path).map(|file| (file.ctime(), file.ctime_nsec())).unwrap();
        while ctime(&copy) <= ctime(&log_of(&path)) {
            File::open(&copy).unwrap().set_modified(std::time::UNIX_EPOCH).unwrap();
        }
        fs::rename(&copy, &path).unwrap();
        assert!(check_log(&path).unwrap_err().contains("belongs to another database"));
        // A file that was written to, as a checkpoint does, is not one that was moved.
        fs::write(&path, "written").unwrap();
        assert_eq!(check_log(&path), Ok(()));
    }
}
