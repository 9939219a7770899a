//! What an engine of the store does. The statements, and everything above the store, know no more of it than this.

use std::borrow::Cow;
use std::ops::{ControlFlow, Deref};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rusqlite::ToSql;
use rusqlite::types::{FromSql, FromSqlResult, ValueRef};

use super::StoreError;
use crate::model::{IdempotencyKey, NewPet};

/// What can be read with one connection.
pub trait Reads {
    /// Hands the rows of a statement to `visit`, one after the other, until it breaks off.
    ///
    /// # Errors
    /// If the database cannot be read, or `visit` refuses a row.
    fn rows(&self, sql: &str, values: &[&dyn ToSql], visit: &mut Visit) -> Result<(), StoreError>;

    /// A number that changes if what callers cache by it may have changed, such as SQLite's `PRAGMA data_version`. The
    /// connection's own writes need not change it.
    fn data_version(&self) -> i64;

    /// Looks whether the database is still the one that was opened. What a cluster has, nobody can move.
    ///
    /// # Errors
    /// If it is not, or cannot be read.
    fn look(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

/// What can be read, with any connection: each file of statements adds its own.
pub type Database = dyn Reads;

/// A connection that cannot write. Each reading worker has one.
pub type Reader = dyn Snapshots;

/// The connection that writes, and the batch under way on it: each file of statements adds its own.
pub type Writer = dyn Writes;

/// Gets the rows of a statement.
pub type Visit<'v> = dyn FnMut(&Row) -> rusqlite::Result<ControlFlow<()>> + 'v;

/// A row of a result, whichever engine it is of.
pub enum Row<'r> {
    /// It lies in SQLite's memory.
    Sqlite(&'r rusqlite::Row<'r>),
    /// It has come from elsewhere.
    Values(&'r [ValueRef<'r>]),
}

impl<'r> Row<'r> {
    /// A column as it is.
    pub fn value(&self, column: usize) -> rusqlite::Result<ValueRef<'r>> {
        match self {
            Self::Sqlite(row) => row.get_ref(column),
            Self::Values(values) => {
                values.get(column).copied().ok_or(rusqlite::Error::InvalidColumnIndex(column))
            }
        }
    }

    /// A column as a value of this type.
    pub fn get<T: FromSql>(&self, column: usize) -> rusqlite::Result<T> {
        let value = self.value(column)?;
        T::column_result(value).map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(column, value.data_type(), Box::new(error))
        })
    }

    /// A column as text, borrowed if it is UTF-8.
    pub fn text(&self, column: usize) -> rusqlite::Result<Cow<'r, str>> {
        let value = self.value(column)?;
        let is_text = value.as_str().map(Cow::Borrowed);
        Ok(is_text.or_else(|_| AnyText::column_result(value).map(|text| Cow::Owned(text.0)))?)
    }

    /// A column as text; `None` if it is null.
    pub fn text_or_null(&self, column: usize) -> rusqlite::Result<Option<String>> {
        Ok(self.get::<Option<AnyText>>(column)?.map(|text| text.0))
    }

    /// A column as a number; `None` if it is anything else.
    pub fn integer(&self, column: usize) -> rusqlite::Result<Option<i64>> {
        Ok(self.value(column)?.as_i64().ok())
    }
}

/// A value as text, whatever it is. Other programs write too, and SQLite does not check text: what is not UTF-8 becomes
/// U+FFFD.
pub struct AnyText(pub String);

impl FromSql for AnyText {
    fn column_result(value: ValueRef) -> FromSqlResult<Self> {
        Ok(Self(match value {
            ValueRef::Text(bytes) | ValueRef::Blob(bytes) => String::from_utf8_lossy(bytes).into_owned(),
            ValueRef::Integer(number) => number.to_string(),
            ValueRef::Real(number) => number.to_string(),
            ValueRef::Null => String::new(),
        }))
    }
}

