//! A connection that reads: its statements and its snapshots. Each file of statements adds its own to [`Reader`].

use std::cell::Cell;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::SystemTime;

use rusqlite::config::DbConfig;
use rusqlite::types::FromSql;
use rusqlite::{Connection, Row, Statement, ToSql};

use super::open_file::OpenFile;
use super::watch::Watch;
use super::{StoreError, schema};
use crate::store::rows::Visit;

/// A connection that cannot write. Each reading worker has one.
pub struct Reader {
    connection: Connection,
    /// The failure of the statement at which SQLite ended the transaction.
    ended_by: Cell<Option<StoreError>>,
    /// Its handle of the file is closed after the connection.
    pub(super) watch: Watch,
    /// `PRAGMA data_version` at the start of the batch under way.
    data_version: i64,
    /// The last stand-in for an unknown version. It only decreases, so that no two batches share one.
    unread_data_versions: i64,
}

impl Reader {
    /// The connection, for everything except the statements of a batch: settings, checkpoints, and copies of the whole
    /// database.
    pub(super) fn raw(&self) -> &Connection {
        &self.connection
    }

    #[cfg(test)]
    pub fn raw_mut(&mut self) -> &mut Connection {
        &mut self.connection
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
        Self {
            connection,
            ended_by: Cell::default(),
            watch,
            data_version: 0,
            unread_data_versions: 0,
        }
    }

    /// Runs a statement that only reads.
    ///
    /// # Errors
    /// Fails like [`Reader::statement`].
    pub(super) fn read<T>(
        &self,
        sql: &str,
        run: impl FnOnce(&mut Statement) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.statement(sql, false, run)
    }

    /// Runs a statement. All statements of a batch run here.
    ///
    /// After some failures, SQLite rolls the whole transaction back by itself
    /// (`sqlite.org/lang_transaction.html#response_to_errors_within_a_transaction`). Even a statement that only reads can fail
    /// in this way: to make room for a page, it may have to write changed pages of the cache to a full disk.
    ///
    /// # Errors
    /// If the statement fails, or the file was moved or deleted.
    ///
    /// # Panics
    /// In debug builds, if the statement would write and must not, or would write outside a transaction, where it would be
    /// committed on its own. A release build refuses it.
    pub(super) fn statement<T>(
        &self,
        sql: &str,
        may_write: bool,
        run: impl FnOnce(&mut Statement) -> rusqlite::Result<T>,
    ) -> Result<T, StoreError> {
        self.watch.result()?;
        let was_in_transaction = self.is_in_transaction();
        let mut statement = self.connection.prepare_cached(sql)?;
        let is_allowed = statement.readonly() || may_write && was_in_transaction;
        debug_assert!(is_allowed, "outside a transaction of the writer: {sql}");
        if !is_allowed {
            return Err(StoreError::Internal(format!(
                "outside a transaction of the writer: {sql}"
            )));
        }
        let done = run(&mut statement).map_err(StoreError::from);
        if was_in_transaction && !self.is_in_transaction() {
            self.ended_by.set(done.as_ref().err().cloned());
        }
        done
    }

    /// Writes the changed pages of the cache into the log.
    pub(super) fn flush_cache(&self) -> rusqlite::Result<()> {
        self.connection.cache_flush()
    }

    /// Returns whether a transaction is open. Any statement may have ended it.
    pub(super) fn is_in_transaction(&self) -> bool {
        !self.connection.is_autocommit()
    }

    /// The reason why SQLite has ended the transaction by itself.
    pub(super) fn why_ended(&self) -> StoreError {
        let unknown = || StoreError::Internal("SQLite has ended the transaction".to_owned());
        self.ended_by.take().unwrap_or_else(unknown)
    }

    /// Takes a version that no batch had, as nothing is known to be unchanged. Those of SQLite are positive.
    pub(super) fn forget_data_version(&mut self) {
        self.unread_data_versions -= 1;
        self.data_version = self.unread_data_versions;
    }

    /// Begins or ends a transaction.
    pub(super) fn run(&self, statement: &str) -> rusqlite::Result<()> {
        self.ended_by.take();
        self.connection
            .prepare_cached(statement)?
            .execute([])
            .map(drop)
    }

    pub(super) fn read_data_version(&mut self) -> Result<(), StoreError> {
        self.data_version = self.one("PRAGMA data_version")?;
        Ok(())
    }

    /// Has SQLite leave the log as it is when it closes the database. Otherwise it would run a checkpoint.
    pub(super) fn keep_log(&self) {
        let kept = DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE;
        let _ = self.connection.set_db_config(kept, true);
    }

    /// Hands the rows of a statement to `visit`, one after the other, until it breaks off.
    ///
    /// # Errors
    /// If the database cannot be read, or `visit` rejects a row.
    pub(in crate::store) fn rows(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
        visit: &mut Visit,
    ) -> Result<(), StoreError> {
        self.read(sql, |statement| {
            let mut rows = statement.query(values)?;
            while let Some(row) = rows.next()? {
                if visit(row)?.is_break() {
                    break;
                }
            }
            Ok(())
        })
    }

    /// The value that `read` makes of the first row of a statement; `None` if there is no row.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub(in crate::store) fn first<T>(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
        read: impl FnOnce(&Row) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        self.read(sql, |statement| {
            statement.query(values)?.next()?.map(read).transpose()
        })
    }

    /// The first column of the only row.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub(in crate::store) fn one<T: FromSql>(&self, sql: &str) -> Result<T, StoreError> {
        self.read(sql, |statement| statement.query_one([], |row| row.get(0)))
    }

    /// Every row of a statement.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub(in crate::store) fn all<T>(
        &self,
        sql: &str,
        mut read: impl FnMut(&Row) -> rusqlite::Result<T>,
    ) -> Result<Vec<T>, StoreError> {
        let mut all = Vec::new();
        self.rows(sql, &[], &mut |row| {
            all.push(read(row)?);
            Ok(ControlFlow::Continue(()))
        })?;
        Ok(all)
    }

    /// Takes a snapshot. All reads before [`Reader::end`] see this one moment or a later one, and everything that
    /// was acknowledged before.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn begin(&mut self) -> Result<(), StoreError> {
        self.forget_data_version();
        self.watch.check()?;
        self.run("BEGIN")?;
        // This read takes the snapshot; BEGIN alone does not.
        self.read_data_version()
    }

    /// Releases the snapshot.
    ///
    /// # Errors
    /// If the connection is broken.
    pub fn end(&self) -> Result<(), StoreError> {
        if self.is_in_transaction() {
            Ok(self.run("ROLLBACK")?)
        } else {
            Ok(())
        }
    }

    /// `PRAGMA data_version` at the beginning of the batch, for caches: it is another number after a commit of another
    /// connection. A commit of this one need not change it.
    pub fn data_version(&self) -> i64 {
        self.data_version
    }

    /// Checks that the path still leads to the database that was opened.
    ///
    /// # Errors
    /// If it does not, or cannot be read.
    pub fn check_path(&mut self) -> Result<(), StoreError> {
        self.watch.check_now()
    }
}
