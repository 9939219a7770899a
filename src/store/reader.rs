//! A connection that reads. Each file of statements adds its own to [`Reader`].

use std::ops::ControlFlow;

use rusqlite::types::FromSql;
use rusqlite::{Row, ToSql};

use super::StoreError;
use super::rows::Visit;
#[cfg(feature = "cluster")]
use super::rqlite::ClusterConnection;
use super::sqlite::FileConnection;

/// A connection of an engine, and the batch under way on it.
#[cfg_attr(
    feature = "cluster",
    expect(clippy::large_enum_variant, reason = "there is one for each worker")
)]
pub(super) enum Engine {
    File(FileConnection),
    #[cfg(feature = "cluster")]
    Cluster(Box<ClusterConnection>),
}

impl From<FileConnection> for Engine {
    fn from(connection: FileConnection) -> Self {
        Self::File(connection)
    }
}

#[cfg(feature = "cluster")]
impl From<ClusterConnection> for Engine {
    fn from(connection: ClusterConnection) -> Self {
        Self::Cluster(Box::new(connection))
    }
}

/// Does the same with the connection of any engine.
macro_rules! on_engine {
    ($engine:expr, $connection:ident => $work:expr) => {
        match $engine {
            Engine::File($connection) => $work,
            #[cfg(feature = "cluster")]
            Engine::Cluster($connection) => $work,
        }
    };
}
pub(super) use on_engine;

/// A connection that cannot write. Each reading worker has one.
pub struct Reader {
    pub(super) engine: Engine,
}

impl Reader {
    /// Hands the rows of a statement to `visit`, one after the other, until it breaks off.
    ///
    /// # Errors
    /// If the database cannot be read, or `visit` rejects a row.
    pub(super) fn rows(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
        visit: &mut Visit,
    ) -> Result<(), StoreError> {
        on_engine!(&self.engine, it => it.reader.rows(sql, values, visit))
    }

    /// The value that `read` makes of the first row of a statement; `None` if there is no row.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub(super) fn first<T>(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
        read: impl FnOnce(&Row) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        let mut read = Some(read);
        let mut found = None;
        self.rows(sql, values, &mut |row| {
            found = read.take().map(|read| read(row)).transpose()?;
            Ok(ControlFlow::Break(()))
        })?;
        Ok(found)
    }

    /// The first column of the only row.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub(super) fn one<T: FromSql>(&self, sql: &str) -> Result<T, StoreError> {
        let found = self.first(sql, &[], |row| row.get(0))?;
        Ok(found.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
    }

    /// Every row of a statement.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub(super) fn all<T>(
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
        on_engine!(&mut self.engine, it => it.reader.begin())
    }

    /// Releases the snapshot.
    ///
    /// # Errors
    /// If the connection is broken.
    pub fn end(&mut self) -> Result<(), StoreError> {
        on_engine!(&mut self.engine, it => it.reader.end())
    }

    /// Announces the pets that reads before [`Reader::end`] may ask for, for an engine that reads many at once faster.
    pub fn announce_pets(&self, ids: impl Iterator<Item = i64>) {
        on_engine!(&self.engine, it => it.reader.announce_pets(ids));
    }

    /// A number that changes if what callers cache by it may have changed, such as SQLite's `PRAGMA data_version`. The
    /// connection's own writes need not change it.
    pub fn data_version(&self) -> i64 {
        on_engine!(&self.engine, it => it.reader.data_version())
    }

    /// Checks that the path still leads to the database that was opened. Nobody can move that of a cluster.
    ///
    /// # Errors
    /// If it does not, or cannot be read.
    pub fn check_path(&mut self) -> Result<(), StoreError> {
        on_engine!(&mut self.engine, it => it.reader.check_path())
    }
}
