//! Batches: one snapshot for requests that read together, one transaction and one flush for requests that
//! write together.

use std::mem;
use std::time::{Duration, Instant};

use rusqlite::{ToSql, params};

use super::{
    Cause, Committed, Inserted, Outcome, Reader, StoreError, Units, Writer, differences, mark, schema,
};
use crate::log_line::log_line;
use crate::model::NewPet;

/// The state of the writer's batch.
#[derive(Debug, PartialEq)]
pub(super) enum State {
    /// No transaction is open.
    Closed,
    /// The transaction is open.
    Open,
    /// A write failed in a way that may have undone earlier ones, so the whole batch must fail.
    Failed(StoreError),
}

pub(super) const INSERT: &str = "INSERT INTO pets (name, category_id, status) VALUES (?1, ?2, ?3)";

/// Rewrites the newest pets unchanged. It names every column, so that every index is written.
const REWRITE: &str = "UPDATE sqlite_sequence SET seq = seq;
    UPDATE pets SET name = name, category_id = category_id, status = status
        WHERE id > (SELECT max(id) - 1000 FROM pets);";

/// Writes the first page as it is.
fn rewrite_header(connection: &rusqlite::Connection) -> rusqlite::Result<()> {
    connection.pragma_update(None, "user_version", schema::version(connection)?)
}

/// The time between two tries to get a lock. SQLite's own waits grow to 100 ms, and miss a lock that is free
/// for moments only.
const RETRY: Duration = Duration::from_millis(1);
/// How long a lock that could not be had counts as still held, so that requests behind it do not wait again.
const LOCK_IS_KNOWN: Duration = Duration::from_millis(100);

impl Reader {
    /// Takes a snapshot. All reads before [`Reader::end`] see this one moment, which is later than every
    /// acknowledged commit.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn begin(&mut self) -> Result<(), StoreError> {
        self.0.forget_version();
        self.0.watch.look()?;
        self.0.execute("BEGIN")?;
        // This read takes the snapshot; BEGIN alone does not.
        self.0.read_version()
    }

    /// Releases the snapshot.
    ///
    /// # Errors
    /// If the connection is broken.
    pub fn end(&mut self) -> Result<(), StoreError> {
        self.0.end_reading()
    }
}

