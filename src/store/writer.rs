//! The connection that writes. Each file of statements adds its own to [`Writer`].

use std::ops::Deref;
use std::time::{Duration, Instant};

use rusqlite::ToSql;

use super::StoreError;
use super::outcome::{Committed, Inserted};
use super::reader::{Engine, Reader, on_engine};
use crate::model::{IdempotencyKey, NewPet};

/// The time for which work that conflicts with other instances of a cluster is repeated.
pub const CONTENDS_FOR: Duration = Duration::from_secs(4);

/// The connection that writes, and the batch under way on it. It reads too, but takes no snapshots.
pub struct Writer {
    pub(super) reader: Reader,
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
    pub(super) fn new(engine: Engine) -> Self {
        Self {
            reader: Reader { engine },
        }
    }

    /// Starts a batch, if possible with its transaction. If another process has the lock, the first write waits for it.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn begin(&mut self) -> Result<(), StoreError> {
        on_engine!(&mut self.reader.engine, it => it.begin())
    }

    /// The number of writes in the batch so far, so that callers know whether a request has written.
    pub fn written(&self) -> usize {
        on_engine!(&self.reader.engine, it => it.written())
    }

    /// Returns whether the engine carries out the writes of a batch only at the commit, so that reads do not see them.
    pub fn is_deferred(&self) -> bool {
        !matches!(self.reader.engine, Engine::File(_))
    }

    /// Opens the transaction if it is not open yet. On a file, no other process can write until it ends. On a cluster,
    /// [`Writer::commit`] fails with `Conflict` if another instance has meanwhile changed anything but added pets.
    ///
    /// # Errors
    /// If another process keeps its lock, or the database cannot be written.
    pub fn open_transaction(&mut self) -> Result<(), StoreError> {
        on_engine!(&mut self.reader.engine, it => it.open_transaction())
    }

    /// Adds a pet to the batch, unless a create with this key was carried out before.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn insert_pet(
        &mut self,
        new: &NewPet,
        key: Option<&IdempotencyKey>,
    ) -> Result<Inserted, StoreError> {
        on_engine!(&mut self.reader.engine, it => it.insert_pet(new, key))
    }

    /// Runs a statement within the batch, and returns how many rows it changed. On a cluster, it returns 1 for a large
    /// table, however many were changed.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub(super) fn change(&mut self, sql: &str, values: &[&dyn ToSql]) -> Result<usize, StoreError> {
        on_engine!(&mut self.reader.engine, it => it.change(sql, values))
    }

    /// Ends the batch. If this returns `Ok`, everything is on disk. Otherwise everything is undone, or the outcome is unknown.
    ///
    /// # Errors
    /// If the commit, or a write before it, failed. [`Cause::Unknown`](super::Cause::Unknown) if the batch may have been
    /// carried out. On a cluster also `Conflict`, if another instance was faster.
    pub fn commit(&mut self) -> Result<Committed, StoreError> {
        on_engine!(&mut self.reader.engine, it => it.commit())
    }

    /// Undoes the batch.
    pub fn undo(&mut self) {
        on_engine!(&mut self.reader.engine, it => it.undo());
    }

    /// Checks, between batches, that the writer can write.
    ///
    /// # Errors
    /// If it could not.
    pub fn probe(&mut self) -> Result<(), StoreError> {
        on_engine!(&mut self.reader.engine, it => it.probe())
    }

    /// Sets how long batches wait for the lock of another process.
    pub fn set_busy_timeout(&mut self, timeout: Duration) {
        on_engine!(&mut self.reader.engine, it => it.set_busy_timeout(timeout));
    }

    /// Checkpoints the whole write-ahead log, and empties it. Waits for no other process. A cluster has its own log.
    ///
    /// # Errors
    /// If the disk fails, or another process reads; nothing is lost then, the log stays.
    pub fn checkpoint(&mut self) -> Result<(), StoreError> {
        on_engine!(&mut self.reader.engine, it => it.checkpoint())
    }

    /// Checkpoints the write-ahead log as [`Writer::checkpoint`] does, and starts the next log, so that the next commit
    /// needs one flush and not two.
    ///
    /// # Errors
    /// Fails like [`Writer::checkpoint`].
    pub fn renew_log(&mut self) -> Result<(), StoreError> {
        on_engine!(&mut self.reader.engine, it => it.renew_log())
    }

    /// Returns true if the write-ahead log is so long that a checkpoint costs little for each of its commits.
    pub fn has_long_log(&self) -> bool {
        on_engine!(&self.reader.engine, it => it.has_long_log())
    }

    /// Saves a database whose file was deleted or replaced. Returns false as long as only this process has it.
    pub fn rescue(&mut self) -> bool {
        on_engine!(&mut self.reader.engine, it => it.rescue())
    }

    /// Checks that the path still leads to the database that was opened. Nobody can move that of a cluster.
    ///
    /// # Errors
    /// If it does not, or cannot be read.
    pub fn check_path(&mut self) -> Result<(), StoreError> {
        self.reader.check_path()
    }

    /// Runs reads and writes in one transaction: afterwards all of it is on disk, or nothing has changed.
    ///
    /// # Errors
    /// The error of the work, or if the database cannot be written. On a cluster also `Conflict`, if another instance
    /// has meanwhile changed what may have been read.
    pub fn transact_once<T, E: From<StoreError>>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let done = self.attempt(work)?;
        self.commit_whole()?;
        Ok(done)
    }

    /// Runs reads and writes in one transaction, as [`Writer::transact_once`] does. Repeats the work if another instance
    /// of a cluster has changed what may have been read.
    ///
    /// # Errors
    /// The error of the work, or if the database cannot be written.
    pub fn transact<T, E: From<StoreError>>(
        &mut self,
        mut work: impl FnMut(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let start = Instant::now();
        loop {
            let done = self.attempt(&mut work)?;
            match self.commit_whole() {
                Err(error) if error.is_conflict() && start.elapsed() < CONTENDS_FOR => {}
                committed => return Ok(committed.map(|_| done)?),
            }
        }
    }

    /// Commits the batch, or nothing of it if a pet was changed since it was read.
    fn commit_whole(&mut self) -> Result<Committed, StoreError> {
        on_engine!(&mut self.reader.engine, it => it.commit_whole())
    }

    /// Runs work in a transaction that is not committed yet, and undoes it if it fails.
    fn attempt<T, E: From<StoreError>>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        // Work that panicked has left its transaction open.
        self.undo();
        let opened = self
            .check_path()
            .and_then(|()| self.open_transaction())
            .map_err(E::from);
        opened
            .and_then(|()| work(self))
            .inspect_err(|_| self.undo())
    }
}
