//! Takes a database file out of use: locked against everybody, and everything in one file.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::schema;
use super::{cannot_open, connect};
use crate::base::error::{Error, ErrorKind as Kind};

/// Locks a database, moves its write-ahead log into it and removes SQLite's other files. Nobody else can read or write
/// it as long as the connection is open. `None` if it is too damaged; then nothing is changed. Call this while nobody
/// in this process has the database open.
///
/// # Errors
/// If another process uses it, or the disk is full or fails.
pub fn retire(path: &Path) -> Result<Option<Connection>, Error> {
    let merged = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(|connection| {
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
        Ok(if mode == "delete" { Ok(connection) } else { Err(used(path)) })
    });
    match merged {
        Ok(connection) => connection.map(Some),
        Err(error) => match error.sqlite_error_code() {
            Some(ErrorCode::NotADatabase | ErrorCode::DatabaseCorrupt) => Ok(None),
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Err(used(path)),
            _ => Err(cannot_open(path, error)),
        },
    }
}

fn used(path: &Path) -> Error {
    Error::new(Kind::DatabaseLocked, format!("another process uses the database {}", path.display()))
}
