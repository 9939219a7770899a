//! The checks of a database file before it is opened: it can be a database, no other service has it under any name, and
//! the write-ahead log or the journal (`journal.rs`) next to it is its own. Only the owner may read a new file.
//!
//! SQLite applies any log that it finds. The header of a database announces its log before the log has a frame, and the
//! header of a backup announces none. So a backup that was copied over the database, next to the log of the database,
//! is noticed.

use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind as Os, Seek};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use rusqlite::Connection;

use super::connection::connect_alone;
use super::journal::{check_journal, has_journal};
use super::open_file::{FileId, OpenFile, cannot_open, failed, index_of, journal_of, log_of};
use super::schema::identity;
use petstore_base::error::{Error, ErrorKind, fail};
use petstore_base::files::{create_private, is_location};
use petstore_base::threads::lock;

/// Creates the file of a database if there is none, and returns true if it did. A new file is empty, and only its owner
/// may read it, because it will hold the digests of keys. SQLite gives the files next to it the same mode.
///
/// # Errors
/// If the path is not a regular file, or none can be created there.
pub fn prepare(path: &Path) -> Result<bool, Error> {
    let name = path.display();
    if !is_location(path) {
        let message = format!("the database must be a file, and '{name}' is not one");
        return fail(ErrorKind::InvalidInput, message);
    }
    if fs::symlink_metadata(path).is_err()
        && let Some(left) = left_of(path)
    {
        let message = format!(
            "there is no database {name}, but its {} is there",
            left.display()
        );
        return fail(ErrorKind::LogOrphaned, message);
    }
    match create_private(path) {
        Ok(_) => return Ok(true),
        Err(error) if error.kind() == Os::AlreadyExists => {}
        Err(error) => {
            let what = format!("cannot create the database {name}");
            return Err(failed(&what, path, error));
        }
    }
    let why = match fs::metadata(path) {
        // Do not open it here: if this process has it open already, closing it would cancel SQLite's locks.
        Ok(file) if file.is_file() && !is_mounted_alone(path) => return Ok(false),
        Ok(file) if file.is_file() => {
            "is mounted alone, so its log would be in another place and be lost with it: mount the whole folder of the database"
        }
        Ok(file) if file.is_dir() => FOLDER,
        Ok(_) => "is not a regular file, and the database must be a file",
        Err(error) if error.kind() == Os::NotFound => {
            let message = format!("{name} is a symbolic link to a file that does not exist");
            return fail(ErrorKind::DatabaseMissing, message);
        }
        Err(error) => return Err(cannot_open(path, error)),
    };
    fail(ErrorKind::InvalidInput, format!("{name} {why}"))
}

const FOLDER: &str = "is a folder, and the database must be a file";
/// The most time between the claim of a service and the index of its log.
const START: Duration = Duration::from_secs(1);
const BRIEFLY: Duration = Duration::from_millis(10);

