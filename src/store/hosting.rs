//! Implements what hosting asks of the connections. Hosting sees an [`Error`] whose source is the [`StoreError`].

use std::borrow::Cow;
use std::error::Error as _;
use std::ops::ControlFlow;

use rusqlite::ToSql;
use rusqlite::types::{ToSqlOutput, ValueRef};

use super::rows::{integer, text_or_null};
use super::{Reader, StoreError, Writer};
use petstore_base::error::Error;
use petstore_hosting::{Reads, Row, Value};

impl StoreError {
    /// The source of an error that hosting has seen.
    pub fn of_hosting(error: Error) -> Self {
        let own = error
            .source()
            .and_then(|source| source.downcast_ref::<Self>());
        own.cloned()
            .unwrap_or_else(|| Self::Internal(error.to_string()))
    }
}

/// A row of SQLite.
struct Columns<'r>(&'r rusqlite::Row<'r>);

impl Row for Columns<'_> {
    fn integer(&self, column: usize) -> Option<i64> {
        integer(self.0, column).ok().flatten()
    }

    fn text(&self, column: usize) -> Option<Cow<'_, str>> {
        Some(text_or_null(self.0, column).ok().flatten()?.into())
    }

    fn bytes(&self, column: usize) -> &[u8] {
        let value = self.0.get_ref(column).ok();
        value
            .and_then(|value| value.as_bytes_or_null().ok().flatten())
            .unwrap_or_default()
    }
}

/// The values as SQLite takes them.
pub fn bound<'v>(values: &'v [Value]) -> Vec<ToSqlOutput<'v>> {
    let value = |value: &Value<'v>| {
        ToSqlOutput::Borrowed(match *value {
            Value::Null => ValueRef::Null,
            Value::Integer(number) => ValueRef::Integer(number),
            Value::Text(text) => ValueRef::Text(text.as_bytes()),
            Value::Bytes(bytes) => ValueRef::Blob(bytes),
        })
    };
    values.iter().map(value).collect()
}

/// References to the values.
pub fn parameters<'v>(values: &'v [ToSqlOutput]) -> Vec<&'v dyn ToSql> {
    values.iter().map(|value| value as &dyn ToSql).collect()
}

impl Reads for Reader {
    fn visit(
        &self,
        sql: &str,
        values: &[Value],
        visit: &mut dyn FnMut(&dyn Row),
    ) -> Result<(), Error> {
        let done = self.rows(sql, &parameters(&bound(values)), &mut |row| {
            visit(&Columns(row));
            Ok(ControlFlow::Continue(()))
        });
        Ok(done?)
    }

    fn version(&self) -> i64 {
        self.data_version()
    }
}

impl Reads for Writer {
    fn visit(
        &self,
        sql: &str,
        values: &[Value],
        visit: &mut dyn FnMut(&dyn Row),
    ) -> Result<(), Error> {
        Reads::visit(&**self, sql, values, visit)
    }

    fn version(&self) -> i64 {
        self.data_version()
    }
}

impl Writer {
    /// Runs a statement of hosting that writes.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn write_for_hosting(&mut self, sql: &str, values: &[Value]) -> Result<usize, Error> {
        Ok(self.change(sql, &parameters(&bound(values)))?)
    }
}
