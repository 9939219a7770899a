//! The end of a database file under its name: everything in one file, and nobody at it.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::schema;
use super::{cannot_open, connect, file};

/// A database that is all in one file, and that nobody else can open while this lives.
pub struct Retired(#[expect(dead_code, reason = "it holds SQLite's locks")] Connection);

/// Moves the write-ahead log of a database into it, removes what SQLite keeps beside it, and locks it. `None`
/// where it is too damaged for that: nothing is changed then.
///
/// # Errors
/// One plain line, where another process uses it or the disk does not let it.
pub fn retire(path: &Path) -> Result<Option<Retired>, String> {
    let name = path.display();
    // SQLite deletes the log of an empty file.
    let is_empty = std::fs::metadata(path).is_ok_and(|data| data.len() == 0);
    if is_empty && file::log_of(path).exists() {
        return Ok(None);
    }
    let used = || format!("another process uses the database {name}; end it first");
    let retired = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).and_then(|connection| {
        // Without this, SQLite moves the log of a damaged database too, when it closes it.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true)?;
        if schema::is_foreign(&connection)? {
            return Ok(Err(format!("{name} is the database of another application")));
        }
        connection.pragma_update(None, "synchronous", "FULL")?;
        // It takes the lock that nobody else may have, moves the log and removes it
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
                Err(format!("the disk is too full to move the write-ahead log of {name} into it"))
            }
            _ => Err(cannot_open(path, &error)),
        },
    }
}