impl Writer {
    /// Starts a batch, if possible with its transaction: what the batch reads and what it writes then share SQLite's
    /// locks. If another process has the lock, the first write waits for it.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn begin(&mut self, units: Units) -> Result<(), StoreError> {
        // A panic may have left the batch before without an end.
        self.undo();
        self.units = units;
        self.in_unit = false;
        self.written = 0;
        self.replays = 0;
        self.database.forget_version();
        self.database.watch.look()?;
        // Why it cannot be written is told to the first who writes.
        if !self.try_begin().unwrap_or(false) {
            self.execute("BEGIN")?;
        }
        self.database.read_version()
    }

    /// Starts the writes of one request.
    ///
    /// # Errors
    /// If the units are to be separate and the database cannot be written.
    pub fn begin_unit(&mut self) -> Result<(), StoreError> {
        self.written = 0;
        self.retries.memory.begin_unit();
        if self.units == Units::Separate {
            self.open_transaction()?;
            self.execute("SAVEPOINT unit")?;
            self.in_unit = true;
        }
        Ok(())
    }

    /// Keeps the writes of the request for the commit.
    ///
    /// # Errors
    /// If the batch has failed.
    pub fn keep_unit(&mut self) -> Result<(), StoreError> {
        if mem::take(&mut self.in_unit) && self.state == State::Open {
            self.execute("RELEASE unit")?;
        }
        Ok(())
    }

    /// Undoes the writes of the request. `false` if the whole batch must be undone instead.
    pub fn undo_unit(&mut self) -> bool {
        if self.units == Units::Joined {
            return self.written == 0;
        }
        self.retries.memory.undo_unit();
        // If this fails, so does the commit, and nothing is left.
        if self.state == State::Open
            && mem::take(&mut self.in_unit)
            && let Err(error) = self.execute("ROLLBACK TO unit").and_then(|()| self.execute("RELEASE unit"))
        {
            self.state = State::Failed(error);
        }
        true
    }

    /// Does one write within the batch's transaction, which the first write opens.
    pub(super) fn write<T>(
        &mut self,
        statement: impl FnOnce(&rusqlite::Connection) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.open_transaction()?;
        let written = statement(&self.connection).map_err(|error| self.explained(error));
        self.written += usize::from(written.is_ok());
        written.map_err(|error| {
            // A full disk, an I/O error or an interrupt may have rolled back the whole transaction by itself
            // (sqlite.org/lang_transaction.html#response_to_errors_within_a_transaction).
            let is_whole = matches!(error, StoreError::Unavailable(..)) || self.connection.is_autocommit();
            if is_whole { self.failed(error) } else { error }
        })
    }

    /// The failure of a statement. If an index or a trigger of another program is the cause, its detail names it.
    fn explained(&self, error: rusqlite::Error) -> StoreError {
        let explanation = differences::explain(&self.connection, &error).ok().flatten();
        match (StoreError::from(error), explanation) {
            (StoreError::Unavailable(cause, _), Some(detail)) => StoreError::Unavailable(cause, detail),
            (StoreError::Internal(_), Some(detail)) => StoreError::Internal(detail),
            (error, None) => error,
        }
    }

    /// Adds a pet to the batch.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn insert_pet(&mut self, new: &NewPet) -> Result<Inserted, StoreError> {
        self.insert(new).map(|id| Inserted::Now(Outcome::Made(id)))
    }

    /// Adds a pet to the batch, and returns its id.
    pub(super) fn insert(&mut self, new: &NewPet) -> Result<i64, StoreError> {
        let inserted = self.write(|connection| {
            let values = params![new.name, new.category_id, new.status];
            connection.prepare_cached(INSERT)?.insert(values)
        });
        // The page of the sequences is that of the mark.
        self.has_mark |= inserted.is_ok();
        match inserted {
            // SQLite reports both cases as a full disk (sqlite.org/autoinc.html).
            Err(StoreError::Unavailable(Cause::Full, detail)) if self.last_id() == Ok(i64::MAX) => {
                Err(self.failed(StoreError::Unavailable(Cause::NoIds, detail)))
            }
            inserted => inserted,
        }
    }

    /// Runs a statement within the batch, and returns how many rows it changed.
    pub(super) fn change(&mut self, sql: &str, values: &[&dyn ToSql]) -> Result<usize, StoreError> {
        self.write(|connection| connection.prepare_cached(sql)?.execute(values))
    }

    /// Makes the whole batch fail.
    fn failed(&mut self, error: StoreError) -> StoreError {
        self.state = State::Failed(error.clone());
        error
    }

    /// Opens the transaction if it is not open yet. Until its end no other process can write.
    ///
    /// # Errors
    /// If another process keeps its lock, or the database cannot be written.
    pub fn open_transaction(&mut self) -> Result<(), StoreError> {
        match &self.state {
            State::Open => Ok(()),
            State::Failed(error) => Err(error.clone()),
            State::Closed => {
                self.end_reading()?;
                // A batch waits for the lock of another process once, and fails whole.
                self.wait_for_lock().map_err(|error| self.failed(error))
            }
        }
    }

    /// Opens the transaction as soon as no other process has one. Requests that came while a batch waited in
    /// vain do not wait again.
    fn wait_for_lock(&mut self) -> Result<(), StoreError> {
        let is_known = self.gave_up.is_some_and(|at| at.elapsed() < LOCK_IS_KNOWN);
        let patience = if is_known { Duration::ZERO } else { self.patience };
        let began = Instant::now();
        while !self.try_begin()? {
            if began.elapsed() >= patience {
                if !patience.is_zero() {
                    self.gave_up = Some(Instant::now());
                }
                let detail = "another process did not release its lock on the database in time";
                return Err(StoreError::Unavailable(Cause::Locked, detail.to_owned()));
            }
            std::thread::sleep(RETRY);
        }
        Ok(())
    }

    /// Opens the transaction; `false` if another process has the lock.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn try_begin(&mut self) -> Result<bool, StoreError> {
        // IMMEDIATE takes the lock at once, so that no write can fail later because of it
        // (sqlite.org/lang_transaction.html).
        match self.execute("BEGIN IMMEDIATE") {
            Ok(()) => {
                self.state = State::Open;
                self.changes = self.connection.total_changes();
                self.has_mark = false;
                if self.last_failed {
                    // A statement that cannot be prepared does not notice that another program has mended the schema. A
                    // read does. If it fails, so does what follows.
                    let _ = schema::is_foreign(&self.connection);
                }
                Ok(true)
            }
            Err(StoreError::Unavailable(Cause::Locked, _)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Ends the batch. If this returns `Ok`, everything is on disk; otherwise everything is undone.
    ///
    /// # Errors
    /// If the commit, or a write before it, failed.
    pub fn commit(&mut self) -> Result<Committed, StoreError> {
        let ended = match mem::replace(&mut self.state, State::Closed) {
            State::Closed => return self.end_reading().map(|()| Committed::default()),
            // Writes to a file that was moved away must not be acknowledged.
            State::Open => self.database.watch.look_now().and_then(|()| self.finish()),
            State::Failed(error) => Err(error),
        };
        match &ended {
            Ok(true) if self.last_failed => {
                log_line!(warn, "the database takes changes again");
                self.last_failed = false;
            }
            Ok(_) => {}
            Err(_) => {
                self.last_failed = true;
                self.roll_back();
            }
        }
        ended.map(|_| Committed::at_once(mem::take(&mut self.replays)))
    }

    /// Commits, and returns whether the transaction changed anything.
    fn finish(&mut self) -> Result<bool, StoreError> {
        self.retries.write(&self.database.connection)?;
        let connection = &self.database.connection;
        let has_changed = connection.total_changes() != self.changes;
        if has_changed && !self.has_mark {
            mark::touch(connection)?;
        }
        if let Err(error) = self.execute("COMMIT") {
            self.roll_back();
            self.write_over();
            return Err(error);
        }
        self.retries.memory.commit();
        self.shorten_log();
        Ok(has_changed)
    }

    /// Writes over what a failed commit may have left in the log. If only its flush failed, a crash would bring it
    /// back. It does not matter whether this is flushed.
    fn write_over(&mut self) {
        let over = self.execute("BEGIN IMMEDIATE").and_then(|()| Ok(rewrite_header(&self.connection)?));
        let _ = over.and_then(|()| self.execute("COMMIT"));
        self.roll_back();
    }

    /// Undoes the batch.
    pub fn undo(&mut self) {
        self.state = State::Closed;
        self.roll_back();
    }

    fn roll_back(&mut self) {
        self.retries.memory.undo();
        if !self.connection.is_autocommit()
            && let Err(error) = self.execute("ROLLBACK")
        {
            // The next BEGIN will fail too, and its clients will learn why.
            log_line!(error, "rollback failed: {error}");
        }
    }

    /// Checks, between batches, that the writer can write. It takes the lock and, after a failed commit, also
    /// rewrites the newest pets and flushes them: a few pages for which a full disk has no room.
    ///
    /// # Errors
    /// If it could not.
    pub fn probe(&mut self) -> Result<(), StoreError> {
        let after_failure = self.last_failed;
        let probed = self.write(|connection| {
            if after_failure {
                rewrite_header(connection)?;
                // Every page that a create writes: the sequence, the pets, their indexes.
                connection.execute_batch(REWRITE)?;
            }
            Ok(())
        });
        let ended = self.commit();
        probed.and(ended.map(drop))
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Folder, pair, refuse_writes};
    use super::super::tests::{names, new_pet};
    use super::*;

    #[test]
    fn batch_is_seen_by_readers_only_after_its_commit() {
        let (_folder, mut writer, mut reader) = pair();
        writer.begin(Units::Joined).unwrap();
        writer.insert_pet(&new_pet("Rex")).unwrap();
        writer.insert_pet(&new_pet("Tom")).unwrap();
        assert_eq!(names(&mut reader), [""; 0]);
        writer.commit().unwrap();
        assert_eq!(names(&mut reader), ["Rex", "Tom"]);
    }

    #[test]
    fn undone_batch_leaves_nothing() {
        let (_folder, mut writer, mut reader) = pair();
        writer.insert_pet(&new_pet("Rex")).unwrap();
        writer.undo();
        writer.insert_pet(&new_pet("Tom")).unwrap();
        writer.commit().unwrap();
        assert_eq!(names(&mut reader), ["Tom"]);
    }

    #[test]
    fn batch_that_sqlite_rolled_back_fails_whole() {
        let (_folder, mut writer, mut reader) = pair();
        writer.insert_pet(&new_pet("Rex")).unwrap();
        writer.bound_rows(Some(0));
        let endless = "INSERT INTO pets (name, category_id) \
            WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT '', i FROM n";
        assert!(writer.write(|connection| connection.execute(endless, [])).is_err());
        writer.bound_rows(None);
        assert!(writer.insert_pet(&new_pet("Tom")).is_err());
        assert!(writer.commit().is_err());
        assert_eq!(names(&mut reader), [""; 0]);
    }

    #[test]
    fn batch_without_an_end_is_undone_by_the_next() {
        let (_folder, mut writer, mut reader) = pair();
        writer.begin(Units::Joined).unwrap();
        writer.insert_pet(&new_pet("Rex")).unwrap();
        writer.begin(Units::Joined).unwrap();
        writer.insert_pet(&new_pet("Tom")).unwrap();
        writer.commit().unwrap();
        assert_eq!(names(&mut reader), ["Tom"]);
    }

    #[test]
    fn batch_begins_with_the_lock_unless_another_process_has_it() {
        let (folder, mut writer, _reader) = pair();
        let other = rusqlite::Connection::open(folder.database()).unwrap();
        other.busy_timeout(Duration::ZERO).unwrap();
        writer.begin(Units::Joined).unwrap();
        assert!(other.execute_batch("BEGIN IMMEDIATE").is_err());
        writer.commit().unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        writer.begin(Units::Joined).unwrap();
        writer.commit().unwrap();
        writer.begin(Units::Joined).unwrap();
        other.execute_batch("COMMIT").unwrap();
        writer.insert_pet(&new_pet("Rex")).unwrap();
        writer.commit().unwrap();
    }

    #[test]
    fn joined_unit_that_wrote_cannot_be_undone_alone() {
        let (_folder, mut writer, _reader) = pair();
        writer.begin(Units::Joined).unwrap();
        writer.begin_unit().unwrap();
        assert!(writer.undo_unit(), "it wrote nothing");
        writer.insert_pet(&new_pet("Rex")).unwrap();
        assert!(!writer.undo_unit());
        writer.keep_unit().unwrap();
        writer.begin_unit().unwrap();
        assert!(writer.undo_unit(), "only the one before it wrote");
    }

    #[test]
    fn separate_unit_is_undone_alone() {
        let (_folder, mut writer, mut reader) = pair();
        writer.begin(Units::Separate).unwrap();
        for (name, keep) in [("Rex", true), ("Tom", false), ("Ada", true), ("Bob", false)] {
            writer.begin_unit().unwrap();
            writer.insert_pet(&new_pet(name)).unwrap();
            if keep {
                writer.keep_unit().unwrap();
            } else {
                assert!(writer.undo_unit());
            }
            assert!(writer.execute("RELEASE unit").is_err(), "its savepoint is gone");
        }
        writer.commit().unwrap();
        assert_eq!(names(&mut reader), ["Rex", "Ada"]);
    }

    #[test]
    fn version_changes_with_every_commit_of_others() {
        let (_folder, mut writer, mut reader) = pair();
        let mut version = || {
            reader.begin().unwrap();
            let version = reader.data_version();
            // The snapshot and the version are of the same moment, whatever is committed in between.
            writer.insert_pet(&new_pet("Rex")).unwrap();
            writer.commit().unwrap();
            let seen = super::super::tests::count(&reader.0);
            reader.end().unwrap();
            (version, seen)
        };
        let (first, second) = (version(), version());
        assert_ne!(first.0, second.0);
        assert_eq!((first.1, second.1), (0, 1));
        reader.begin().unwrap();
        let unchanged = reader.data_version();
        reader.end().unwrap();
        reader.begin().unwrap();
        assert_eq!(reader.data_version(), unchanged);
    }

    #[test]
    fn version_is_of_no_other_batch_where_it_cannot_be_read() {
        let (_folder, _writer, mut reader) = pair();
        let mut seen = std::collections::HashSet::new();
        for _ in 0..3 {
            reader.0.forget_version();
            assert!(reader.data_version() < 0, "versions that are read are positive");
            assert!(seen.insert(reader.data_version()));
        }
    }

    #[test]
    fn failed_batch_is_undone_whole_and_the_next_starts_clean() {
        let (_folder, mut writer, mut reader) = pair();
        let pages: i64 =
            writer.database.connection.pragma_query_value(None, "page_count", |r| r.get(0)).unwrap();
        // SQLite's way to simulate a full disk.
        writer.database.connection.pragma_update(None, "max_page_count", pages).unwrap();
        writer.insert_pet(&new_pet("small")).unwrap();
        let large = "x".repeat(60_000);
        assert!(matches!(writer.insert_pet(&new_pet(&large)), Err(StoreError::Unavailable(..))));
        assert!(matches!(writer.insert_pet(&new_pet("late")), Err(StoreError::Unavailable(..))));
        assert!(matches!(writer.commit(), Err(StoreError::Unavailable(..))));
        assert_eq!(names(&mut reader), [""; 0]);

        writer.database.connection.pragma_update(None, "max_page_count", 1_000_000).unwrap();
        assert_eq!(writer.probe(), Ok(()));
        writer.insert_pet(&new_pet("next")).unwrap();
        writer.commit().unwrap();
        assert_eq!(names(&mut reader), ["next"]);
    }

    #[test]
    fn probe_after_a_failure_needs_room_on_the_disk() {
        let (_folder, mut writer, _reader) = pair();
        writer.insert_pet(&new_pet("Rex")).unwrap();
        writer.commit().unwrap();
        writer.last_failed = true;
        writer.begin(Units::Joined).unwrap();
        writer.commit().unwrap();
        assert!(writer.last_failed, "a batch that writes nothing shows nothing");
        refuse_writes(&writer, true);
        assert!(writer.probe().is_err(), "it writes");
        refuse_writes(&writer, false);
        assert_eq!(writer.probe(), Ok(()));
        assert!(!writer.last_failed, "the next need not write");
    }

    #[test]
    fn batch_meets_the_lock_of_another_process_once() {
        let folder = Folder::new();
        let mut writer = Writer::open(&folder.database()).unwrap();
        writer.be_patient(Duration::ZERO);
        let other = rusqlite::Connection::open(folder.database()).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert!(matches!(writer.probe(), Err(StoreError::Unavailable(..))));
        assert!(matches!(writer.insert_pet(&new_pet("Rex")), Err(StoreError::Unavailable(..))));
        other.execute_batch("ROLLBACK").unwrap();
        assert!(matches!(writer.insert_pet(&new_pet("late")), Err(StoreError::Unavailable(..))));
        assert!(matches!(writer.commit(), Err(StoreError::Unavailable(..))));
        assert_eq!(writer.probe(), Ok(()));
    }

    #[test]
    fn one_wait_for_a_lock_serves_all_that_waited_behind_it() {
        let (folder, mut writer, mut reader) = pair();
        let other = rusqlite::Connection::open(folder.database()).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        writer.be_patient(Duration::ZERO);
        assert!(writer.probe().is_err());
        assert_eq!(writer.gave_up, None, "who did not wait has not found out for others");
        writer.be_patient(Duration::from_millis(10));
        assert!(writer.probe().is_err());
        let gave_up = Some(Instant::now() + LOCK_IS_KNOWN);
        writer.gave_up = gave_up;
        assert!(writer.insert_pet(&new_pet("Rex")).is_err() && writer.commit().is_err());
        assert_eq!(writer.gave_up, gave_up, "it did not wait again");
        other.execute_batch("ROLLBACK").unwrap();
        writer.insert_pet(&new_pet("Tom")).unwrap();
        writer.commit().unwrap();
        assert_eq!(names(&mut reader), ["Tom"]);
    }

    #[test]
    fn adding_a_row_builds_no_table_in_memory() {
        let (_folder, writer, _reader) = pair();
        let mut program = writer.connection.prepare(&format!("EXPLAIN {INSERT}")).unwrap();
        let values = params!["a", 1, crate::model::PetStatus::Sold];
        let steps: Vec<String> =
            program.query_map(values, |row| row.get("opcode")).unwrap().flatten().collect();
        assert!(steps.iter().any(|step| step == "IdxInsert"), "{steps:?}");
        assert!(!steps.iter().any(|step| step == "OpenEphemeral"), "{steps:?}");
    }
}
