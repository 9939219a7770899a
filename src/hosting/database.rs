//! What hosting asks of the connections to the database, which are not its own.

use std::borrow::Cow;
use std::time::Duration;

use crate::config::Hosting;
use petstore_base::error::Error;

/// A value for a parameter of a statement.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Value<'v> {
    /// NULL.
    Null,
    /// An integer.
    Integer(i64),
    /// A text.
    Text(&'v str),
    /// A blob.
    Bytes(&'v [u8]),
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Self::Integer(number)
    }
}

impl<'v> From<&'v str> for Value<'v> {
    fn from(text: &'v str) -> Self {
        Self::Text(text)
    }
}

impl<'v> From<&'v String> for Value<'v> {
    fn from(text: &'v String) -> Self {
        Self::Text(text)
    }
}

impl<'v> From<&'v Vec<u8>> for Value<'v> {
    fn from(bytes: &'v Vec<u8>) -> Self {
        Self::Bytes(bytes)
    }
}

impl<'v, T: Into<Self>> From<Option<T>> for Value<'v> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A row of a result. Other programs write too, so that a column may have a value of any type.
pub trait Row {
    /// A column as a number; `None` if it is none.
    fn integer(&self, column: usize) -> Option<i64>;
    /// A column as text, in which U+FFFD stands for what is not UTF-8; `None` if it is NULL.
    fn text(&self, column: usize) -> Option<Cow<'_, str>>;
    /// A column as bytes; none if it is neither a text nor a blob.
    fn bytes(&self, column: usize) -> &[u8];
}

/// A connection that reads. An error has that of the connection as its source.
pub trait Reads {
    /// Hands each row of a statement to `visit`.
    ///
    /// # Errors
    /// If the database cannot be read.
    fn visit(
        &self,
        sql: &str,
        values: &[Value],
        visit: &mut dyn FnMut(&dyn Row),
    ) -> Result<(), Error>;

    /// A number that changes with each commit of another connection (`PRAGMA data_version`).
    fn version(&self) -> i64;
}

/// A connection that writes.
pub trait Writes: Reads + Sized + Send + 'static {
    /// The configuration that names the database.
    type Config;

    /// Opens the database, which must exist, and returns the settings of hosting.
    ///
    /// # Errors
    /// If it does not exist or cannot be opened.
    fn open_project(config: &Self::Config) -> Result<(Self, Hosting), Error>;

    /// Returns whether a path belongs to the service, so that no file can be published there.
    fn is_built_in(path: &str) -> bool;

    /// Runs a statement that writes, within [`Writes::within_transaction`]. Returns the number of changed rows.
    ///
    /// # Errors
    /// If the database cannot be written.
    fn write(&mut self, sql: &str, values: &[Value]) -> Result<usize, Error>;

    /// Runs reads and writes in one transaction: afterwards all of it is on disk, or nothing has changed.
    ///
    /// # Errors
    /// The error of the work, or if the database cannot be written.
    fn within_transaction<T, E: From<Error>>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E>;

    /// Sets the time to wait for a lock.
    fn set_patience(&mut self, patience: Duration);
}
