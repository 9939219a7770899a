//! The engine in one file: SQLite, within this process.
//!
//! - The file: `startup.rs` has the order in which it is opened for writing, and `claim.rs` the checks before that: it
//!   is a file, no other service has it, and its log is its own. `read_only.rs` opens it only for reading,
//!   `open_file.rs` names and identifies files, `connection.rs` connects to them, and `watch.rs` notices when one is
//!   moved or deleted.
//! - The schema: `schema.rs` identifies the database and migrates it, `schema_diff.rs` finds the changes of other programs,
//!   `values.rs` finds values that no column can have, and `integrity.rs` checks the whole database.
//! - `reader.rs` has statements and snapshots, `batch.rs` has transactions, and `checkpoint.rs` keeps the log short.
//! - `query_plan_tests.rs` checks that no statement scans a large table.
//! - Whole databases: `snapshot.rs`, `backup.rs`, `restore.rs` and `rescue.rs`.

mod backup;
mod batch;
mod checkpoint;
mod claim;
mod connection;
mod integrity;
mod open_file;
#[cfg(test)]
mod query_plan_tests;
mod read_only;
mod reader;
mod rescue;
mod restore;
pub(super) mod schema;
mod schema_diff;
mod snapshot;
mod startup;
mod values;
mod watch;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::time::{Duration, Instant};

pub use claim::{Claim, lacks_log};
pub use integrity::Checked;
pub use open_file::log_of;
pub use reader::FileReader;
pub use restore::{carry_over, lock_old};
pub use schema::VERSION as SCHEMA_VERSION;
pub use schema_diff::kind_of;
pub use snapshot::Snapshot;
pub use startup::{Purpose, open_for_service, reset_ephemeral};

use super::outcome::{Committed, Inserted, Outcome};
use super::tally::Tally;
use super::{Cause, StoreError};
use crate::model::PetCounts;

/// The time to wait for another process to release its lock.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// A batch shares a snapshot, which costs little: with more requests at once, none is answered sooner.
pub const READS_AT_ONCE: usize = 64;

/// A connection, and the batch under way on it. One that was opened to read writes nothing.
pub struct FileConnection {
    pub reader: FileReader,
    /// The frames of the log after the last commit.
    frames: Arc<AtomicI32>,
    state: BatchState,
    /// Writes of the batch so far.
    written: usize,
    /// The busy timeout: the time that a batch waits for the lock of another process.
    busy_timeout: Duration,
    /// The time at which a wait for a lock last timed out.
    gave_up: Option<Instant>,
    /// Records of retries that the batch has added.
    recorded: usize,
    /// The moment of the first use of a record of a retry, and the time of day from which its age is measured.
    retries_began: Option<(Instant, i64)>,
    /// True if the last commit failed, so that a probe must show that the disk takes writes again.
    last_failed: bool,
    /// The pets by status, if the service counts them.
    tally: Option<Tally>,
    /// The change of the tally by the batch so far.
    pub change: PetCounts,
    /// `PRAGMA data_version` when the tally was last current.
    tallied_version: i64,
    /// True if a commit has written since the start; until then a probe must show that the disk takes writes at all.
    has_written: bool,
}

/// The state of the writer's batch.
#[derive(Debug, PartialEq)]
enum BatchState {
    /// No transaction was opened to write.
    Closed,
    /// The transaction was opened. SQLite may have ended it since.
    Open,
    /// A write failed in a way that may have undone earlier ones, so the whole batch must fail.
    Failed(StoreError),
}

impl Deref for FileConnection {
    type Target = FileReader;

    fn deref(&self) -> &FileReader {
        &self.reader
    }
}

impl From<FileReader> for FileConnection {
    fn from(reader: FileReader) -> Self {
        Self {
            reader,
            frames: Arc::default(),
            state: BatchState::Closed,
            written: 0,
            busy_timeout: BUSY_TIMEOUT,
            gave_up: None,
            recorded: 0,
            retries_began: None,
            last_failed: false,
            tally: None,
            change: PetCounts::default(),
            tallied_version: 0,
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
        let mut rows = reader.raw().prepare(sql).unwrap();
        rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// Runs statements as another program would.
    pub fn run(reader: &FileReader, sql: &str) {
        reader.raw().execute_batch(sql).unwrap();
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
        writer.raw().pragma_update(None, "query_only", refuse).unwrap();
    }

    /// Has SQLite refuse checkpoints.
    pub fn refuse_checkpoints(writer: &mut FileConnection) {
        use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
        let allow = |context: AuthContext| match context.action {
            AuthAction::Pragma { pragma_name: "wal_checkpoint", .. } => Authorization::Deny,
            _ => Authorization::Allow,
        };
        writer.reader.raw_mut().authorizer(Some(allow)).unwrap();
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
        let pragma = |name: &str| writer.raw().pragma_query_value(None, name, |row| row.get::<_, i64>(0));
        assert_eq!(pragma("synchronous"), Ok(2), "FULL");
        let mode: String = writer.raw().pragma_query_value(None, "journal_mode", |row| row.get(0)).unwrap();
        assert_eq!(mode, "wal");
    }

    #[test]
    fn statements_are_prepared_once() {
        let (_folder, _writer, reader) = pair();
        let mut page = reader.raw().prepare(&crate::store::statements::STATEMENTS.page).unwrap();
        for limit in 1..5 {
            assert!(page.query((limit, limit)).unwrap().next().unwrap().is_none());
        }
        assert_eq!(page.get_status(rusqlite::StatementStatus::RePrepare), 0);
    }

    #[test]
    fn reader_is_refused_by_the_file_too() {
        let (_folder, _writer, reader) = pair();
        assert!(reader.raw().execute("DELETE FROM pets", []).is_err());
    }
}
