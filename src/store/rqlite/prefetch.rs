//! Reads that are put off, so that the gets of a batch go in one request. Lists are not put off: those of a batch are
//! mostly the same, and are cached.

use std::collections::{HashMap, HashSet};

use super::client::{Rows, Statement};
use crate::store::{Cause, StoreError};

/// What becomes of reads of single pets.
#[derive(Default)]
pub enum Ahead {
    /// Each is asked by itself.
    #[default]
    Off,
    /// They are noted here, and fail with `PutOff`.
    Noting(HashSet<Statement>),
    /// Those that were noted have these rows. Others are asked by themselves.
    Read(HashMap<Statement, Rows>),
}

impl Ahead {
    /// The rows of a statement; `None` if it must be asked by itself.
    ///
    /// # Errors
    /// If it is put off.
    pub fn rows(&mut self, statement: &Statement) -> Result<Option<Rows>, StoreError> {
        match self {
            Self::Off => Ok(None),
            Self::Noting(wanted) => {
                wanted.insert(statement.clone());
                Err(StoreError::Unavailable(Cause::PutOff, String::new()))
            }
            Self::Read(found) => Ok(found.get(statement).cloned()),
        }
    }

    /// Stops putting off reads, and returns those that were noted.
    pub fn wanted(&mut self) -> Vec<Statement> {
        match std::mem::take(self) {
            Self::Noting(wanted) => wanted.into_iter().collect(),
            Self::Off | Self::Read(_) => Vec::new(),
        }
    }
}