/// Refuses a file that another process holds under another name. SQLite would not find that process's log, and would
/// use any file next to this name that looks like one.
///
/// # Errors
/// If it is held so, or its file system has no locks.
fn refuse_second_name(path: &Path, file: &OpenFile) -> Result<(), Error> {
    // A file that announces no log, such as a backup, is whole under each of its names.
    if lock(&CLAIMED).contains(&file.id) || !file.has_log_mode().unwrap_or(false) {
        return Ok(());
    }
    let began = Instant::now();
    // Soon after it has the lock, a service keeps the index of its log next to the name that it uses. It never uses a
    // file that is mounted alone, and files next to such a file belong to others.
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

/// Returns true if the file is a mount of its own, as `docker run -v ./pets.db:/data/pets.db` makes it. Linux reports
/// this since 5.8.
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
    /// True if the claim has created the file.
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
        let is_new = is_new || locked.metadata().is_ok_and(|file| file.len() == 0);
        // A service of this process has the same lock.
        let mut claimed = lock(&CLAIMED);
        let tried = if claimed.contains(&locked.id) {
            Err(TryLockError::WouldBlock)
        } else {
            // A command that checks the file has the lock for a moment.
            locked.try_lock().or_else(|_| {
                thread::sleep(BRIEFLY);
                locked.try_lock()
            })
        };
        tried.map_err(|error| match error {
            TryLockError::WouldBlock => {
                let name = path.display();
                let message =
                    format!("another process holds the database {name}, perhaps a running service");
                Error::new(ErrorKind::DatabaseInUse, message)
            }
            TryLockError::Error(error) => cannot_open(path, error),
        })?;
        claimed.push(locked.id);
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

    /// Refuses the write-ahead log of another database, and a journal that may be one's. Call this before opening the
    /// database.
    ///
    /// # Errors
    /// If there is one.
    pub fn check_log(&self, path: &Path) -> Result<(), Error> {
        check_log(path, &self.locked)
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut claimed = lock(&CLAIMED);
        // Others may have the file open for longer.
        let _ = self.locked.unlock();
        claimed.retain(|id| *id != self.locked.id);
    }
}

/// Opens the file of a database that exists, for a connection to it. A connection that can read it then calls
/// [`refuse_log_of_another`].
///
/// # Errors
/// If it is not there, this user may not read it, or its log or journal may be that of another database.
pub fn open_with_own_log(path: &Path) -> Result<OpenFile, Error> {
    if !path.exists() {
        return Err(Error::no_database(path));
    }
    if path.is_dir() {
        return fail(
            ErrorKind::InvalidInput,
            format!("{} {FOLDER}", path.display()),
        );
    }
    let file = OpenFile::at(path).map_err(|error| cannot_open(path, error))?;
    check_log(path, &file)?;
    refuse_second_name(path, &file)?;
    Ok(file)
}

/// Refuses a log whose database has another identity than the file without it, as after `cp other.db pets.db`, or more
/// pages than the file and the log have together.
///
/// # Errors
/// If the log cannot be that of the file.
pub fn refuse_log_of_another(path: &Path, connection: &Connection) -> Result<(), Error> {
    if !has_log(path) {
        return Ok(());
    }
    let length = |path: &Path| fs::metadata(path).map_or(u64::MAX, |file| file.len());
    // In this order, so that a checkpoint of a service meanwhile does no harm.
    let is_short =
        pages_with_log(path).unwrap_or(0) > length(&log_of(path)).saturating_add(length(path));
    match (identity(connection), identity_of_file(path)) {
        (Ok(Some(with_log)), Some(alone)) if with_log != alone => Err(foreign_log(path)),
        _ if is_short => Err(foreign_log(path)),
        // If one of them cannot be read, a later step fails and names the reason.
        _ => Ok(()),
    }
}

/// The bytes of all pages after the last commit in the log (`sqlite.org/fileformat2.html`, section 4.1), without the one
/// that is never written.
fn pages_with_log(path: &Path) -> io::Result<u64> {
    let log = fs::File::open(log_of(path))?;
    let word = |at| {
        let mut word = [0; 4];
        log.read_exact_at(&mut word, at)
            .map(|()| u64::from(u32::from_be_bytes(word)))
    };
    let page = word(8)?;
    let salt = word(16)?;
    let mut at = 32;
    let mut pages = 0;
    while word(at + 8).is_ok_and(|found| found == salt) {
        let pages_after = word(at + 4)?;
        if pages_after > 0 {
            pages = pages_after;
        }
        at += 24 + page;
    }
    Ok(pages.saturating_sub(1).saturating_mul(page))
}

/// The identity of the database in the file without its log; `None` if it cannot be read now.
pub fn identity_of_file(path: &Path) -> Option<String> {
    let real = fs::canonicalize(path).ok()?;
    identity(&connect_alone(&real).ok()?).ok()?
}