impl dyn Reads {
    /// The first row of a statement, made a value by `read`; `None` if there is no row.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub(super) fn first<T>(
        &self,
        sql: &str,
        values: &[&dyn ToSql],
        read: impl FnOnce(&Row) -> rusqlite::Result<T>,
    ) -> Result<Option<T>, StoreError> {
        let (mut read, mut found) = (Some(read), None);
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
}

/// The most reads that are put off: few enough that their rows fit into one response (`MOST_BYTES` of the client), even
/// if each has a name of 64 KiB.
pub const MOST_PUT_OFF: usize = 128;

/// A connection that cannot write.
pub trait Snapshots: Reads + Send {
    /// Takes a snapshot. All reads before [`Snapshots::end`] see this one moment or a later one, and everything that
    /// was acknowledged before.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn begin(&mut self) -> Result<(), StoreError>;

    /// Releases the snapshot.
    ///
    /// # Errors
    /// If the connection is broken.
    fn end(&mut self) -> Result<(), StoreError>;

    /// Puts off reads of single rows until [`Snapshots::read_put_off`], if the engine reads many at once faster.
    /// Each fails with `PutOff` until then, and the caller asks again, at the latest after [`MOST_PUT_OFF`] of them.
    fn put_off(&mut self) {}

    /// Reads what was put off, so that asking again succeeds.
    fn read_put_off(&mut self) {}
}

/// The connection that writes, and the batch under way on it.
pub trait Writes: Reads + Send {
    /// Starts a batch, if possible with its transaction. If another process has the lock, the first write waits for it.
    /// On a cluster it may start without a request.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn begin(&mut self) -> Result<(), StoreError>;

    /// How many writes the batch has so far, so that callers know whether a request has written.
    fn written(&self) -> usize;

    /// Opens the transaction if it is not open yet. On a file, no other process can write until it ends. On a cluster,
    /// [`Writes::commit`] fails with `Conflict` if another instance has meanwhile changed anything but added pets.
    ///
    /// # Errors
    /// If another process keeps its lock, or the database cannot be written.
    fn open_transaction(&mut self) -> Result<(), StoreError>;

    /// Adds a pet to the batch, unless a create with this key was carried out before.
    ///
    /// # Errors
    /// If the database cannot be written.
    fn insert_pet(&mut self, new: &NewPet, key: Option<&IdempotencyKey>) -> Result<Inserted, StoreError>;

    /// Runs a statement within the batch, and returns how many rows it changed. On a cluster, it returns 1 for a large
    /// table, whatever was changed.
    ///
    /// # Errors
    /// If the database cannot be written.
    fn change(&mut self, sql: &str, values: &[&dyn ToSql]) -> Result<usize, StoreError>;

    /// Ends the batch. If this returns `Ok`, everything is on disk; otherwise everything is undone.
    ///
    /// # Errors
    /// If the commit, or a write before it, failed. On a cluster also `Conflict`, if another instance was faster or a
    /// restore is under way, and `Unknown`, if the cluster did not answer and may have carried out the batch.
    fn commit(&mut self) -> Result<Committed, StoreError>;

    /// Undoes the batch.
    fn undo(&mut self);

    /// Checks, between batches, that the writer can write.
    ///
    /// # Errors
    /// If it could not.
    fn probe(&mut self) -> Result<(), StoreError>;

    /// Sets how long batches wait for the lock of another process.
    fn be_patient(&mut self, patience: Duration);

    /// Moves everything that the log holds, and empties the log. Waits for no other process. A cluster has its own log.
    ///
    /// # Errors
    /// If the disk fails, or another process reads; nothing is lost then, the log stays.
    fn checkpoint(&mut self) -> Result<(), StoreError> {
        Ok(())
    }
}

impl Deref for dyn Snapshots {
    type Target = Database;

    fn deref(&self) -> &Database {
        self
    }
}

impl Deref for dyn Writes {
    type Target = Database;

    fn deref(&self) -> &Database {
        self
    }
}

