//! Connects to a database, and names the reason if it cannot.

use std::fs::{File, remove_file};
use std::path::Path;

use rusqlite::config::DbConfig;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::{Connection, ErrorCode, OpenFlags};
use rustix::fs::{StatVfsMountFlags, statvfs};

use super::journal::has_journal;
use super::open_file::{immutable, log_of};
use super::{BUSY_TIMEOUT, StoreError};
use petstore_base::error::{Error, ErrorKind as Kind};
use petstore_base::files::whose;

/// The access to a database that is only read. If it has a write-ahead log, the connection must not write: the last
/// connection to close would run a checkpoint, which only the service may do. If it has none, SQLite makes one, and only
/// a connection that may write removes it again. If it has a rollback journal, such a connection would play it back.
pub fn reading(path: &Path) -> OpenFlags {
    if log_of(path).exists() || has_journal(path) {
        OpenFlags::SQLITE_OPEN_READ_ONLY
    } else {
        OpenFlags::SQLITE_OPEN_READ_WRITE
    }
}

/// Opens a connection with the settings that all have.
pub fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    // NO_MUTEX: a connection stays with its worker, so SQLite need not lock it.
    let mut connection =
        Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
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
    guard_tables(&mut connection)?;
    Ok(connection)
}

/// Opens a connection that reads a file without locks and without other files.
pub fn connect_alone(path: &Path) -> rusqlite::Result<Connection> {
    let access = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_URI;
    connect(&immutable(path), access)
}

/// The tables that triggers of other programs may not write: a copy from elsewhere could have one that adds a key of its
/// author, or has ids given again.
const GUARDED: [&str; 11] = [
    "api_keys",
    "retries",
    "imports",
    "project",
    "deploys",
    "deploy_files",
    "domains",
    "redirects",
    "changes",
    "changes_kept",
    "sqlite_sequence",
];

/// Has no trigger write a guarded table, and nothing change the digest or the scope of an API key. SQLite asks when it
/// compiles a statement, and names the trigger.
pub fn guard_tables(connection: &mut Connection) -> rusqlite::Result<()> {
    connection.authorizer(Some(|context: AuthContext| {
        let of_trigger = |table: &str| {
            context.accessor.is_some() && GUARDED.iter().any(|it| it.eq_ignore_ascii_case(table))
        };
        let is_denied = match context.action {
            AuthAction::Insert { table_name } | AuthAction::Delete { table_name } => {
                of_trigger(table_name)
            }
            AuthAction::Update {
                table_name,
                column_name,
            } => {
                let is_time = ["expires_at", "last_used_at"].contains(&column_name);
                of_trigger(table_name) || table_name.eq_ignore_ascii_case("api_keys") && !is_time
            }
            _ => false,
        };
        if is_denied {
            Authorization::Deny
        } else {
            Authorization::Allow
        }
    }))
}

/// The message about a file that SQLite cannot read to its end.
pub const DAMAGED: &str = "is not sound: a page is missing, or contradicts another";

/// The error, for an operator, if SQLite cannot open or read a database.
pub fn cannot_open(path: &Path, error: rusqlite::Error) -> Error {
    let (kind, why) = match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => (
            Kind::DatabaseForeign,
            "is not an SQLite database, or its first page is damaged",
        ),
        Some(ErrorCode::DatabaseCorrupt) => (Kind::DatabaseDamaged, DAMAGED),
        Some(ErrorCode::CannotOpen | ErrorCode::ReadOnly) => {
            return cannot_write(path).caused_by(error);
        }
        _ => return Error::from(StoreError::from(error)).context(path.display()),
    };
    Error::new(kind, format!("{} {why}", path.display())).caused_by(error)
}

