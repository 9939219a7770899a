//! The lines around what belongs together: one snapshot for requests that are read together,
//! one transaction and one flush for those that are written together.

use std::mem;

use super::{Store, StoreError};

/// What is under way on a connection.
pub(super) struct Batch {
    writing: bool,
    state: State,
    /// What has been written in this batch and waits for the commit.
    pending: usize,
    /// Whether the last commit failed, so that a probe must prove that the disk takes writes again.
    last_failed: bool,
    /// `PRAGMA data_version` at the start of the batch.
    version: i64,
    /// Counts down, for versions that no other batch has.
    failures: i64,
}

/// Where a batch stands.
enum State {
    /// No transaction is open.
    Closed,
    /// A snapshot (reading) or a transaction (writing) is open.
    Open,
    /// A write failed in a way that may have undone those before it: all of the batch must fail.
    Failed(StoreError),
}

impl Batch {
    pub(super) fn new_for_reading() -> Self {
        Self { writing: false, state: State::Closed, pending: 0, last_failed: false, version: 0, failures: 0 }
    }

    pub(super) fn new_for_writing() -> Self {
        Self { writing: true, ..Self::new_for_reading() }
    }
}

impl Store {
    /// Starts a batch. A reader takes the snapshot here, so that all it answers before
    /// [`Store::end_batch`] is of one moment, and of a later one than every commit acknowledged before.
    /// The writer waits for its first write with the transaction ([`Store::write`]).
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn begin_batch(&mut self) -> Result<(), StoreError> {
        // Should this fail, nothing is known to be unchanged; real versions are positive.
        self.batch.failures -= 1;
        self.batch.version = self.batch.failures;
        if !self.batch.writing {
            self.connection.prepare_cached("BEGIN")?.execute([])?;
            self.batch.state = State::Open;
        }
        // Reading it is what takes the snapshot: BEGIN alone waits for the first read.
        self.batch.version =
            self.connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?;
        Ok(())
    }

    /// A number that differs from that of an earlier batch where anybody else has committed since
    /// (`sqlite.org/pragma.html#pragma_data_version`). What this connection itself writes does not count.
    pub fn version(&self) -> i64 {
        self.batch.version
    }

    /// How much has been written in this batch; what raises it must not be acknowledged before
    /// [`Store::end_batch`] has succeeded.
    pub fn pending_writes(&self) -> usize {
        self.batch.pending
    }

    /// Does one write within the batch's transaction, which the first write opens.
    pub(super) fn write<T>(
        &mut self,
        statement: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        match &self.batch.state {
            State::Failed(error) => return Err(error.clone()),
            State::Open => {}
            State::Closed => {
                // IMMEDIATE: the lock is taken at once, so no write can fail later for want of it
                // (sqlite.org/lang_transaction.html).
                self.connection.prepare_cached("BEGIN IMMEDIATE")?.execute([])?;
                self.batch.state = State::Open;
            }
        }
        let written = statement(&self.connection).map_err(StoreError::from);
        match &written {
            Ok(_) => self.batch.pending += 1,
            // A full disk or an I/O error may have rolled back the whole transaction by itself
            // (sqlite.org/lang_transaction.html#response_to_errors_within_a_transaction).
            Err(error @ StoreError::Unavailable(_)) => self.batch.state = State::Failed(error.clone()),
            Err(StoreError::Internal(_)) => {}
        }
        written
    }

    /// Ends the batch. What was written is on the disk when this returns `Ok`, and undone when not.
    ///
    /// # Errors
    /// Where the commit, or a write before it, failed.
    pub fn end_batch(&mut self) -> Result<(), StoreError> {
        self.batch.pending = 0;
        let ended = match mem::replace(&mut self.batch.state, State::Closed) {
            State::Closed => return Ok(()),
            State::Open => self
                .connection
                .prepare_cached("COMMIT")
                .and_then(|mut commit| commit.execute([]))
                .map(|_| ())
                .map_err(StoreError::from),
            State::Failed(error) => Err(error),
        };
        if ended.is_err() && !self.connection.is_autocommit() {
            // Should this fail too, the next BEGIN says so.
            if let Err(error) = self.connection.execute_batch("ROLLBACK") {
                log::error!("rollback failed: {error}");
            }
        }
        self.batch.last_failed = ended.is_err();
        ended
    }

