//! Refuses the write-ahead log of another database. SQLite applies whatever log it finds.
//!
//! The header of a database announces its log before the log has a frame, and the header of a backup announces none. So
//! a backup that was copied over the database, next to the log of the database, is noticed.

use std::fs;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

use super::claim::refuse_second_name;
use super::connection::connect;
use super::open_file::{OpenFile, cannot_open, immutable, log_of};
use super::schema::identity;
use crate::base::error::{Error, ErrorKind};

/// Opens the file of a database that exists, for a connection to it.
///
/// # Errors
/// If it is not there, this user may not read it, or its log is that of another database.
pub fn open_with_own_log(path: &Path) -> Result<OpenFile, Error> {
    if !path.exists() {
        return Err(Error::no_database(path));
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
    // In this order, so that it is true of a log that a service moves meanwhile.
    let is_short = pages_with_log(path).unwrap_or(0) > length(&log_of(path)).saturating_add(length(path));
    match (identity(connection), identity_of_file(path)) {
        (Ok(Some(with_log)), Some(alone)) if with_log != alone => Err(foreign(path)),
        _ if is_short => Err(foreign(path)),
        // Who cannot read one of them learns why elsewhere.
        _ => Ok(()),
    }
}

/// The bytes of all pages after the last commit in the log (`sqlite.org/fileformat2.html`, section 4.1), without the one
/// that is never written.
fn pages_with_log(path: &Path) -> io::Result<u64> {
    let log = fs::File::open(log_of(path))?;
    let word = |at| {
        let mut word = [0; 4];
        log.read_exact_at(&mut word, at).map(|()| u64::from(u32::from_be_bytes(word)))
    };
    let (page, salt) = (word(8)?, word(16)?);
    let (mut at, mut pages) = (32, 0);
    while word(at + 8).is_ok_and(|found| found == salt) {
        pages = Some(word(at + 4)?).filter(|&pages| pages > 0).unwrap_or(pages);
        at += 24 + page;
    }
    Ok(pages.saturating_sub(1).saturating_mul(page))
}

/// The identity of the database in the file, whatever its log holds; `None` if it cannot be read now.
pub fn identity_of_file(path: &Path) -> Option<String> {
    let access = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    let real = fs::canonicalize(path).ok()?;
    identity(&connect(&immutable(&real), access).ok()?).ok()?
}

/// Refuses a log next to a file that announces none.
///
/// # Errors
/// If there is such a log.
pub fn check_log(path: &Path, file: &OpenFile) -> Result<(), Error> {
    // If the header cannot be read, whoever opens the database next learns why.
    if !has_log(path) || file.has_log_mode().unwrap_or(true) {
        return Ok(());
    }
    Err(foreign(path))
}

fn foreign(path: &Path) -> Error {
    let log = log_of(path);
    let message = format!(
        "{} is not the log of {}: one of the two was replaced or overwritten",
        log.display(),
        path.display()
    );
    Error::new(ErrorKind::LogForeign, message)
}

/// Whether a file was perhaps moved away from its log: its header announces one, and none is next to it.
pub fn lacks_log(file: &Path) -> bool {
    !has_log(file) && OpenFile::at(file).is_ok_and(|file| file.has_log_mode().unwrap_or(false))
}

/// Whether there is a log with content next to the file.
fn has_log(path: &Path) -> bool {
    fs::metadata(log_of(path)).is_ok_and(|log| log.len() > 0)
}

#[cfg(test)]
mod tests {
    use rusqlite::Connection;
    use rusqlite::config::DbConfig;

    use super::super::FileConnection;
    use super::super::tests::{new_pet, pair};
    use super::*;
    use crate::testing::Folder;

    fn is_refused(folder: &Folder) -> bool {
        let path = folder.database();
        let checked = check_log(&path, &OpenFile::at(&path).unwrap());
        checked.is_err_and(|error| error.kind() == ErrorKind::LogForeign)
    }

    fn create(writer: &mut FileConnection) {
        writer.insert_pet(&new_pet("Rex"), None).unwrap();
        writer.commit().unwrap();
    }

    fn move_log(folder: &Folder) {
        let other = Connection::open(folder.database()).unwrap();
        other.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
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
            let files =
                || [killed.database(), log_of(&killed.database())].map(|path| fs::read(path).unwrap());
            let before = files();
            let refused = FileConnection::open(&killed.database()).err().map(|error| error.kind());
            assert_eq!(refused, Some(ErrorKind::LogForeign));
            assert!(files() == before);
        }
    }

    #[test]
    fn what_a_crash_leaves_of_a_checkpoint_is_not_refused() {
        let (folder, mut writer, _reader) = pair();
        (0..120).for_each(|_| create(&mut writer));
        move_log(&folder);
        let before = fs::read(folder.database()).unwrap();
        // The file grows by some pages. A create writes a frame for each table and index.
        (0..120).for_each(|_| create(&mut writer));
        let log = fs::read(log_of(&folder.database())).unwrap();
        let is_moved = fs::read(folder.database()).unwrap() != before;
        assert!(!is_moved, "a commit has moved the log, which has 1,000 frames: make fewer pets");
        move_log(&folder);
        let after = fs::read(folder.database()).unwrap();
        assert!(after.len() > before.len());
        // Pages are moved in their order.
        for pages in 0..after.len() / 4096 {
            let killed = Folder::new();
            let moved = pages * 4096;
            fs::write(killed.database(), [&after[..moved], &before[moved.min(before.len())..]].concat())
                .unwrap();
            fs::write(log_of(&killed.database()), &log).unwrap();
            assert!(!is_refused(&killed), "{pages}");
            let writer = FileConnection::open(&killed.database()).unwrap();
            let whole = "PRAGMA integrity_check";
            assert_eq!(writer.connection.query_row(whole, [], |row| row.get(0)), Ok("ok".to_owned()));
        }
    }

    #[test]
    fn looking_leaves_the_locks_of_sqlite() {
        let (folder, mut writer, _reader) = pair();
        create(&mut writer);
        writer.open_transaction().unwrap();
        assert!(!is_refused(&folder));
        // Another process could have the file for itself if the locks had gone with a closed file.
        let sqlite3 = std::process::Command::new("sqlite3")
            .args([folder.database().to_str().unwrap(), "PRAGMA journal_mode = DELETE"])
            .output();
        if let Ok(output) = sqlite3 {
            assert!(String::from_utf8_lossy(&output.stderr).contains("locked"), "{output:?}");
        }
        assert!(log_of(&folder.database()).exists());
        writer.undo();
    }
}
