//! The engine in one file: SQLite, within this process.
//!
//! - The file: `open_file.rs` names and identifies it, `connection.rs` connects to it, `claim.rs` gives it to one
//!   service, `startup.rs` has the order in which a service opens it, and `read_only.rs` opens it only for
//!   reading. `log_check.rs` refuses the log of another, and `watch.rs` notices when it is moved or deleted.
//! - The schema: `schema.rs` says whose database it is and brings it up to date; `schema_diff.rs` says what other programs
//!   have changed or added, `values.rs` names values that no column can have, and `integrity.rs` checks the whole database.
//! - `batch.rs` draws the lines around what belongs together, and `checkpoint.rs` keeps the log short.
//! - `query_plan_tests.rs` checks that no statement scans a large table.
//! - Whole databases: `snapshot.rs`, `backup.rs`, `retire.rs`, `carry.rs` and `rescue.rs`.

mod backup;
mod batch;
mod carry;
mod checkpoint;
mod claim;
mod connection;
pub(super) mod engine;
mod integrity;
mod log_check;
mod open_file;
#[cfg(test)]
mod query_plan_tests;
mod read_only;
mod rescue;
mod retire;
pub(super) mod schema;
mod schema_diff;
mod snapshot;
mod startup;
mod values;
mod watch;

use std::ops::Deref;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::time::{Duration, Instant, SystemTime};

use rusqlite::config::DbConfig;
use rusqlite::{Connection, MAIN_DB, OpenFlags};

pub use carry::carry;
pub use claim::Claim;
pub use integrity::Checked;
pub use log_check::lacks_log;
pub use open_file::log_of;
pub use retire::retire;
pub use schema::VERSION as SCHEMA_VERSION;
pub use schema_diff::kind_of;
pub use snapshot::Snapshot;
pub use startup::{open_ephemeral, open_for_service, reset_ephemeral};

use super::outcome::{Committed, Inserted, Outcome};
use super::{Cause, StoreError};
use crate::base::error::{Error, ErrorKind};
use batch::Transaction;
use checkpoint::count_frames;
use connection::{cannot_open, cannot_write, connect, reading};
use log_check::{open_with_own_log, refuse_log_of_another};
use open_file::OpenFile;
use watch::Watch;

/// How long another process is waited for to release its lock.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// A batch shares a snapshot, which costs little: with more requests at once, none is answered sooner.
pub const READS_AT_ONCE: usize = 64;
/// The most bytes of the write-ahead log that stay once it has been moved into the database file.
const MAX_IDLE_LOG_BYTES: i64 = 16 * 1024 * 1024;

/// The reading part of a connection.
pub struct FileReader {
    connection: Connection,
    /// Its handle of the file is closed after the connection.
    watch: Watch,
    /// `PRAGMA data_version` at the start of the batch under way.
    data_version: i64,
    /// The last stand-in for an unknown version. It only decreases, so that no two batches share one.
    unread_data_versions: i64,
}

/// A connection, and the batch under way on it. One that was opened to read writes nothing.
pub struct FileConnection {
    pub reader: FileReader,
    /// The frames of the log after the last commit.
    frames: Arc<AtomicI32>,
    transaction: Transaction,
    /// Writes of the batch so far.
    written: usize,
    /// How long a batch waits for the lock of another process.
    busy_timeout: Duration,
    /// When a lock was last waited for in vain.
    gave_up: Option<Instant>,
    /// Records of retries that the batch has added.
    recorded: usize,
    /// When the writer first used a record of a retry, and the time that it counts from there.
    retries_began: Option<(Instant, i64)>,
    /// Whether the last commit failed, so that a probe must show that the disk takes writes again.
    last_failed: bool,
    /// Whether a commit has written since the start; until then a probe must show that the disk takes writes at all.
    has_written: bool,
}

impl Deref for FileConnection {
    type Target = FileReader;

    fn deref(&self) -> &FileReader {
        &self.reader
    }
}

impl FileReader {
    /// A connection that has read the database, so that all its files are open.
    fn new(connection: Connection, path: &Path, file: OpenFile, unlocked: Option<SystemTime>) -> Self {
        let identity = schema::identity(&connection).ok().flatten();
        let watch = Watch::new(path, file, unlocked, identity);
        Self { connection, watch, data_version: 0, unread_data_versions: 0 }
    }

    /// The connection, as long as its file is still the database.
    ///
    /// # Errors
    /// If the file was moved or deleted.
    fn connection(&self) -> Result<&Connection, StoreError> {
        self.watch.found()?;
        Ok(&self.connection)
    }

    /// Takes a version that no batch had, as nothing is known to be unchanged. Those of SQLite are positive.
    fn forget_data_version(&mut self) {
        self.unread_data_versions -= 1;
        self.data_version = self.unread_data_versions;
    }

    /// Ends a transaction that has written nothing, if one is open.
    fn end_reading(&self) -> Result<(), StoreError> {
        if self.connection.is_autocommit() { Ok(()) } else { self.run("COMMIT") }
    }

    fn run(&self, statement: &str) -> Result<(), StoreError> {
        self.connection.prepare_cached(statement)?.execute([])?;
        Ok(())
    }

    fn read_data_version(&mut self) -> Result<(), StoreError> {
        self.data_version =
            self.connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        Ok(())
    }
}

