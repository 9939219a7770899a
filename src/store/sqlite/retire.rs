//! Takes a database file out of use: locked against everybody, and if possible everything in one file.

use std::fs::File;
use std::io::ErrorKind as Os;
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::fs::{FlockOperation, fcntl_lock};

use super::open_file::{self, log_of};
use super::schema;
use super::{cannot_open, connect};
use crate::error::{Error, ErrorKind as Kind};

/// A database that nobody else can read or write while this exists.
pub enum Retired {
    /// All of it is in its file.
    Whole(#[expect(dead_code, reason = "it holds SQLite's locks")] Connection),
    /// Its log is not its own, or it is too damaged. Nothing was changed.
    AsItWas(#[expect(dead_code, reason = "it holds the lock")] File),
}

/// Locks a database. If `log_is_own`, moves its write-ahead log into it and removes SQLite's other files. Call this
/// while nobody in this process has the database open.
///
/// # Errors
/// If another process uses it, or the disk is full or fails.
pub fn retire(path: &Path, log_is_own: bool) -> Result<Retired, Error> {
    // SQLite would delete the log next to an empty file, so it is not opened.
    let is_empty = std::fs::metadata(path).is_ok_and(|data| data.len() == 0);
    let is_readable = log_is_own && !(is_empty && log_of(path).exists());
    match if is_readable { merge(path)? } else { None } {
        Some(connection) => Ok(Retired::Whole(connection)),
        None => lock(path).map(Retired::AsItWas),
    }
}

/// Moves the log into the file, which it locks. `None` if it is too damaged; then nothing is changed.
fn merge(path: &Path) -> Result<Option<Connection>, Error> {
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
            Some(ErrorCode::DiskFull) => {
                let message =
                    format!("the disk is too full to move the write-ahead log of {} into it", path.display());
                Err(Error::new(Kind::DiskFull, message).caused_by(error))
            }
            _ => Err(cannot_open(path, error)),
        },
    }
}

/// Locks all bytes of a file, among them those that every user of SQLite locks, even of a file that SQLite itself
/// cannot read (`sqlite.org/lockingv3.html`). A connection with a log has its lock from its first read to its end.
fn lock(path: &Path) -> Result<File, Error> {
    let file = File::options().read(true).write(true).open(path);
    let file = file.map_err(|error| open_file::cannot_open(path, error))?;
    fcntl_lock(&file, FlockOperation::NonBlockingLockExclusive).map_err(|error| {
        let error = std::io::Error::from(error);
        match error.kind() {
            Os::WouldBlock | Os::PermissionDenied => used(path),
            _ => open_file::cannot_open(path, error),
        }
    })?;
    Ok(file)
}

fn used(path: &Path) -> Error {
    Error::new(Kind::DatabaseLocked, format!("another process uses the database {}", path.display()))
}