/// Refuses a log next to a file that announces none, and a journal that may be another database's.
///
/// # Errors
/// If there is one.
fn check_log(path: &Path, file: &OpenFile) -> Result<(), Error> {
    // If the header cannot be read, a later step fails and names the reason.
    if !has_log(path) || file.has_log_mode().unwrap_or(true) {
        return check_journal(path, file);
    }
    Err(foreign_log(path))
}

fn foreign_log(path: &Path) -> Error {
    let log = log_of(path);
    let message = format!(
        "{} is not the log of {}: one of the two was replaced or overwritten",
        log.display(),
        path.display()
    );
    Error::new(ErrorKind::LogForeign, message)
}

/// Returns true if a file was perhaps moved away from its log: its header announces one, and none is next to it.
pub fn lacks_log(file: &Path) -> bool {
    !has_log(file) && OpenFile::at(file).is_ok_and(|file| file.has_log_mode().unwrap_or(false))
}

/// The log or the journal that is next to a path and may be needed.
pub fn left_of(path: &Path) -> Option<PathBuf> {
    let log = has_log(path).then(|| log_of(path));
    log.or_else(|| has_journal(path).then(|| journal_of(path)))
}

/// Returns true if a log with content is next to the file.
pub fn has_log(path: &Path) -> bool {
    fs::metadata(log_of(path)).is_ok_and(|log| log.len() > 0)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use rusqlite::config::DbConfig;

    use super::super::Writer;
    use super::super::tests::{Folder, new_pet, pair};
    use super::*;

    #[test]
    fn path_that_is_no_file_is_refused() {
        let folder = Folder::new();
        let dangling = folder.0.join("dangling");
        symlink(folder.0.join("nowhere"), &dangling).unwrap();
        let cycle = folder.0.join("cycle");
        symlink("cycle", &cycle).unwrap();
        for (path, kind, said) in [
            (cycle, ErrorKind::Io, "cannot"),
            (
                PathBuf::from(":memory:"),
                ErrorKind::InvalidInput,
                "must be a file",
            ),
            (
                PathBuf::from("file:pets.db"),
                ErrorKind::InvalidInput,
                "must be a file",
            ),
            (folder.0.clone(), ErrorKind::InvalidInput, "is a folder"),
            (
                folder.0.join("missing/pets.db"),
                ErrorKind::DatabaseMissing,
                "missing does not exist",
            ),
            (
                PathBuf::from("/dev/null"),
                ErrorKind::InvalidInput,
                "not a regular file",
            ),
            (
                dangling,
                ErrorKind::DatabaseMissing,
                "a file that does not exist",
            ),
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
        assert_eq!(
            prepare(&folder.database()).unwrap_err().kind(),
            ErrorKind::LogOrphaned
        );
        assert!(!folder.database().exists());
        // An empty one has nothing to lose.
        fs::write(log_of(&folder.database()), "").unwrap();
        assert!(prepare(&folder.database()).unwrap());
    }

    #[test]
    fn log_or_journal_with_content_is_left() {
        let folder = Folder::new();
        let path = folder.database();
        assert_eq!(left_of(&path), None);
        for left in [log_of(&path), journal_of(&path)] {
            for (text, is_left) in [("", false), ("pages", true)] {
                fs::write(&left, text).unwrap();
                assert_eq!(left_of(&path), is_left.then(|| left.clone()), "{text}");
            }
            fs::remove_file(&left).unwrap();
        }
    }

    #[test]
    fn database_has_one_service_whatever_its_name() {
        let folder = Folder::new();
        let path = folder.database();
        assert!(prepare(&path).unwrap());
        assert!(!prepare(&path).unwrap());
        fs::write(&path, "used").unwrap();
        let (hard, soft) = (folder.0.join("hard"), folder.0.join("soft"));
        fs::hard_link(&path, &hard).unwrap();
        symlink(&path, &soft).unwrap();
        let claim = Claim::take(&path).unwrap();
        assert!(!claim.is_new);
        for name in [&path, &hard, &soft] {
            assert_eq!(
                Claim::take(name).unwrap_err().kind(),
                ErrorKind::DatabaseInUse
            );
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
        assert_eq!(
            claim.check_log(&path).unwrap_err().kind(),
            ErrorKind::LogForeign
        );
    }

    fn is_refused(folder: &Folder) -> bool {
        let path = folder.database();
        let checked = check_log(&path, &OpenFile::at(&path).unwrap());
        checked.is_err_and(|error| error.kind() == ErrorKind::LogForeign)
    }

    fn create(writer: &mut Writer) {
        writer.insert_pet(&new_pet("Rex"), None).unwrap();
        writer.commit().unwrap();
    }

    fn run_checkpoint(folder: &Folder) {
        let other = Connection::open(folder.database()).unwrap();
        other
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)
            .unwrap();
        other.execute_batch("PRAGMA wal_checkpoint").unwrap();
    }

    #[test]
    fn log_next_to_a_file_that_announces_none_is_refused_and_both_stay() {
        let (folder, mut writer, _reader) = pair();
        create(&mut writer);
        let killed = Folder::new();
        fs::copy(log_of(&folder.database()), log_of(&killed.database())).unwrap();
        let mut backup = fs::read(folder.database()).unwrap();
        backup[18..20].fill(1);
        for content in [&backup[..], b"", b"some text that is no database at all"] {
            fs::write(killed.database(), content).unwrap();
            let files = || {
                [killed.database(), log_of(&killed.database())].map(|path| fs::read(path).unwrap())
            };
            let before = files();
            let refused = Writer::open(&killed.database())
                .err()
                .map(|error| error.kind());
            assert_eq!(refused, Some(ErrorKind::LogForeign));
            assert!(files() == before);
        }
    }

    #[test]
    fn what_a_crash_leaves_of_a_checkpoint_is_not_refused() {
        let (folder, mut writer, _reader) = pair();
        (0..120).for_each(|_| create(&mut writer));
        run_checkpoint(&folder);
        let before = fs::read(folder.database()).unwrap();
        // The file grows by some pages. A create writes a frame for each table and index.
        (0..120).for_each(|_| create(&mut writer));
        let log = fs::read(log_of(&folder.database())).unwrap();
        let is_same = fs::read(folder.database()).unwrap() == before;
        assert!(
            is_same,
            "the log has 1,000 frames, and a commit ran a checkpoint: make fewer pets"
        );
        run_checkpoint(&folder);
        let after = fs::read(folder.database()).unwrap();
        assert!(after.len() > before.len());
        // A checkpoint writes pages in their order.
        for pages in 0..after.len() / 4096 {
            let killed = Folder::new();
            let written = pages * 4096;
            fs::write(
                killed.database(),
                [&after[..written], &before[written.min(before.len())..]].concat(),
            )
            .unwrap();
            fs::write(log_of(&killed.database()), &log).unwrap();
            assert!(!is_refused(&killed), "{pages}");
            let writer = Writer::open(&killed.database()).unwrap();
            let whole = "PRAGMA integrity_check";
            assert_eq!(
                writer.raw().query_row(whole, [], |row| row.get(0)),
                Ok("ok".to_owned())
            );
        }
    }

    #[test]
    fn check_leaves_the_locks_of_sqlite() {
        let (folder, mut writer, _reader) = pair();
        create(&mut writer);
        writer.open_transaction().unwrap();
        assert!(!is_refused(&folder));
        // Another process could have the file for itself if the locks had gone with a closed file.
        let sqlite3 = std::process::Command::new("sqlite3")
            .args([
                folder.database().to_str().unwrap(),
                "PRAGMA journal_mode = DELETE",
            ])
            .output();
        if let Ok(output) = sqlite3 {
            assert!(
                String::from_utf8_lossy(&output.stderr).contains("locked"),
                "{output:?}"
            );
        }
        assert!(log_of(&folder.database()).exists());
        writer.undo();
    }
}
