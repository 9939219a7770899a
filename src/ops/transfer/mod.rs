//! Operators' tasks with pets: export all, import many, change one, delete some. A running service shows each change at
//! once. Knows nothing of HTTP, terminals and signals.

mod change;
mod csv;
mod export;
#[cfg(any(test, fuzzing))]
pub mod fuzz_tests;
mod import;
mod input;
mod rows;
mod start;

use std::str::FromStr;

pub use change::{delete_pets, set_status};
pub use export::export;
pub use import::{Import, ImportOptions, LinesWritten};
pub use input::Source;

use crate::base::error::Expected;

/// The format of exported and imported pets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// Newline-delimited JSON (`ndjson`): one pet on each line, with the members of the HTTP interface. The default.
    #[default]
    Ndjson,
    /// CSV (`csv`, RFC 4180) with the names of the members as the header line. An absent member is an empty field, and
    /// an empty field of an optional member is read as absent.
    Csv,
}

impl FromStr for Format {
    type Err = Expected;

    /// Reads `ndjson` or `csv`.
    ///
    /// # Errors
    /// The words that are allowed.
    fn from_str(word: &str) -> Result<Self, Expected> {
        match word {
            "ndjson" => Ok(Self::Ndjson),
            "csv" => Ok(Self::Csv),
            _ => Err(Expected("'ndjson' or 'csv'".into())),
        }
    }
}
