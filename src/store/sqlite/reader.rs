//! The reading part of a connection: its statements and its snapshots.

use std::path::Path;
use std::time::SystemTime;

use rusqlite::{Connection, ToSql};

use super::open_file::OpenFile;
use super::watch::Watch;
use super::{StoreError, schema};
use crate::store::rows::{Visit, visit_rows};

/// The reading part of a connection.
pub struct FileReader {
    connection: Connection,
    /// Its handle of the file is closed after the connection.
    pub(super) watch: Watch,
    /// `PRAGMA data_version` at the start of the batch under way.
    data_version: i64,
    /// The last stand-in for an unknown version. It only decreases, so that no two batches share one.
    unread_data_versions: i64,
}

impl FileReader {
    /// The connection, for all that is no statement of a batch: settings, checkpoints and copies of the whole database.
    pub(super) fn raw(&self) -> &Connection {
        &self.connection
    }

    #[cfg(test)]
    pub fn raw_mut(&mut self) -> &mut Connection {
        &mut self.connection
    }

    pub fn interrupt_handle(&self) -> rusqlite::InterruptHandle {
        self.connection.get_interrupt_handle()
    }

    /// A connection that has read the database, so that all its files are open. `unlocked_since` is the time of the last
    /// write to the file, if no lock keeps others from writing.
    pub(super) fn new(
        path: &Path,
        connection: Connection,
        file: OpenFile,
        unlocked_since: Option<SystemTime>,
    ) -> Self {
        let identity = schema::identity(&connection).ok().flatten();
        let watch = Watch::new(path, file, unlocked_since, identity);
        Self { connection, watch, data_version: 0, unread_data_versions: 0 }
    }

    /// The connection, as long as its file is still the database.
    ///
    /// # Errors
    /// If the file was moved or deleted.
    pub(super) fn connection(&self) -> Result<&Connection, StoreError> {
        self.watch.result()?;
        Ok(&self.connection)
    }

    /// Takes a version that no batch had, as nothing is known to be unchanged. Those of SQLite are positive.
    pub(super) fn forget_data_version(&mut self) {
        self.unread_data_versions -= 1;
        self.data_version = self.unread_data_versions;
    }

    /// Ends a transaction that has written nothing, if one is open.
    pub fn end(&self) -> Result<(), StoreError> {
        if self.connection.is_autocommit() { Ok(()) } else { self.run("COMMIT") }
    }

    pub(super) fn run(&self, statement: &str) -> Result<(), StoreError> {
        self.connection.prepare_cached(statement)?.execute([])?;
        Ok(())
    }

    pub(super) fn read_data_version(&mut self) -> Result<(), StoreError> {
        self.data_version = self.current_data_version()?;
        Ok(())
    }

    pub(super) fn current_data_version(&self) -> Result<i64, StoreError> {
        Ok(self.connection.prepare_cached("PRAGMA data_version")?.query_row([], |row| row.get(0))?)
    }

    // The methods of `Reader`, which describes them.

    pub fn rows(&self, sql: &str, values: &[&dyn ToSql], visit: &mut Visit) -> Result<(), StoreError> {
        let mut statement = self.connection()?.prepare_cached(sql)?;
        Ok(visit_rows(&mut statement, values, visit)?)
    }

    pub fn begin(&mut self) -> Result<(), StoreError> {
        self.forget_data_version();
        self.watch.check()?;
        self.run("BEGIN")?;
        // This read takes the snapshot; BEGIN alone does not.
        self.read_data_version()
    }

    /// Many reads at once are no faster here.
    pub fn announce_pets(&self, _: impl Iterator<Item = i64>) {}

    pub fn data_version(&self) -> i64 {
        self.data_version
    }

    pub fn check_path(&mut self) -> Result<(), StoreError> {
        self.watch.check_now()
    }
}
