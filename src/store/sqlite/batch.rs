//! Batches: one snapshot for requests that read together, one transaction and one flush for requests that
//! write together.

use std::mem;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use rusqlite::ffi::{SQLITE_FULL, SQLITE_IOERR_WRITE};
use rusqlite::types::ValueRef;
use rusqlite::{OptionalExtension, Row, Statement, ToSql, params};

use super::checkpoint::{TRUNCATE, WORTH_A_CHECKPOINT};
use super::{BatchState, Cause, Outcome, StoreError, Writer};
use crate::model::{IdempotencyKey, NewPet};
use crate::store::idempotency;
use crate::store::statements::{INSERT, REWRITE};

/// Writes the page of the identity into the log, so that the log of a database is told from that of another one that was copied
/// over the file. SQLite does not write a row that stays as it is, so the row gets another rowid: one of two in turn that SQLite
/// gives to no row.
const IDENTIFY_LOG: &str = "UPDATE OR IGNORE sqlite_sequence SET rowid = iif(rowid = -1, -2, -1) \
    WHERE name = 'petstore database'";

/// The size in bytes of a large pet. After a failure, a probe checks that there is room for one.
const LARGE_PET: usize = 64 * 1024;

/// The time between two tries to get a lock. SQLite's own waits grow to 100 ms, and miss a lock that is free
/// for moments only.
const RETRY: Duration = Duration::from_millis(1);
/// After a wait for a lock has timed out, the lock counts as held for this time, so that the next requests do not
/// wait again.
const LOCK_IS_KNOWN: Duration = Duration::from_millis(100);

impl Writer {
    /// Checks that the path still leads to the database that was opened.
    ///
    /// # Errors
    /// If it does not, or cannot be read.
    pub fn check_path(&mut self) -> Result<(), StoreError> {
        self.reader.check_path()
    }

