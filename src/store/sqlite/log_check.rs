//! Whether a write-ahead log belongs to the database next to it. SQLite applies whatever log it finds.
//!
//! SQLite itself reads both: the file alone as `immutable`, and the database with its log by a connection that can
//! only read, and leaves the log as it is when it closes. Then their marks are compared (`mark.rs`).
//!
//! An older copy of the same database, put next to the log of the newer one, is not noticed, nor does SQLite notice it.

use std::fs;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::mark::Mark;
use super::open_file::{OpenFile, immutable, log_of};
use super::{connect, schema};
use crate::error::{Error, ErrorKind};

/// Refuses a log that is not that of the open file.
///
/// # Errors
/// If it is the log of another database.
pub fn check_log(path: &Path, file: &OpenFile) -> Result<(), Error> {
    let log = log_of(path);
    let is_empty = !fs::metadata(&log).is_ok_and(|log| log.len() > 0);
    // If that cannot be told, whoever opens the database next learns why.
    if is_empty || belongs(path, file).unwrap_or(true) {
        return Ok(());
    }
    let message = format!(
        "{} is not the log of {}: one of the two was replaced or overwritten",
        log.display(),
        path.display()
    );
    Err(Error::new(ErrorKind::LogForeign, message))
}

/// Whether a file was perhaps moved away from its log: its header announces one, and none is next to it.
pub fn lacks_log(file: &Path) -> bool {
    let has_log = fs::metadata(log_of(file)).is_ok_and(|log| log.len() > 0);
    !has_log && OpenFile::at(file).is_ok_and(|file| file.has_log_mode().unwrap_or(false))
}

/// Whether a log that is not empty belongs to the file. If that cannot be told, it does: SQLite can read what a
/// checkpoint leaves half done, and a wrong refusal is as bad as a loss.
fn belongs(path: &Path, file: &OpenFile) -> rusqlite::Result<bool> {
    // SQLite would delete the log next to an empty file.
    if file.metadata().is_ok_and(|file| file.len() == 0) {
        return Ok(false);
    }
    let whole = Whole::open(path)?;
    if whole.frames == Some(0) {
        return Ok(true);
    }
    // The header of a database announces its log before the log's first frame. The header of a backup does not.
    if whole.frames.is_some() && file.has_log_mode().is_ok_and(|has_log_mode| !has_log_mode) {
        return Ok(false);
    }
    // While the snapshot lives, nobody starts the log again, or moves into the file what came later.
    Ok(match (Owner::without_log(path)?, whole.owner) {
        (Owner::Petstore(Some(alone)), Owner::Petstore(Some(whole))) => alone == whole,
        // Pages of two databases contradict each other.
        (Owner::Petstore(_), Owner::Other | Owner::Unknown) | (Owner::Other, Owner::Petstore(_)) => false,
        _ => true,
    })
}

/// Whose database SQLite reads.
enum Owner {
    /// Ours, with its mark if it has one.
    Petstore(Option<Mark>),
    /// Another application's.
    Other,
    /// Nobody's yet, or it cannot be read. A checkpoint that lengthens the file writes the header, with the new
    /// length, before the last pages: a crash in between leaves a file that only its log completes.
    Unknown,
}

impl Owner {
    fn of(connection: &Connection) -> rusqlite::Result<Self> {
        let read = || {
            Ok(if schema::is_ours(connection)? {
                Self::Petstore(Mark::read(connection)?)
            } else if schema::is_foreign(connection)? {
                Self::Other
            } else {
                Self::Unknown
            })
        };
        read().or_else(|error| if is_damage(&error) { Ok(Self::Unknown) } else { Err(error) })
    }

    fn without_log(path: &Path) -> rusqlite::Result<Self> {
        let address = immutable(&fs::canonicalize(path).unwrap_or_else(|_| path.to_owned()));
        Self::of(&connect(&address, OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI)?)
    }
}

fn is_damage(error: &rusqlite::Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase))
}

/// A snapshot of a database with its log.
struct Whole {
    _connection: Connection,
    /// How many frames of the log count: all up to its last commit. `None` if SQLite cannot read the database.
    frames: Option<u64>,
    owner: Owner,
}

