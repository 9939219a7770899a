//! Reads that are put off, so that the gets of a batch go in one request. Lists are not put off: those of a batch are
//! mostly the same, and are cached.

use std::collections::{HashMap, HashSet};

use super::client::{Rows, Statement};
use crate::store::{Cause, StoreError};

/// What the current batch has put off, and the rows it has got.
#[derive(Default)]
pub struct Ahead {
    /// Whether reads are put off.
    is_on: bool,
    /// Whether one was, since the last call of `has_put_off`.
    has_put_off: bool,
    /// Whether the next statement has one row at most.
    is_single: bool,
    wanted: HashSet<Statement>,
    found: HashMap<Statement, Rows>,
}

impl Ahead {
    /// Puts off reads from now on.
    pub fn begin(&mut self) {
        *self = Self { is_on: true, ..Self::default() };
    }

    /// Forgets everything.
    pub fn end(&mut self) {
        *self = Self::default();
    }

    /// Notes how many rows the statements from now on can have.
    pub fn bound(&mut self, rows: Option<u32>) {
        self.is_single = rows == Some(1);
    }

    /// The rows of a statement; `None` if it must be asked by itself.
    ///
    /// # Errors
    /// If it is put off.
    pub fn rows(&mut self, statement: &Statement) -> Result<Option<Rows>, StoreError> {
        if let Some(rows) = self.found.get(statement) {
            return Ok(Some(rows.clone()));
        }
        if !self.is_on || !self.is_single {
            return Ok(None);
        }
        self.wanted.insert(statement.clone());
        self.has_put_off = true;
        Err(StoreError::Unavailable(Cause::PutOff, String::new()))
    }

    /// Whether a read was put off since the last call.
    pub fn has_put_off(&mut self) -> bool {
        std::mem::take(&mut self.has_put_off)
    }

    /// Stops putting off reads, and returns those that are wanted.
    pub fn wanted(&mut self) -> Vec<Statement> {
        self.is_on = false;
        std::mem::take(&mut self.wanted).into_iter().collect()
    }

    /// Takes the rows of statements that were wanted.
    pub fn take(&mut self, statements: Vec<Statement>, rows: Vec<Rows>) {
        self.found.extend(statements.into_iter().zip(rows));
    }
}
