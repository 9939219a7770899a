//! This engine as the statements know it: each method is that of the connection.

use std::ops::{ControlFlow, Deref};
use std::time::Duration;

use rusqlite::{Connection, ToSql};

use super::{Committed, Database, Inserted, Reader, Row, StoreError, Units, Writer};
use crate::model::{IdempotencyKey, NewPet};
use crate::store::engine::{self, Reads, Snapshots, Visit, Writes};

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

impl Reads for Database {
    fn rows(&self, sql: &str, values: &[&dyn ToSql], visit: &mut Visit) -> Result<(), StoreError> {
        rows(self.connection()?, sql, values, visit)
    }

    fn data_version(&self) -> i64 {
        self.data_version
    }

    fn bound_rows(&self, rows: Option<u32>) {
        self.cost.bound(rows);
    }
}

impl Deref for Database {
    type Target = engine::Database;

    fn deref(&self) -> &engine::Database {
        self
    }
}

impl Snapshots for Reader {
    fn database(&self) -> &engine::Database {
        &self.0
    }

    fn begin(&mut self) -> Result<(), StoreError> {
        self.begin()
    }

    fn end(&mut self) -> Result<(), StoreError> {
        self.end()
    }

    fn look(&mut self) -> Result<(), StoreError> {
        self.look()
    }
}

impl Writes for Writer {
    fn database(&self) -> &engine::Database {
        &self.database
    }

    fn begin(&mut self, units: Units) -> Result<(), StoreError> {
        self.begin(units)
    }

    fn begin_unit(&mut self) -> Result<(), StoreError> {
        self.begin_unit()
    }

    fn keep_unit(&mut self) -> Result<(), StoreError> {
        self.keep_unit()
    }

    fn undo_unit(&mut self) -> bool {
        self.undo_unit()
    }

    fn open_transaction(&mut self) -> Result<(), StoreError> {
        self.open_transaction()
    }

    fn try_begin(&mut self) -> Result<bool, StoreError> {
        self.try_begin()
    }

    fn insert_pet(&mut self, new: &NewPet) -> Result<Inserted, StoreError> {
        self.insert_pet(new)
    }

    fn insert_pet_once(&mut self, new: &NewPet, key: &IdempotencyKey) -> Result<Inserted, StoreError> {
        self.insert_pet_once(new, key)
    }

    fn change(&mut self, sql: &str, values: &[&dyn ToSql]) -> Result<usize, StoreError> {
        self.change(sql, values)
    }

    fn execute(&self, sql: &str, values: &[&dyn ToSql]) -> Result<usize, StoreError> {
        Ok(self.connection.prepare_cached(sql)?.execute(values)?)
    }

    fn commit(&mut self) -> Result<Committed, StoreError> {
        self.commit()
    }

    fn undo(&mut self) {
        self.undo();
    }

    fn probe(&mut self) -> Result<(), StoreError> {
        self.probe()
    }

    fn look(&mut self) -> Result<(), StoreError> {
        self.look()
    }

    fn be_patient(&mut self, patience: Duration) {
        self.be_patient(patience);
    }

    fn sweep_retries(&mut self) -> Result<bool, StoreError> {
        self.sweep_retries()
    }

    fn empty_log(&mut self) -> Result<(), StoreError> {
        self.empty_log()
    }

    fn checkpoint(&mut self) -> Result<(), StoreError> {
        self.checkpoint()
    }
}