/// The requests to one host of a cluster.
#[derive(Clone, Debug)]
pub struct HostMeter {
    /// Such as `one:4001`.
    pub host: String,
    /// Requests to it.
    pub requests: u64,
    /// Requests that failed, refusals included.
    pub failures: u64,
    /// How long all of them took.
    pub duration: Duration,
}

/// A database that a service has open. The fields drop in their order: connections before the claim.
pub struct OpenStore {
    /// The connection for requests that write.
    pub writer: WriteAccess,
    /// The connections that read.
    pub readers: Vec<Box<Reader>>,
    /// The most requests that a reader is worth being sent at once, because they share what a batch costs.
    pub reads_at_once: usize,
    /// Keeps other services that write away, as long as it is not dropped.
    pub claim: Option<Box<dyn Send>>,
    /// What it is, for the log: such as `existing database /var/lib/petstore/petstore.db`.
    pub about: String,
}

/// Whether a service writes to its database.
pub enum WriteAccess {
    /// It does, with this connection.
    Writes(Box<Writer>),
    /// It only reads. This connection finds the keys of requests that want to write.
    Refused(Box<Reader>),
}

/// A database in one file of this machine: the file itself, or a temporary copy of a cluster's, deleted on drop.
pub struct Whole {
    pub(super) path: PathBuf,
    /// The folder that is deleted on drop.
    pub(super) folder: Option<PathBuf>,
}

impl Deref for Whole {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// How long a transaction that conflicts with other instances of a cluster is done again.
pub const CONTENDS_FOR: Duration = Duration::from_secs(4);

impl dyn Writes {
    /// Runs reads and writes in one transaction: afterwards all of it is on disk, or nothing has changed. Repeats the
    /// work if another instance of a cluster has changed what it read.
    ///
    /// # Errors
    /// The error of the work, or if the database cannot be written.
    pub fn transact<T, E: From<StoreError>>(
        &mut self,
        mut work: impl FnMut(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        let start = Instant::now();
        loop {
            let opened = self.open_transaction().map_err(E::from);
            match opened.and_then(|()| work(self)) {
                Ok(done) => match self.commit() {
                    Err(error) if error.is_conflict() && start.elapsed() < CONTENDS_FOR => {}
                    committed => return Ok(committed.map(|_| done)?),
                },
                Err(error) => {
                    self.undo();
                    return Err(error);
                }
            }
        }
    }
}

/// Proof that a batch is on disk. Only a commit makes one, so that nothing can be acknowledged earlier.
#[derive(Debug, Default, PartialEq)]
pub struct Committed {
    /// The outcomes of [`Inserted::Later`], in order.
    pub(super) done: Vec<Result<Outcome, StoreError>>,
}

/// A pet that waits for the commit.
#[derive(Debug, PartialEq)]
pub enum Inserted {
    /// The engine knows its outcome already.
    Now(Outcome),
    /// The engine will know it: the place among the creates of the batch.
    Later(usize),
}

/// What a create came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Outcome {
    /// The pet with this id was added.
    Made(i64),
    /// The same create was carried out before, or earlier in this batch, and added this pet.
    Replayed(i64),
    /// Another create was carried out with the same key.
    Reused,
}

impl Inserted {
    /// What became of the create, which is valid only once its batch is committed.
    ///
    /// # Errors
    /// If this create of the batch was refused; the others are not affected.
    pub fn outcome(&self, committed: &Committed) -> Result<Outcome, StoreError> {
        match self {
            Self::Now(outcome) => Ok(*outcome),
            Self::Later(place) => committed.done[*place].clone(),
        }
    }

    /// The id, for tests.
    #[cfg(test)]
    pub fn id(&self, committed: &Committed) -> i64 {
        match self.outcome(committed) {
            Ok(Outcome::Made(id) | Outcome::Replayed(id)) => id,
            other => panic!("{other:?}"),
        }
    }
}
