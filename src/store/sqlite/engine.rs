//! What the statements read of this engine.

use std::ops::{ControlFlow, Deref};

use rusqlite::{Connection, ToSql};

use super::{FileReader, StoreError};
use crate::store::traits::{Database, Reads, Row, Visit};

/// Hands the rows of a statement to `visit`, one after the other, until it breaks off.
pub fn rows(
    connection: &Connection,
    sql: &str,
    values: &[&dyn ToSql],
    visit: &mut Visit,
) -> Result<(), StoreError> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(values)?;
    while let Some(row) = rows.next()? {
        if let ControlFlow::Break(()) = visit(&Row::Sqlite(row))? {
            break;
        }
    }
    Ok(())
}

impl Reads for FileReader {
    fn rows(&self, sql: &str, values: &[&dyn ToSql], visit: &mut Visit) -> Result<(), StoreError> {
        rows(self.connection()?, sql, values, visit)
    }

    fn data_version(&self) -> i64 {
        self.data_version
    }

    fn look(&mut self) -> Result<(), StoreError> {
        self.watch.look_now()
    }
}

impl Deref for FileReader {
    type Target = Database;

    fn deref(&self) -> &Database {
        self
    }
}
