//! The store: the only place with SQL. Knows nothing of HTTP.
//!
//! One [`Store`] is one connection to the SQLite file. The workers that read have one each,
//! read-only; the writer has the only one that writes. `schema.rs` says whose file it is and brings it
//! up to date, `batch.rs` draws the lines around what belongs together, `pets.rs` and `keys.rs` hold
//! the statements.

mod batch;
mod keys;
mod pets;
mod schema;

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{Connection, ErrorCode, OpenFlags};

pub use keys::{ApiKey, Digest};
pub use pets::Page;

use batch::Batch;

/// How long a connection waits for another process to release its lock.
const BUSY_TIMEOUT: Duration = Duration::from_secs(5);

/// One connection to the database, and the batch under way on it.
pub struct Store {
    connection: Connection,
    batch: Batch,
}

/// Why the store could not do as asked. The text is for the log, never for a client.
#[derive(Clone, Debug, PartialEq)]
pub enum StoreError {
    /// The disk is full or failing, or another process holds the database: it may work later.
    Unavailable(String),
    /// Anything else, which is a fault of ours.
    Internal(String),
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let (Self::Unavailable(detail) | Self::Internal(detail)) = self;
        f.write_str(detail)
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let detail = error.to_string();
        match error.sqlite_error_code() {
            Some(
                ErrorCode::DiskFull
                | ErrorCode::SystemIoFailure
                | ErrorCode::DatabaseBusy
                | ErrorCode::DatabaseLocked
                | ErrorCode::ReadOnly
                | ErrorCode::CannotOpen
                | ErrorCode::OutOfMemory
                | ErrorCode::PermissionDenied
                | ErrorCode::FileLockingProtocolFailed
                | ErrorCode::DatabaseCorrupt
                | ErrorCode::NotADatabase,
            ) => StoreError::Unavailable(detail),
            _ => StoreError::Internal(detail),
        }
    }
}

impl Store {
    /// Opens the database for writing: makes the file where there is none (mode 0600), refuses one
    /// that is not ours, and brings an older one up to date.
    ///
    /// # Errors
    /// One plain line that names the file and says what is wrong with it.
    pub fn open_writer(path: &Path) -> Result<Self, String> {
        create_private(path)?;
        let say = |error: rusqlite::Error| cannot_open(path, &error);
        let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(say)?;
        schema::check(&connection, path)?;
        // Readers never wait for the writer (sqlite.org/wal.html). Asked for before the migration, as a
        // transaction cannot change it.
        let mode: String =
            connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(say)?;
        if mode != "wal" {
            return Err(format!(
                "{}: SQLite cannot use write-ahead logging here (it stays at '{mode}'); \
                 a local file system is needed",
                path.display()
            ));
        }
        // FULL: every commit is flushed to the disk before it counts (sqlite.org/pragma.html#pragma_synchronous).
        connection.pragma_update(None, "synchronous", "FULL").map_err(say)?;
        schema::migrate(&mut connection, path)?;
        Ok(Self { connection, batch: Batch::new_for_writing() })
    }

    /// Opens a connection that cannot write, to a database that [`Store::open_writer`] has seen.
    ///
    /// # Errors
    /// One plain line that names the file and says what is wrong with it.
    pub fn open_reader(path: &Path) -> Result<Self, String> {
        let connection =
            connect(path, OpenFlags::SQLITE_OPEN_READ_ONLY).map_err(|error| cannot_open(path, &error))?;
        Ok(Self { connection, batch: Batch::new_for_reading() })
    }

    /// Moves what the write-ahead log holds into the database file; done once, at the end.
    ///
    /// # Errors
    /// Where the disk or another process does not let it; nothing is lost then, the log stays.
    pub fn checkpoint(&self) -> Result<(), StoreError> {
        Ok(self.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(()))?)
    }
}

fn connect(path: &Path, access: OpenFlags) -> rusqlite::Result<Connection> {
    // NO_MUTEX: a connection stays with its worker, so SQLite need not lock it.
    let connection = Connection::open_with_flags(path, access | OpenFlags::SQLITE_OPEN_NO_MUTEX)?;
    connection.busy_timeout(BUSY_TIMEOUT)?;
    // The plan of a statement does not depend on the values bound to it (sqlite.org/queryplanner-ng.html#qpsg).
    // Without this, SQLite prepares a statement with `LIMIT ?` anew each time a value is bound.
    connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
    // Nothing here sorts on disk; with this, no descriptor is needed after the start.
    connection.pragma_update(None, "temp_store", "MEMORY")?;
    Ok(connection)
}

/// Makes an empty file that only its owner may read: it will hold the digests of keys. SQLite gives the
/// files beside it the same mode.
fn create_private(path: &Path) -> Result<(), String> {
    match OpenOptions::new().write(true).create_new(true).mode(0o600).open(path) {
        Ok(_) => Ok(()),
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(format!("cannot create the database {}: {error}", path.display())),
    }
}

fn cannot_open(path: &Path, error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::NotADatabase) => format!("{} is not an SQLite database", path.display()),
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => {
            format!("{} is locked by another process", path.display())
        }
        _ => format!("cannot open the database {}: {error}", path.display()),
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;

    /// A folder of its own for one test's database, removed at the end.
    pub struct Folder(pub PathBuf);

    impl Folder {
        pub fn new() -> Self {
            let name = format!("petstore-store-{}-{:x}", std::process::id(), getrandom::u64().unwrap());
            let path = std::env::temp_dir().join(name);
            std::fs::create_dir(&path).unwrap();
            Self(path)
        }

        pub fn database(&self) -> PathBuf {
            self.0.join("pets.db")
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn new_file_is_private_and_its_companions_too() {
        let folder = Folder::new();
        let mut store = Store::open_writer(&folder.database()).unwrap();
        store.insert_pet(&pets::tests::new_pet("Rex")).unwrap();
        store.end_batch().unwrap();
        let mut files = 0;
        for entry in std::fs::read_dir(&folder.0).unwrap() {
            let entry = entry.unwrap();
            assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{:?}", entry.path());
            files += 1;
        }
        assert_eq!(files, 3, "the database, its write-ahead log and the log's index");
    }

    #[test]
    fn commits_are_flushed_and_logged_ahead() {
        let folder = Folder::new();
        let store = Store::open_writer(&folder.database()).unwrap();
        let pragma = |name: &str| store.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        assert_eq!(pragma("synchronous"), Ok(2), "FULL");
        let mode: String =
            store.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
    }

    #[test]
    fn statements_are_prepared_once() {
        let folder = Folder::new();
        drop(Store::open_writer(&folder.database()).unwrap());
        let store = Store::open_reader(&folder.database()).unwrap();
        let mut page =
            store.connection.prepare("SELECT name FROM pets WHERE id > ?1 ORDER BY id LIMIT ?2").unwrap();
        for limit in 1..5 {
            assert!(page.query((limit, limit)).unwrap().next().unwrap().is_none());
        }
        assert_eq!(page.get_status(rusqlite::StatementStatus::RePrepare), 0);
    }

    #[test]
    fn reader_cannot_write() {
        let folder = Folder::new();
        let _writer = Store::open_writer(&folder.database()).unwrap();
        let mut reader = Store::open_reader(&folder.database()).unwrap();
        assert!(matches!(
            reader.insert_pet(&pets::tests::new_pet("Rex")),
            Err(StoreError::Unavailable(_) | StoreError::Internal(_))
        ));
    }
}