    /// Starts a batch, if possible with its transaction. If another process has the lock, the first write waits for it.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn begin(&mut self) -> Result<(), StoreError> {
        // A panic may have left the batch before without an end.
        self.undo();
        let (version, known) = (self.reader.data_version(), self.recorder.known.take());
        self.reader.forget_data_version();
        self.reader.watch.check()?;
        // The first write reports why it cannot be written.
        if !self.try_begin().unwrap_or(false) {
            self.run("BEGIN")?;
        }
        self.reader.read_data_version()?;
        if self.reader.data_version() == version {
            self.recorder.known = known;
        }
        Ok(())
    }

    /// The number of writes in the batch so far, so that callers know whether a request has written.
    pub fn written(&self) -> usize {
        self.written
    }

    /// Opens the transaction if it is not open yet. No other process can write until it ends.
    ///
    /// # Errors
    /// If another process keeps its lock, or the database cannot be written.
    pub fn open_transaction(&mut self) -> Result<(), StoreError> {
        match &self.state {
            BatchState::Open => self.ensure_open(),
            BatchState::Failed(error) => Err(error.clone()),
            BatchState::Closed => {
                self.end()?;
                self.recorder.known = None;
                // A batch waits for the lock of another process once, and fails whole.
                self.wait_for_lock().map_err(|error| self.failed(error))
            }
        }
    }

    /// Adds a pet to the batch, unless a create with this key was carried out before.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn insert_pet(
        &mut self,
        new: &NewPet,
        key: Option<&IdempotencyKey>,
    ) -> Result<Outcome, StoreError> {
        if let Some(key) = key {
            self.open_transaction()?;
            let find = |row: &Row| {
                Ok((
                    row.get(0)?,
                    row.get_ref(1)? == ValueRef::Blob(&new.fingerprint()),
                ))
            };
            let earlier = self.read(idempotency::FIND, |statement| {
                statement.query_row(params![key.0], find).optional()
            })?;
            if let Some((pet, is_same)) = earlier {
                return Ok(if is_same {
                    Outcome::Replayed(pet)
                } else {
                    Outcome::Reused
                });
            }
        }
        let pet = self.write(INSERT, |statement| statement.insert(new.values()))?;
        // The last id is on the same page.
        self.is_identified = true;
        if let Some(key) = key {
            let now = self.retry_time()?;
            self.change(idempotency::RECORD, params![key.0, new.fingerprint(), now])?;
            self.recorded += 1;
        }
        // After the record of the key, whose pet is the last row that was added.
        self.record(pet, None, Some(&new.borrowed().with_id(pet)))?;
        Ok(Outcome::Made(pet))
    }

    /// Runs a statement within the batch, and returns how many rows it changed.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub(in crate::store) fn change(
        &mut self,
        sql: &str,
        values: &[&dyn ToSql],
    ) -> Result<usize, StoreError> {
        self.write(sql, |statement| statement.execute(values))
    }

    /// Ends the batch. If this returns `Ok`, everything is on disk. Otherwise everything is undone, or the outcome is unknown.
    ///
    /// # Errors
    /// If the commit, or a write before it, failed. [`Cause::Unknown`] if the batch may have been carried out.
    pub fn commit(&mut self) -> Result<(), StoreError> {
        let ended = match &self.state {
            BatchState::Closed => return self.end(),
            // Writes to a file that was moved away must not be acknowledged.
            BatchState::Open => self.reader.watch.check_now().and_then(|()| self.finish()),
            BatchState::Failed(error) => Err(error.clone()),
        };
        let has_written = self.written > 0;
        if ended.is_ok() {
            self.recorder.added = 0;
        }
        // Rolls back what has failed.
        self.undo();
        if ended.is_err() {
            self.last_failed = true;
        } else if has_written {
            if mem::take(&mut self.last_failed) {
                log::warn!("the database takes changes again");
            }
            self.has_written = true;
        }
        ended
    }

    /// Undoes the batch.
    pub fn undo(&mut self) {
        self.state = BatchState::Closed;
        (self.written, self.recorded, self.is_identified) = (0, 0, false);
        if mem::take(&mut self.recorder.added) > 0 {
            self.recorder.known = None;
        }
        self.roll_back();
    }

    /// Checks, between batches, that the writer can write.
    ///
    /// # Errors
    /// If it could not.
    pub fn probe(&mut self) -> Result<(), StoreError> {
        // After a write that worked, opening the transaction is enough.
        let is_known = self.has_written && !self.last_failed;
        let probed = if is_known {
            self.open_transaction()
        } else {
            self.write_trial()
        };
        let ended = self.commit();
        probed.and(ended)
    }

    /// Sets how long batches wait for the lock of another process.
    pub fn set_busy_timeout(&mut self, timeout: Duration) {
        self.busy_timeout = timeout;
    }

    /// Checkpoints the whole write-ahead log, and empties it. Waits for no other process.
    ///
    /// # Errors
    /// If the disk fails, or another process reads; nothing is lost then, the log stays.
    pub fn checkpoint(&mut self) -> Result<(), StoreError> {
        // By now, the log may belong to another database, and this file may have no name any more.
        self.reader.watch.check_now()?;
        if self.reader.run_checkpoint(TRUNCATE)? {
            Ok(())
        } else {
            Err(StoreError::Unavailable(
                Cause::Locked,
                "another process reads it".to_owned(),
            ))
        }
    }

    /// Checkpoints the write-ahead log as [`Writer::checkpoint`] does, and starts the next log, so that the next commit
    /// needs one flush and not two.
    ///
    /// # Errors
    /// Fails like [`Writer::checkpoint`].
    pub fn renew_log(&mut self) -> Result<(), StoreError> {
        self.checkpoint()?;
        // The first commit flushes the header of the log before its frames. If this one fails, the next commit does that.
        let started = self.rewrite_header().and(self.commit());
        if let Err(error) = started {
            log::debug!("the next write-ahead log begins with the next write: {error}");
        }
        Ok(())
    }

    /// Returns true if the write-ahead log is so long that a checkpoint costs little for each of its commits.
    pub fn has_long_log(&self) -> bool {
        self.frames.load(Relaxed) >= WORTH_A_CHECKPOINT
    }
}