impl Whole {
    fn open(path: &Path) -> rusqlite::Result<Self> {
        let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        // Reading opens the log, and NOOP only counts (sqlite.org/pragma.html#pragma_wal_checkpoint). It returns -1 if
        // it cannot.
        let frames = schema::version(&connection).and_then(|_| {
            connection.query_row("PRAGMA wal_checkpoint(NOOP)", [], |row| row.get::<_, i64>(1))
        });
        let frames = frames.ok().and_then(|frames| u64::try_from(frames).ok());
        connection.execute_batch("BEGIN")?;
        let owner = Owner::of(&connection)?;
        Ok(Self { _connection: connection, frames, owner })
    }
}

#[cfg(test)]
mod tests {
    use super::super::mark;
    use super::super::tests::new_pet;
    use super::super::tests::pair;
    use super::super::{Reader, Writer};
    use super::*;
    use crate::testing::Folder;

    fn is_refused(folder: &Folder) -> bool {
        let path = folder.database();
        let checked = check_log(&path, &OpenFile::at(&path).unwrap());
        checked.is_err_and(|error| error.kind() == ErrorKind::LogForeign)
    }

    fn create(writer: &mut Writer) {
        writer.insert_pet(&new_pet("Rex")).unwrap();
        writer.commit().unwrap();
    }

    /// A database as a service has it.
    fn marked() -> (Folder, Writer, Reader) {
        let (folder, mut writer, reader) = pair();
        writer.checkpoint().and_then(|()| writer.ensure_mark()).unwrap();
        create(&mut writer);
        writer.checkpoint().unwrap();
        (folder, writer, reader)
    }

    /// A service that was killed: the last pets are in the log alone.
    fn killed(pets: usize) -> Folder {
        let (folder, mut writer, _reader) = marked();
        (0..pets).for_each(|_| create(&mut writer));
        copy_of(&folder)
    }

    /// A copy of the files of a database as they are now, as a kill would leave them.
    fn copy_of(folder: &Folder) -> Folder {
        let copy = Folder::new();
        for path in [folder.database(), log_of(&folder.database())] {
            fs::copy(&path, copy.0.join(path.file_name().unwrap())).unwrap();
        }
        copy
    }

