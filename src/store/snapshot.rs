//! A whole database as it is at one moment.

use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::{cannot_open, connect, schema};

/// Where the header says how the file is written: 1 with a rollback journal, 2 with a write-ahead log, once for
/// writers and once for readers (`sqlite.org/fileformat2.html`, section 1.3.3).
pub const MODE_AT: u64 = 18;

/// What is said of a file that SQLite cannot follow.
pub const DAMAGED: &str = "a page is missing, or contradicts another";

/// A connection whose read transaction lasts as long as this lives.
pub struct Snapshot {
    pub(super) connection: Connection,
    pub(super) path: PathBuf,
}

impl Snapshot {
    /// Takes one of a database that may be in use. The last to close a database moves its write-ahead log into
    /// it, and that may be this.
    ///
    /// # Errors
    /// One plain line that names the file and says what is wrong with it.
    pub fn of_database(path: &Path) -> Result<Self, String> {
        if !path.exists() {
            return Err(format!("there is no database {}", path.display()));
        }
        let connection =
            connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(|error| unreadable(path, &error))?;
        schema::check(&connection, path, schema::STEPS)?;
        let snapshot = Self { connection, path: path.to_owned() };
        if snapshot.take()? == 0 {
            return Err(format!("{} is empty: no service has used it yet", path.display()));
        }
        Ok(snapshot)
    }

    /// Takes it, and returns the version of its schema. Reading is what takes it: BEGIN alone waits for the first
    /// read.
    fn take(&self) -> Result<i64, String> {
        let read = || {
            self.connection.execute_batch("BEGIN")?;
            self.connection
                .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))?;
            self.connection.pragma_query_value(None, "user_version", |row| row.get(0))
        };
        read().map_err(|error| unreadable(&self.path, &error))
    }
}

/// Why a file cannot be read, in one plain line.
pub fn unreadable(path: &Path, error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt) => format!("{} is not sound: {DAMAGED}", path.display()),
        _ => cannot_open(path, error),
    }
}
