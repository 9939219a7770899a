//! Takes a database file out of use: everything in one file, locked against everybody.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::open_file::log_of;
use super::schema;
use super::{cannot_open, connect};
use crate::error::{Error, ErrorKind as Kind};

/// A database that is all in one file, which nobody else can open while this exists.
pub struct Retired(#[expect(dead_code, reason = "it holds SQLite's locks")] Connection);

/// Moves the write-ahead log of a database into it, removes SQLite's other files, and locks it. `None` if it
/// is too damaged; then nothing is changed.
///
/// # Errors
/// If another process uses it, or the disk is full or fails.
pub fn retire(path: &Path) -> Result<Option<Retired>, Error> {
    let name = path.display();
    // SQLite would delete the log next to an empty file, so it is not opened.
    let is_empty = std::fs::metadata(path).is_ok_and(|data| data.len() == 0);
    if is_empty && log_of(path).exists() {
        return Ok(None);
    }
    let used = || Error::new(Kind::DatabaseLocked, format!("another process uses the database {name}"));
    let retired = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(|connection| {
        // Without this, SQLite would move the log of a damaged database when it closes it.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        if schema::is_foreign(&connection)? {
            return Ok(Err(schema::foreign(path)));
        }
        connection.pragma_update(None, "synchronous", "FULL")?;
        // This takes the exclusive lock, moves the log and removes it
        // (sqlite.org/pragma.html#pragma_journal_mode).
        let mode: String = connection.query_row("PRAGMA journal_mode = DELETE", [], |row| row.get(0))?;
        connection.execute_batch("BEGIN EXCLUSIVE")?;
        Ok(if mode == "delete" { Ok(connection) } else { Err(used()) })
    });
    match retired {
        Ok(connection) => connection.map(|connection| Some(Retired(connection))),
        Err(error) => match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Ok(None),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Err(used()),
            Some(ErrorCode::DiskFull) => {
                let message = format!("the disk is too full to move the write-ahead log of {name} into it");
                Err(Error::new(Kind::DiskFull, message).caused_by(error))
            }
            _ => Err(cannot_open(path, error)),
        },
    }
}
