//! The engine in one file: SQLite, within this process.
//!
//! - The file: `startup.rs` has the order in which it is opened for writing, and `claim.rs` the checks before that: it
//!   is a file, no other service has it, and its log is its own, or its journal (`journal.rs`). `read_only.rs` opens it only
//!   for reading, `open_file.rs` names and identifies files, `connection.rs` connects to them, and `watch.rs` notices when one is
//!   moved or deleted.
//! - The schema: `schema.rs` identifies the database and migrates it, `schema_diff.rs` finds the changes of other programs,
//!   `values.rs` finds text that is not UTF-8, and `integrity.rs` checks the whole database.
//! - `reader.rs` has statements and snapshots, `batch.rs` has transactions, `recorder.rs` records changes, and `checkpoint.rs` keeps the log short.
//! - `query_plan_tests.rs` checks that no statement scans a large table.
//! - Whole databases: `snapshot.rs`, `backup.rs`, `restore.rs` and `rescue.rs`.

mod backup;
mod batch;
mod checkpoint;
mod claim;
mod connection;
mod integrity;
mod journal;
pub mod migrations;
mod open_file;
#[cfg(test)]
mod query_plan_tests;
mod read_only;
mod reader;
mod recorder;
mod rescue;
mod restore;
pub mod schema;
mod schema_diff;
mod snapshot;
mod startup;
mod trial;
mod values;
mod watch;

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::AtomicI32;
use std::time::{Duration, Instant};

pub use claim::{Claim, lacks_log, left_of};
pub use integrity::Checked;
pub use migrations::VERSION as SCHEMA_VERSION;
pub use open_file::{FileId, journal_of, log_of};
pub use reader::Reader;
pub use rescue::saved_next_to;
pub use restore::{OldDatabase, RestoredKeys, carry_over, lock_old, renew_changes};
pub use schema_diff::kind_of;
pub use snapshot::Snapshot;
pub use startup::{Purpose, open_for_service, reset_ephemeral};

use super::idempotency::IdempotencyClock;
use super::{Cause, Outcome, StoreError};

/// The time to wait for another process to release its lock.
pub const BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// The connection that writes, and the batch under way on it. It reads too, but takes no snapshots.
pub struct Writer {
    pub reader: Reader,
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
    /// The batch has written the page of the identity.
    is_identified: bool,
    retry_clock: IdempotencyClock,
    recorder: recorder::Recorder,
    /// True if the last commit failed, so that a probe must show that the disk takes writes again.
    last_failed: bool,
    /// True if a commit has written since the start; until then a probe must show that the disk takes writes at all.
    has_written: bool,
    /// The rescue of a database whose file is gone.
    rescue: rescue::Rescue,
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

impl Deref for Writer {
    type Target = Reader;

    fn deref(&self) -> &Reader {
        &self.reader
    }
}

impl Drop for Writer {
    /// Saves what only the connection has: a database whose file was deleted or replaced.
    fn drop(&mut self) {
        self.rescue();
    }
}

impl Writer {
    fn new(reader: Reader) -> Self {
        Self {
            reader,
            frames: Arc::default(),
            state: BatchState::Closed,
            written: 0,
            busy_timeout: BUSY_TIMEOUT,
            gave_up: None,
            recorded: 0,
            is_identified: false,
            retry_clock: IdempotencyClock::default(),
            recorder: recorder::Recorder::default(),
            last_failed: false,
            has_written: false,
            rescue: None,
        }
    }
}

#[cfg(test)]
pub(crate) mod tests;
