//! Connects to a database, and names the reason if it cannot.

use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::fs::{StatVfsMountFlags, statvfs};

use super::open_file::{journal_of, log_of};
use super::{BUSY_TIMEOUT, StoreError};
use crate::base::error::{Error, ErrorKind as Kind};
use crate::base::files::whose;

/// The access to a database that is only read. If it has a write-ahead log, the connection must not write: the last
/// connection to close would run a checkpoint, which only the service may do. If it has none, SQLite makes one, and only
/// a connection that may write removes it again. A rollback journal of a killed restore is rolled back first, which
/// takes writing.
pub fn reading(path: &Path) -> OpenFlags {
    if log_of(path).exists() && !journal_of(path).exists() {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    } else {
        OpenFlags::SQLITE_OPEN_READ_WRITE
    }
}

/// Opens a connection with the settings that all have.
pub fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    // NO_MUTEX: a connection stays with its worker, so SQLite need not lock it.
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // The plan of a statement does not depend on the values bound to it (sqlite.org/queryplanner-ng.html#qpsg).
    // Without this, SQLite prepares a statement with `LIMIT ?` again each time a value is bound.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // Nothing here sorts on disk; with this, no descriptor is needed after the start.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    // On macOS, a flush reaches the disk only with these; elsewhere they change nothing
    // (sqlite.org/pragma.html#pragma_fullfsync).
    connection.pragma_update(None, "fullfsync", true)?;
    connection.pragma_update(None, "checkpoint_fullfsync", true)?;
    Ok(connection)
}

/// The message about a file that SQLite cannot read to its end.
pub const DAMAGED: &str = "is not sound: a page is missing, or contradicts another";

/// The error, for an operator, if SQLite cannot open or read a database.
pub fn cannot_open(path: &Path, error: rusqlite::Error) -> Error {
    let (kind, why) = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => {
            (Kind::DatabaseForeign, "is not an SQLite database, or its first page is damaged")
        }
        Some(ErrorCode::DatabaseCorrupt) => (Kind::DatabaseDamaged, DAMAGED),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => return cannot_write(path).caused_by(error),
        _ => return Error::from(StoreError::from(error)).context(path.display()),
    };
    Error::new(kind, format!("{} {why}", path.display())).caused_by(error)
}

/// The error if SQLite cannot write to a database, or cannot create the files next to it that even a reader needs.
pub fn cannot_write(path: &Path) -> Error {
    let is_read_only = statvfs(path).is_ok_and(|disk| disk.f_flag.contains(StatVfsMountFlags::RDONLY));
    let (kind, why) = if is_read_only {
        let why = "is on a file system that is mounted read-only; if it has a log (-wal), copy it and its log into a folder that takes \
            files, and use the copy";
        (Kind::FileSystemReadOnly, why.to_owned())
    } else {
        let why = "this user cannot read and write it, or cannot create files in its folder";
        (Kind::PermissionDenied, format!("cannot be opened: {why}: {}", whose(path)))
    };
    Error::new(kind, format!("{} {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn only_a_log_alone_keeps_a_reader_from_writing() {
        let folder = crate::testing::Folder::new();
        let path = folder.database();
        assert_eq!(reading(&path), OpenFlags::SQLITE_OPEN_READ_WRITE);
        std::fs::write(log_of(&path), "").unwrap();
        assert_eq!(reading(&path), OpenFlags::SQLITE_OPEN_READ_ONLY);
        std::fs::write(journal_of(&path), "").unwrap();
        assert_eq!(reading(&path), OpenFlags::SQLITE_OPEN_READ_WRITE);
    }

    #[test]
    fn flushes_reach_the_disk_on_macos_too() {
        let folder = crate::testing::Folder::new();
        let create = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let connection = connect(&folder.database(), create).unwrap();
        for pragma in ["fullfsync", "checkpoint_fullfsync"] {
            assert!(connection.pragma_query_value(None, pragma, |row| row.get::<_, bool>(0)).unwrap());
        }
    }

    #[test]
    fn refusals_of_sqlite_have_their_kind_and_their_words() {
        for (code, kind, words) in [
            (ffi::SQLITE_NOTADB, Kind::DatabaseForeign, "is not an SQLite database"),
            (ffi::SQLITE_BUSY, Kind::DatabaseLocked, "is locked by another process"),
            (ffi::SQLITE_LOCKED, Kind::DatabaseLocked, "is locked by another process"),
            (ffi::SQLITE_CANTOPEN, Kind::PermissionDenied, "this user cannot read and write it"),
            (ffi::SQLITE_READONLY, Kind::PermissionDenied, "belongs to"),
            (ffi::SQLITE_FULL, Kind::DiskFull, "the disk is full"),
            (ffi::SQLITE_CORRUPT, Kind::DatabaseDamaged, "is not sound"),
            (ffi::SQLITE_IOERR, Kind::Io, "fails, or a file may not grow further (ulimit -f): Error code 10"),
        ] {
            let error = cannot_open(
                Path::new("pets.db"),
                rusqlite::Error::SqliteFailure(ffi::Error::new(code), None),
            );
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
