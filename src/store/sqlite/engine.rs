//! Reads: the statements, the snapshot of a batch, and the check of the path.

use std::ops::ControlFlow;

use rusqlite::{Connection, ToSql};

use super::{FileReader, StoreError};
use crate::store::rows::Visit;

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
        if let ControlFlow::Break(()) = visit(row)? {
            break;
        }
    }
    Ok(())
}

impl FileReader {
    pub fn rows(&self, sql: &str, values: &[&dyn ToSql], visit: &mut Visit) -> Result<(), StoreError> {
        rows(self.connection()?, sql, values, visit)
    }

    pub fn begin(&mut self) -> Result<(), StoreError> {
        self.forget_data_version();
        self.watch.look()?;
        self.run("BEGIN")?;
        // This read takes the snapshot; BEGIN alone does not.
        self.read_data_version()
    }

    pub fn end(&mut self) -> Result<(), StoreError> {
        self.end_reading()
    }

    /// Many reads at once are no faster here.
    pub fn announce_pets(&self, _: impl Iterator<Item = i64>) {}

    pub fn data_version(&self) -> i64 {
        self.data_version
    }

    pub fn check_path(&mut self) -> Result<(), StoreError> {
        self.watch.look_now()
    }
}