impl FileConnection {
    /// Opens the database for writing: makes the file if there is none (mode 0600), and refuses one that is not ours, or
    /// older: its service may still run, and only a service brings it up to date.
    ///
    /// # Errors
    /// If it cannot be opened, or is not a database of ours.
    pub fn open(path: &Path) -> Result<Self, Error> {
        // FULL: every commit is flushed to the disk before it counts (sqlite.org/pragma.html#pragma_synchronous).
        Self::open_with(path, "FULL", false)
    }

    /// As [`FileConnection::open`]; `synchronous` says what is flushed to the disk, and a service brings an older database
    /// up to date.
    fn open_with(path: &Path, synchronous: &str, is_service: bool) -> Result<Self, Error> {
        claim::prepare(path)?;
        let file = open_with_own_log(path)?;
        let say = |error: rusqlite::Error| cannot_open(path, error);
        let has_log = log_of(path).exists();
        let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(say)?;
        // What is refused keeps its log, and gets none if it had none (sqlite.org/c3ref/c_dbconfig_defensive.html).
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, has_log).map_err(say)?;
        // SQLite opens what it may not write all the same.
        if connection.is_readonly(MAIN_DB).map_err(say)? {
            return Err(cannot_write(path));
        }
        schema::check(&connection, path, schema::STEPS)?;
        refuse_log_of_another(path, &connection)?;
        if !is_service {
            schema::refuse_older(&connection, path)?;
        }
        // Before the migration, so that what is refused stays as it is.
        schema_diff::refuse_gaps(&connection, path)?;
        connection.pragma_update(None, "synchronous", synchronous).map_err(say)?;
        // Readers never wait for the writer (sqlite.org/wal.html). Asked for before the migration, as a
        // transaction cannot change it.
        let mode: String =
            connection.query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0)).map_err(say)?;
        if mode != "wal" {
            let why = format!("SQLite cannot use write-ahead logging here (it stays at '{mode}')");
            let message = format!("{}: {why}; a local file system is needed", path.display());
            return Err(Error::new(ErrorKind::Io, message));
        }
        // What a long reader made it grow to is given back (sqlite.org/pragma.html#pragma_journal_size_limit).
        connection.pragma_update(None, "journal_size_limit", MAX_IDLE_LOG_BYTES).map_err(say)?;
        schema::migrate(&mut connection, path, schema::STEPS)?;
        // From here on SQLite never waits for a lock; `batch.rs` does.
        connection.busy_timeout(Duration::ZERO).map_err(say)?;
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false).map_err(say)?;
        let frames = count_frames(&mut connection).map_err(say)?;
        let reader = FileReader::new(connection, path, file, None);
        Ok(Self { frames, ..Self::from(reader) })
    }
}

impl From<FileReader> for FileConnection {
    fn from(reader: FileReader) -> Self {
        Self {
            reader,
            frames: Arc::default(),
            transaction: Transaction::Closed,
            written: 0,
            busy_timeout: BUSY_TIMEOUT,
            gave_up: None,
            recorded: 0,
            retries_began: None,
            last_failed: false,
            has_written: false,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub use crate::store::pets::tests::new_pet;
    pub use crate::testing::Folder;

    /// The first column of a statement.
    pub fn all<T: rusqlite::types::FromSql>(reader: &FileReader, sql: &str) -> Vec<T> {
        let mut rows = reader.connection.prepare(sql).unwrap();
        rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// The names of all pets, as a batch sees them.
    pub fn names(reader: &mut FileReader) -> Vec<String> {
        reader.begin().unwrap();
        let names = all(reader, "SELECT name FROM pets ORDER BY id");
        reader.end().unwrap();
        names
    }

    /// Has SQLite refuse every write, as a file does that may only be read.
    pub fn refuse_writes(writer: &FileConnection, refuse: bool) {
        writer.connection.pragma_update(None, "query_only", refuse).unwrap();
    }

    /// Has SQLite refuse checkpoints.
    pub fn refuse_checkpoints(writer: &mut FileConnection) {
        use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
        let allow = |context: AuthContext| match context.action {
            AuthAction::Pragma { pragma_name: "wal_checkpoint", .. } => Authorization::Deny,
            _ => Authorization::Allow,
        };
        writer.reader.connection.authorizer(Some(allow)).unwrap();
    }

    /// The writer of a new database, and a reader.
    pub fn pair() -> (Folder, FileConnection, FileReader) {
        let folder = Folder::new();
        let writer = FileConnection::open(&folder.database()).unwrap();
        let reader = FileReader::open(&folder.database()).unwrap();
        (folder, writer, reader)
    }

    #[test]
    fn commits_are_flushed_and_logged_ahead() {
        let (_folder, writer, _reader) = pair();
        let pragma =
            |name: &str| writer.connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        assert_eq!(pragma("synchronous"), Ok(2), "FULL");
        let mode: String =
            writer.connection.pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
    }

    #[test]
    fn statements_are_prepared_once() {
        let (_folder, _writer, reader) = pair();
        let mut page = reader.connection.prepare(&crate::store::statements::STATEMENTS.page).unwrap();
        for limit in 1..5 {
            assert!(page.query((limit, limit)).unwrap().next().unwrap().is_none());
        }
        assert_eq!(page.get_status(rusqlite::StatementStatus::RePrepare), 0);
    }

    #[test]
    fn reader_is_refused_by_the_file_too() {
        let (_folder, _writer, reader) = pair();
        assert!(reader.connection.execute("DELETE FROM pets", []).is_err());
    }
}