    fn sqlite3(folder: &Folder, sql: &str) {
        let other = Connection::open(folder.database()).unwrap();
        other.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true).unwrap();
        other.execute_batch(sql).unwrap();
    }

    #[test]
    fn log_of_another_database_is_refused_and_both_files_stay() {
        let (one, other) = (killed(2), killed(2));
        assert!(!is_refused(&one) && !is_refused(&other));
        fs::copy(other.database(), one.database()).unwrap();
        let files = || [one.database(), log_of(&one.database())].map(|path| fs::read(path).unwrap());
        let opened = || Writer::open(&one.database()).err().map(|error| error.kind());
        let before = files();
        assert_eq!(opened(), Some(ErrorKind::LogForeign));
        assert!(files() == before);
        fs::write(one.database(), "").unwrap();
        let before = files();
        assert_eq!(opened(), Some(ErrorKind::LogForeign));
        assert!(files() == before);
        fs::write(one.database(), "some text that is no database at all").unwrap();
        let before = files();
        assert_eq!(opened(), Some(ErrorKind::DatabaseForeign));
        assert!(files() == before);
    }

    #[test]
    fn log_of_another_application_is_refused() {
        let (here, theirs) = (killed(2), Folder::new());
        let other = Connection::open(theirs.database()).unwrap();
        other
            .execute_batch("PRAGMA journal_mode = WAL; PRAGMA application_id = 7; CREATE TABLE t (x)")
            .unwrap();
        fs::copy(log_of(&theirs.database()), log_of(&here.database())).unwrap();
        assert!(is_refused(&here));
    }

    #[test]
    fn database_without_a_service_yet_has_a_mark() {
        let other = killed(2);
        let folder = Folder::new();
        let mut writer = Writer::open(&folder.database()).unwrap();
        create(&mut writer);
        drop(writer);
        fs::copy(log_of(&other.database()), log_of(&folder.database())).unwrap();
        assert!(is_refused(&folder));
    }

    #[test]
    fn restored_backup_is_another_database() {
        let (folder, mut writer, _reader) = marked();
        let restored = folder.0.join("restored");
        fs::copy(folder.database(), &restored).unwrap();
        create(&mut writer);
        let killed = copy_of(&folder);
        fs::copy(&restored, killed.database()).unwrap();
        assert!(!is_refused(&killed));
        mark::renew(&restored).unwrap();
        fs::copy(&restored, killed.database()).unwrap();
        assert!(is_refused(&killed));
    }

    #[test]
    fn what_others_do_to_the_mark_is_never_refused() {
        for sql in [
            "UPDATE sqlite_sequence SET seq = 1000",
            "UPDATE sqlite_sequence SET seq = seq + 1",
            "UPDATE sqlite_sequence SET seq = 0 WHERE name = 'pets'",
            "DELETE FROM sqlite_sequence",
            "INSERT INTO sqlite_sequence SELECT * FROM sqlite_sequence",
            "DELETE FROM pets; VACUUM",
        ] {
            for checkpoint in ["PASSIVE", "TRUNCATE", "NOOP"] {
                let (folder, mut writer, _reader) = marked();
                create(&mut writer);
                let check = |what: &str| {
                    assert!(!is_refused(&copy_of(&folder)), "{sql}, {checkpoint}: {what}");
                };
                sqlite3(&folder, sql);
                check("written by another program");
                sqlite3(&folder, &format!("PRAGMA wal_checkpoint({checkpoint})"));
                check("moved into the file");
                create(&mut writer);
                check("followed by a create");
                writer.checkpoint().and_then(|()| writer.ensure_mark()).unwrap();
                create(&mut writer);
                check("followed by a new mark");
                sqlite3(&folder, sql);
                check("written again");
            }
        }
    }

    #[test]
    fn log_of_sqlite3_alone_is_not_refused() {
        let (folder, writer, reader) = marked();
        drop((reader, writer));
        assert!(!log_of(&folder.database()).exists());
        sqlite3(&folder, "UPDATE pets SET status = 'sold'");
        assert_ne!(fs::metadata(log_of(&folder.database())).unwrap().len(), 0);
        assert!(!is_refused(&copy_of(&folder)));
    }

    #[test]
    fn log_that_was_cut_off_is_not_refused() {
        let whole = killed(3);
        let length = fs::metadata(log_of(&whole.database())).unwrap().len();
        for cut in (0..length).step_by(500) {
            let folder = copy_of(&whole);
            fs::File::options().write(true).open(log_of(&folder.database())).unwrap().set_len(cut).unwrap();
            assert!(!is_refused(&folder), "{cut} of {length}");
        }
    }

    #[test]
    fn checkpoint_that_was_interrupted_is_not_refused() {
        for sql in ["", "DELETE FROM pets WHERE id < 150; VACUUM"] {
            let (folder, mut writer, _reader) = marked();
            (0..200).for_each(|_| create(&mut writer));
            writer.checkpoint().unwrap();
            let before = fs::read(folder.database()).unwrap();
            // The file grows by some pages, which come after its header.
            (0..200).for_each(|_| create(&mut writer));
            sqlite3(&folder, sql);
            create(&mut writer);
            let log = fs::read(log_of(&folder.database())).unwrap();
            sqlite3(&folder, "PRAGMA wal_checkpoint");
            let after = fs::read(folder.database()).unwrap();
            // Pages are moved in their order.
            for pages in 0..after.len() / 4096 {
                let killed = Folder::new();
                let moved = pages * 4096;
                fs::write(killed.database(), [&after[..moved], &before[moved.min(before.len())..]].concat())
                    .unwrap();
                fs::write(log_of(&killed.database()), &log).unwrap();
                assert!(!is_refused(&killed), "{sql}: {pages}");
                let writer = Writer::open(&killed.database()).unwrap();
                let whole = "PRAGMA integrity_check";
                assert_eq!(writer.connection.query_row(whole, [], |row| row.get(0)), Ok("ok".to_owned()));
            }
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

    #[test]
    fn only_what_sqlite_reads_and_finds_wrong_is_damage() {
        use rusqlite::ffi;
        for (code, expected) in [
            (ffi::SQLITE_CORRUPT, true),
            (ffi::SQLITE_NOTADB, true),
            (ffi::SQLITE_BUSY, false),
            (ffi::SQLITE_IOERR, false),
            (ffi::SQLITE_CANTOPEN, false),
        ] {
            let error = rusqlite::Error::SqliteFailure(ffi::Error::new(code), None);
            assert_eq!(is_damage(&error), expected, "{error}");
        }
    }
}