impl Writer {
    /// Opens the transaction; `false` if another process has the lock.
    fn try_begin(&mut self) -> Result<bool, StoreError> {
        self.shorten_log();
        // IMMEDIATE takes the lock at once, so that no write can fail later because of it
        // (sqlite.org/lang_transaction.html).
        match self.run("BEGIN IMMEDIATE").map_err(StoreError::from) {
            Ok(()) => {
                self.state = BatchState::Open;
                if self.last_failed {
                    // SQLite reads the schema again, which another program may have mended. If this fails, the next
                    // statement reports it.
                    let _ = self.one::<i64>("SELECT count(*) FROM sqlite_schema");
                }
                Ok(true)
            }
            Err(StoreError::Unavailable(Cause::Locked, _)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Makes the batch fail if SQLite has ended its transaction: what it wrote before is undone.
    fn ensure_open(&mut self) -> Result<(), StoreError> {
        if self.is_in_transaction() {
            return Ok(());
        }
        let error = self.why_ended();
        Err(self.failed(error))
    }

    /// Runs a statement that writes within the batch's transaction, which the first one opens.
    pub(super) fn write<T>(
        &mut self,
        sql: &str,
        run: impl FnOnce(&mut Statement) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.open_transaction()?;
        let written = match self.statement(sql, true, run) {
            // The statements of petstore are tested: what fails is a trigger of another program, as with `json('{')`.
            Err(StoreError::Internal(detail)) if self.is_in_transaction() => {
                Err(StoreError::Rejected(detail))
            }
            written => written,
        };
        let is_unavailable = matches!(written, Err(StoreError::Unavailable(..)));
        // Changes that a statement has made before it fails may stay (`sqlite.org/lang_createtrigger.html#raise`).
        self.written += usize::from(!is_unavailable);
        // Otherwise, `ensure_open` finds out whether the statement has ended the transaction.
        written.map_err(|error| {
            if is_unavailable {
                self.failed(error)
            } else {
                error
            }
        })
    }

    /// Writes the first page as it is.
    fn rewrite_header(&mut self) -> Result<(), StoreError> {
        // From here on, no other process can change it.
        self.open_transaction()?;
        let version = self.one::<i64>("PRAGMA user_version")?;
        self.change(&format!("PRAGMA user_version = {version}"), &[])
            .map(drop)
    }

    /// Writes every page that a create writes, and a large pet, into the log, so that it grows. Nothing of the pets is
    /// committed, as triggers of other programs may have changed them.
    fn write_trial(&mut self) -> Result<(), StoreError> {
        let large = NewPet::new("x".repeat(LARGE_PET), 1);
        self.change("SAVEPOINT trial", &[])?;
        let inserted = self.statement(INSERT, true, |statement| {
            statement.insert(large.values()).map(drop)
        });
        // The pets, their indexes.
        let pets = if self.last_failed { 1000 } else { 10 };
        let tried = match inserted {
            Ok(()) | Err(StoreError::Rejected(_)) if self.is_in_transaction() => {
                self.write(REWRITE, |statement| statement.execute([pets]).map(drop))
            }
            inserted => inserted,
        };
        let flushed = self
            .flush_cache()
            .map_err(|error| self.failed(error.into()));
        if self.is_in_transaction() {
            // If this fails, the pet must not be committed.
            self.change("ROLLBACK TO trial", &[])
                .map_err(|error| self.failed(error))?;
            self.change("RELEASE trial", &[])?;
        } else {
            // RAISE(ROLLBACK), or a failure that comes again.
            self.undo();
        }
        match tried {
            // A rule of another program; the disk has nothing against it.
            Ok(()) | Err(StoreError::Rejected(_)) => flushed?,
            Err(error) => return Err(self.failed(error)),
        }
        self.rewrite_header()?;
        self.change("UPDATE sqlite_sequence SET seq = seq", &[])
            .map(drop)
    }

    /// The time by which records of retries age.
    fn retry_time(&mut self) -> Result<i64, StoreError> {
        let reader = &self.reader;
        self.retry_clock.now(|| {
            reader.read(idempotency::ENDS, |statement| {
                statement.query_row([], |row| row.try_into()).optional()
            })
        })
    }

    /// Removes some records that are old enough, within the open transaction.
    fn forget_retries(&mut self) -> Result<(), StoreError> {
        if self.recorded > 0 {
            let now = self.retry_time()?;
            if self.change(idempotency::CORRECT, params![now])? > 0 {
                log::warn!(
                    "records of Idempotency-Keys were of later than now; their 24 hours begin now"
                );
            }
            let (share, until) = (
                idempotency::share(self.recorded),
                now.saturating_sub(idempotency::KEPT),
            );
            self.change(idempotency::FORGET, params![share, until])?;
        }
        Ok(())
    }

    /// Makes the whole batch fail.
    fn failed(&mut self, error: StoreError) -> StoreError {
        self.state = BatchState::Failed(error.clone());
        error
    }

    /// Opens the transaction as soon as no other process has one. If the wait times out, the requests that arrived
    /// meanwhile do not wait again.
    fn wait_for_lock(&mut self) -> Result<(), StoreError> {
        let is_known = self.gave_up.is_some_and(|at| at.elapsed() < LOCK_IS_KNOWN);
        let timeout = if is_known {
            Duration::ZERO
        } else {
            self.busy_timeout
        };
        let began = Instant::now();
        while !self.try_begin()? {
            if began.elapsed() >= timeout {
                if !timeout.is_zero() {
                    self.gave_up = Some(Instant::now());
                }
                let detail = "another process did not release its lock on the database in time";
                return Err(StoreError::Unavailable(Cause::Locked, detail.to_owned()));
            }
            std::thread::sleep(RETRY);
        }
        Ok(())
    }

    fn finish(&mut self) -> Result<(), StoreError> {
        self.forget_retries()?;
        self.forget_changes()?;
        if self.written > 0 && !self.is_identified {
            self.change(IDENTIFY_LOG, &[])?;
        }
        self.ensure_open()?;
        self.run("COMMIT").map_err(|error| self.write_over(error))
    }

    /// Overwrites the frames that a failed commit may have left in the log: if they are whole and only their flush failed,
    /// the start after a crash would take them for a commit. Returns the failure of the commit. If the frames cannot be
    /// overwritten, because the disk fails or another process was faster, the outcome is unknown.
    fn write_over(&mut self, failed: rusqlite::Error) -> StoreError {
        self.roll_back();
        let over = self.run("BEGIN IMMEDIATE").map_err(StoreError::from);
        let over = over
            .and_then(|()| self.rewrite_header())
            .and_then(|()| Ok(self.run("COMMIT")?));
        self.roll_back();
        // The last frame marks the commit, so after a failed write there is none.
        let code = failed.sqlite_error().map(|failure| failure.extended_code);
        let may_be_whole = !matches!(code, Some(SQLITE_FULL | SQLITE_IOERR_WRITE));
        if over.is_err() && may_be_whole {
            return StoreError::Unavailable(Cause::Unknown, failed.to_string());
        }
        failed.into()
    }

    fn roll_back(&mut self) {
        if self.is_in_transaction()
            && let Err(error) = self.run("ROLLBACK")
        {
            // The next BEGIN will fail too, and its clients will learn why.
            log::error!("rollback failed: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Folder, all, names, new_pet, pair, refuse_writes};
    use super::*;

    #[test]
    fn batch_is_seen_by_readers_only_after_its_commit() {
        let (_folder, mut writer, mut reader) = pair();
        writer.begin().unwrap();
        writer.insert_pet(&new_pet("Rex"), None).unwrap();
        writer.insert_pet(&new_pet("Tom"), None).unwrap();
        assert_eq!(names(&mut reader), [""; 0]);
        writer.commit().unwrap();
        assert_eq!(names(&mut reader), ["Rex", "Tom"]);
    }

    fn insert_once(writer: &mut Writer, name: &str, key: &str) -> Outcome {
        let key = IdempotencyKey::new(crate::model::Caller::extra(), key.as_bytes());
        writer.insert_pet(&new_pet(name), Some(&key)).unwrap()
    }

    #[test]
    fn same_create_makes_one_pet_within_a_batch_and_later() {
        let (_folder, mut writer, mut reader) = pair();
        writer.begin().unwrap();
        let made = [("Rex", "1"), ("Rex", "1"), ("Rex", "2"), ("Tom", "1")]
            .map(|(name, key)| insert_once(&mut writer, name, key));
        let outcomes = [
            Outcome::Made(1),
            Outcome::Replayed(1),
            Outcome::Made(2),
            Outcome::Reused,
        ];
        assert_eq!(made, outcomes);
        writer.commit().unwrap();
        assert_eq!(insert_once(&mut writer, "Rex", "1"), Outcome::Replayed(1));
        writer.commit().unwrap();
        assert_eq!(names(&mut reader), ["Rex", "Rex"]);
    }

    #[test]
    fn record_of_a_create_that_is_undone_is_undone() {
        let (_folder, mut writer, mut reader) = pair();
        insert_once(&mut writer, "Rex", "1");
        writer.undo();
        assert_eq!(insert_once(&mut writer, "Tom", "1"), Outcome::Made(1));
        writer.commit().unwrap();
        assert_eq!(names(&mut reader), ["Tom"]);
    }

    #[test]
    fn records_are_removed_after_a_day_faster_than_they_are_added() {
        let (_folder, mut writer, _reader) = pair();
        for key in 0..10 {
            insert_once(&mut writer, "Rex", &key.to_string());
        }
        writer.commit().unwrap();
        let records = |writer: &Writer| all::<i64>(writer, "SELECT count(*) FROM retries")[0];
        let pass = |writer: &mut Writer, seconds: i64| {
            writer
                .change("UPDATE retries SET at = at - ?1", params![seconds])
                .unwrap();
            writer.commit().unwrap();
        };
        pass(&mut writer, idempotency::KEPT - 60);
        insert_once(&mut writer, "Tom", "a");
        insert_once(&mut writer, "Tom", "b");
        writer.commit().unwrap();
        assert_eq!(records(&writer), 12, "kept for a day");
        pass(&mut writer, 61);
        insert_once(&mut writer, "Tom", "c");
        insert_once(&mut writer, "Tom", "d");
        writer.commit().unwrap();
        assert_eq!(records(&writer), 14 - 4);
        pass(&mut writer, -3 * idempotency::KEPT);
        insert_once(&mut writer, "Tom", "e");
        writer.commit().unwrap();
        assert_eq!(
            records(&writer),
            10 + 1,
            "the clock was set back by days: a retry is still found"
        );
    }

    #[test]
    fn record_of_a_wrong_clock_keeps_no_others_and_a_start_under_one_removes_none() {
        let (folder, mut writer, _reader) = pair();
        let set = |writer: &mut Writer, sql: &str| {
            writer.change(sql, &[]).unwrap();
            writer.commit().unwrap();
        };
        let records = |writer: &Writer| all::<i64>(writer, "SELECT count(*) FROM retries")[0];
        for key in 0..10 {
            insert_once(&mut writer, "Rex", &key.to_string());
        }
        writer.commit().unwrap();
        // To a start, a clock that is years ahead looks like records that are years old.
        set(&mut writer, "UPDATE retries SET at = at - 1000000000");
        drop(writer);
        let mut writer = Writer::open(&folder.database()).unwrap();
        insert_once(&mut writer, "Tom", "a");
        writer.commit().unwrap();
        assert_eq!(records(&writer), 11);
        assert_eq!(insert_once(&mut writer, "Rex", "0"), Outcome::Replayed(1));
        writer.commit().unwrap();
        // The oldest two are of 2036, and a day passes for all.
        set(
            &mut writer,
            "UPDATE retries SET at = at + 1000000000 WHERE pet < 3",
        );
        insert_once(&mut writer, "Tom", "b");
        writer.commit().unwrap();
        assert_eq!(insert_once(&mut writer, "Rex", "0"), Outcome::Replayed(1));
        set(
            &mut writer,
            &format!("UPDATE retries SET at = at - {}", idempotency::KEPT + 1),
        );
        for key in 0..6 {
            insert_once(&mut writer, "Eve", &format!("c{key}"));
            writer.commit().unwrap();
        }
        assert_eq!(records(&writer), 6, "they do not pile up behind the two");
    }

    #[test]
    fn undone_batch_leaves_nothing() {
        let (_folder, mut writer, mut reader) = pair();
        writer.insert_pet(&new_pet("Rex"), None).unwrap();
        writer.undo();
        writer.insert_pet(&new_pet("Tom"), None).unwrap();
        writer.commit().unwrap();
        assert_eq!(names(&mut reader), ["Tom"]);
    }

    #[test]
    fn batch_that_sqlite_rolled_back_fails_whole() {
        let (_folder, mut writer, mut reader) = pair();
        writer.insert_pet(&new_pet("Rex"), None).unwrap();
        let refused =
            "INSERT OR ROLLBACK INTO pets (name, category_id, status) VALUES ('', 1, 'lost')";
        assert!(writer.change(refused, &[]).is_err());
        assert!(writer.insert_pet(&new_pet("Tom"), None).is_err());
        assert!(writer.commit().is_err());
        assert_eq!(names(&mut reader), [""; 0]);
    }

    #[test]
    fn batch_without_an_end_is_undone_by_the_next() {
        let (_folder, mut writer, mut reader) = pair();
        writer.begin().unwrap();
        writer.insert_pet(&new_pet("Rex"), None).unwrap();
        writer.begin().unwrap();
        writer.insert_pet(&new_pet("Tom"), None).unwrap();
        writer.commit().unwrap();
        assert_eq!(names(&mut reader), ["Tom"]);
    }

    #[test]
    fn batch_begins_with_the_lock_unless_another_process_has_it() {
        let (folder, mut writer, _reader) = pair();
        let other = rusqlite::Connection::open(folder.database()).unwrap();
        other.busy_timeout(Duration::ZERO).unwrap();
        writer.begin().unwrap();
        assert!(other.execute_batch("BEGIN IMMEDIATE").is_err());
        writer.commit().unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        writer.begin().unwrap();
        writer.commit().unwrap();
        writer.begin().unwrap();
        other.execute_batch("COMMIT").unwrap();
        writer.insert_pet(&new_pet("Rex"), None).unwrap();
        writer.commit().unwrap();
    }

    #[test]
    fn version_changes_with_every_commit_of_others() {
        let (_folder, mut writer, mut reader) = pair();
        let mut version = || {
            reader.begin().unwrap();
            let version = reader.data_version();
            // The snapshot and the version are of the same moment, whatever is committed in between.
            writer.insert_pet(&new_pet("Rex"), None).unwrap();
            writer.commit().unwrap();
            let seen = all::<i64>(&reader, "SELECT id FROM pets").len();
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
            reader.forget_data_version();
            assert!(
                reader.data_version() < 0,
                "versions that are read are positive"
            );
            assert!(seen.insert(reader.data_version()));
        }
    }

    #[test]
    fn failed_batch_is_undone_whole_and_the_next_starts_clean() {
        let (_folder, mut writer, mut reader) = pair();
        let pages: i64 = writer
            .raw()
            .pragma_query_value(None, "page_count", |r| r.get(0))
            .unwrap();
        // SQLite's way to simulate a full disk.
        writer
            .raw()
            .pragma_update(None, "max_page_count", pages)
            .unwrap();
        writer.insert_pet(&new_pet("small"), None).unwrap();
        let large = "x".repeat(60_000);
        assert!(matches!(
            writer.insert_pet(&new_pet(&large), None),
            Err(StoreError::Unavailable(..))
        ));
        assert!(matches!(
            writer.insert_pet(&new_pet("late"), None),
            Err(StoreError::Unavailable(..))
        ));
        assert!(matches!(writer.commit(), Err(StoreError::Unavailable(..))));
        assert_eq!(names(&mut reader), [""; 0]);

        writer
            .raw()
            .pragma_update(None, "max_page_count", 1_000_000)
            .unwrap();
        assert_eq!(writer.probe(), Ok(()));
        writer.insert_pet(&new_pet("next"), None).unwrap();
        writer.commit().unwrap();
        assert_eq!(names(&mut reader), ["next"]);
    }

    #[test]
    fn probe_after_a_failure_needs_room_on_the_disk() {
        let (_folder, mut writer, _reader) = pair();
        writer.insert_pet(&new_pet("Rex"), None).unwrap();
        writer.commit().unwrap();
        writer.last_failed = true;
        writer.begin().unwrap();
        writer.commit().unwrap();
        assert!(
            writer.last_failed,
            "a batch that writes nothing shows nothing"
        );
        refuse_writes(&writer, true);
        assert!(writer.probe().is_err(), "it writes");
        refuse_writes(&writer, false);
        assert_eq!(writer.probe(), Ok(()));
        assert!(!writer.last_failed, "the next need not write");
    }

    #[test]
    fn probe_commits_nothing_that_a_trigger_of_others_does() {
        let (folder, mut writer, mut reader) = pair();
        writer.insert_pet(&new_pet("Rex"), None).unwrap();
        writer.commit().unwrap();
        let other = rusqlite::Connection::open(folder.database()).unwrap();
        for does in [
            "DELETE FROM pets WHERE id = NEW.id",
            "SELECT json_extract('{', '$')",
            "SELECT RAISE(ROLLBACK, 'no')",
        ] {
            let sql = format!(
                "DROP TRIGGER IF EXISTS theirs; CREATE TRIGGER theirs AFTER UPDATE ON pets BEGIN {does}; END"
            );
            other.execute_batch(&sql).unwrap();
            for last_failed in [false, true] {
                (writer.has_written, writer.last_failed) = (false, last_failed);
                assert_eq!(writer.probe(), Ok(()), "{does}");
                assert_eq!(names(&mut reader), ["Rex"], "{does}");
            }
        }
    }

    #[test]
    fn batch_meets_the_lock_of_another_process_once() {
        let folder = Folder::new();
        let mut writer = Writer::open(&folder.database()).unwrap();
        writer.set_busy_timeout(Duration::ZERO);
        let other = rusqlite::Connection::open(folder.database()).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        assert!(matches!(writer.probe(), Err(StoreError::Unavailable(..))));
        assert!(matches!(
            writer.insert_pet(&new_pet("Rex"), None),
            Err(StoreError::Unavailable(..))
        ));
        other.execute_batch("ROLLBACK").unwrap();
        assert!(matches!(
            writer.insert_pet(&new_pet("late"), None),
            Err(StoreError::Unavailable(..))
        ));
        assert!(matches!(writer.commit(), Err(StoreError::Unavailable(..))));
        assert_eq!(writer.probe(), Ok(()));
    }

    #[test]
    fn one_wait_for_a_lock_serves_all_that_waited_behind_it() {
        let (folder, mut writer, mut reader) = pair();
        let other = rusqlite::Connection::open(folder.database()).unwrap();
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        writer.set_busy_timeout(Duration::ZERO);
        assert!(writer.probe().is_err());
        assert_eq!(
            writer.gave_up, None,
            "who did not wait has not found out for others"
        );
        writer.set_busy_timeout(Duration::from_millis(10));
        assert!(writer.probe().is_err());
        let gave_up = Some(Instant::now() + LOCK_IS_KNOWN);
        writer.gave_up = gave_up;
        assert!(writer.insert_pet(&new_pet("Rex"), None).is_err() && writer.commit().is_err());
        assert_eq!(writer.gave_up, gave_up, "it did not wait again");
        other.execute_batch("ROLLBACK").unwrap();
        writer.insert_pet(&new_pet("Tom"), None).unwrap();
        writer.commit().unwrap();
        assert_eq!(names(&mut reader), ["Tom"]);
    }

    #[test]
    fn adding_a_row_builds_no_table_in_memory() {
        let (_folder, writer, _reader) = pair();
        let mut program = writer
            .raw()
            .prepare(&format!("EXPLAIN {}", INSERT))
            .unwrap();
        let pet = new_pet("a");
        let steps: Vec<String> = program
            .query_map(pet.values(), |row| row.get("opcode"))
            .unwrap()
            .flatten()
            .collect();
        assert!(steps.iter().any(|step| step == "IdxInsert"), "{steps:?}");
        assert!(
            !steps.iter().any(|step| step == "OpenEphemeral"),
            "{steps:?}"
        );
    }
}