    /// Shows that the writer could write: takes the lock, and after a failed commit also writes the newest
    /// animals as they are and flushes them, some pages that a full disk has no room for.
    ///
    /// # Errors
    /// Where it could not.
    pub fn probe(&mut self) -> Result<(), StoreError> {
        let after_failure = self.batch.last_failed;
        let probed = self.write(|connection| {
            if after_failure {
                let version: i64 = connection.pragma_query_value(None, "user_version", |row| row.get(0))?;
                connection.pragma_update(None, "user_version", version)?;
                // Every page that a creation writes: the sequence, the animals, their index.
                connection.execute_batch(
                    "UPDATE sqlite_sequence SET seq = seq;
                     UPDATE pets SET status = status WHERE id > (SELECT max(id) - 1000 FROM pets);",
                )?;
            }
            Ok(())
        });
        let ended = self.end_batch();
        probed.and(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::super::pets::tests::{names, new_pet};
    use super::super::tests::Folder;
    use super::*;

    #[test]
    fn batch_is_seen_by_readers_only_after_its_commit() {
        let folder = Folder::new();
        let mut writer = Store::open_writer(&folder.database()).unwrap();
        let mut reader = Store::open_reader(&folder.database()).unwrap();
        writer.insert_pet(&new_pet("Rex")).unwrap();
        writer.insert_pet(&new_pet("Tom")).unwrap();
        assert_eq!(writer.pending_writes(), 2);
        assert_eq!(names(&mut reader), [""; 0]);
        writer.end_batch().unwrap();
        assert_eq!(writer.pending_writes(), 0);
        assert_eq!(names(&mut reader), ["Rex", "Tom"]);
    }

    #[test]
    fn version_changes_with_every_commit_of_others() {
        let folder = Folder::new();
        let mut writer = Store::open_writer(&folder.database()).unwrap();
        let mut reader = Store::open_reader(&folder.database()).unwrap();
        let mut version = || {
            reader.begin_batch().unwrap();
            let version = reader.version();
            // The snapshot is of the same moment as the version, whatever is committed in between.
            writer.insert_pet(&new_pet("Rex")).unwrap();
            writer.end_batch().unwrap();
            let mut seen = 0;
            let all = super::super::Page { limit: 100, status: None, after: i64::MIN };
            reader
                .visit_pets(&all, |_| {
                    seen += 1;
                    std::ops::ControlFlow::Continue(())
                })
                .unwrap();
            reader.end_batch().unwrap();
            (version, seen)
        };
        let (first, second) = (version(), version());
        assert_ne!(first.0, second.0);
        assert_eq!((first.1, second.1), (0, 1));
        reader.begin_batch().unwrap();
        let unchanged = reader.version();
        reader.end_batch().unwrap();
        reader.begin_batch().unwrap();
        assert_eq!(reader.version(), unchanged);
    }

    #[test]
    fn failed_batch_is_undone_whole_and_the_next_starts_clean() {
        let folder = Folder::new();
        let mut writer = Store::open_writer(&folder.database()).unwrap();
        let mut reader = Store::open_reader(&folder.database()).unwrap();
        let pages: i64 = writer.connection.pragma_query_value(None, "page_count", |r| r.get(0)).unwrap();
        // SQLite's own way to have a full disk.
        writer.connection.pragma_update(None, "max_page_count", pages).unwrap();
        writer.insert_pet(&new_pet("small")).unwrap();
        let large = "x".repeat(60_000);
        assert!(matches!(writer.insert_pet(&new_pet(&large)), Err(StoreError::Unavailable(_))));
        assert!(matches!(writer.insert_pet(&new_pet("late")), Err(StoreError::Unavailable(_))));
        assert!(matches!(writer.end_batch(), Err(StoreError::Unavailable(_))));
        assert_eq!(names(&mut reader), [""; 0]);

        writer.connection.pragma_update(None, "max_page_count", 1_000_000).unwrap();
        assert_eq!(writer.probe(), Ok(()));
        writer.insert_pet(&new_pet("next")).unwrap();
        writer.end_batch().unwrap();
        assert_eq!(names(&mut reader), ["next"]);
    }

    #[test]
    fn lock_of_another_process_is_unavailable() {
        let folder = Folder::new();
        let mut writer = Store::open_writer(&folder.database()).unwrap();
        writer.connection.busy_timeout(std::time::Duration::ZERO).unwrap();
        let other = rusqlite::Connection::open(folder.database()).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert!(matches!(writer.probe(), Err(StoreError::Unavailable(_))));
        assert!(matches!(writer.insert_pet(&new_pet("Rex")), Err(StoreError::Unavailable(_))));
        other.execute_batch("ROLLBACK").unwrap();
        assert_eq!(writer.probe(), Ok(()));
    }
}