/// The error if SQLite cannot write to a database, or cannot create the files next to it that even a reader needs.
pub fn cannot_write(path: &Path) -> Error {
    let is_read_only =
        statvfs(path).is_ok_and(|disk| disk.f_flag.contains(StatVfsMountFlags::RDONLY));
    let probe = path.with_added_extension("probe");
    let made = File::create_new(&probe).map(|_| drop(remove_file(&probe)));
    if let Err(error) = made
        && Kind::of_io(&error) == Kind::DiskFull
    {
        let what = format!("{} cannot be opened without further files", path.display());
        return Error::of_file(what, &probe, error);
    }
    let (kind, why) = if is_read_only {
        let why = "is on a file system that is mounted read-only; if a log (-wal) or a journal (-journal) is next to it, copy it \
            and that file into a folder that takes files, and use the copy";
        (Kind::FileSystemReadOnly, why.to_owned())
    } else {
        let why = "this user cannot read and write it, or cannot create files in its folder";
        (
            Kind::PermissionDenied,
            format!("cannot be opened: {why}: {}", whose(path)),
        )
    };
    Error::new(kind, format!("{} {why}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::super::open_file::journal_of;
    use rusqlite::ffi;

    use super::*;

    #[test]
    fn log_or_journal_keeps_a_reader_from_writing() {
        let folder = petstore_base::testing::Folder::new();
        let path = folder.database();
        assert_eq!(reading(&path), OpenFlags::SQLITE_OPEN_READ_WRITE);
        std::fs::write(log_of(&path), "").unwrap();
        assert_eq!(reading(&path), OpenFlags::SQLITE_OPEN_READ_ONLY);
        std::fs::remove_file(log_of(&path)).unwrap();
        // One that is done with, empty or with zeros, is not played back.
        for (text, access) in [
            ("", OpenFlags::SQLITE_OPEN_READ_WRITE),
            ("\0pages", OpenFlags::SQLITE_OPEN_READ_WRITE),
            ("pages", OpenFlags::SQLITE_OPEN_READ_ONLY),
        ] {
            std::fs::write(journal_of(&path), text).unwrap();
            assert_eq!(reading(&path), access, "{text:?}");
        }
    }

    #[test]
    fn every_table_but_the_pets_is_guarded_and_tried() {
        let schema = super::super::migrations::STEPS.concat();
        let tables = schema.split("CREATE TABLE ").skip(1);
        let names: Vec<_> = tables.filter_map(|it| it.split(' ').next()).collect();
        let tries = include_str!("trial.sql");
        assert!(names.len() > 5);
        for name in names {
            assert_eq!(GUARDED.contains(&name), name != "pets", "{name}");
            assert!(tries.contains(&format!("-- {name}: ")), "{name}");
        }
    }

    #[test]
    fn flushes_reach_the_disk_on_macos_too() {
        let folder = petstore_base::testing::Folder::new();
        let create = OpenFlags::SQLITE_OPEN_READ_WRITE | OpenFlags::SQLITE_OPEN_CREATE;
        let connection = connect(&folder.database(), create).unwrap();
        for pragma in ["fullfsync", "checkpoint_fullfsync"] {
            assert!(
                connection
                    .pragma_query_value(None, pragma, |row| row.get::<_, bool>(0))
                    .unwrap()
            );
        }
    }

    #[test]
    fn refusals_of_sqlite_have_their_kind_and_their_words() {
        for (code, kind, words) in [
            (
                ffi::SQLITE_NOTADB,
                Kind::DatabaseForeign,
                "is not an SQLite database",
            ),
            (
                ffi::SQLITE_BUSY,
                Kind::DatabaseLocked,
                "is locked by another process",
            ),
            (
                ffi::SQLITE_LOCKED,
                Kind::DatabaseLocked,
                "is locked by another process",
            ),
            (
                ffi::SQLITE_CANTOPEN,
                Kind::PermissionDenied,
                "this user cannot read and write it",
            ),
            (ffi::SQLITE_READONLY, Kind::PermissionDenied, "belongs to"),
            (ffi::SQLITE_FULL, Kind::DiskFull, "the disk is full"),
            (ffi::SQLITE_IOERR_SHMMAP, Kind::Io, "; a local disk can"),
            (ffi::SQLITE_CORRUPT, Kind::DatabaseDamaged, "is not sound"),
            (
                ffi::SQLITE_IOERR,
                Kind::Io,
                "fails, or a file may not grow further (ulimit -f, a quota): SQLite's code 10",
            ),
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
