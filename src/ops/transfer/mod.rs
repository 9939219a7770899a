//! The operator's work on pets: export all, import many, change one, delete some. A running service shows each
//! change at once. Knows nothing of HTTP, terminals and signals.

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
    /// Newline-delimited JSON (`ndjson`): one pet on each line, as the HTTP interface serves it.
    #[default]
    Ndjson,
    /// CSV (`csv`, RFC 4180) with a header line of the names of the members. A member that a pet does not have is
    /// empty, so an optional member that is an empty text becomes none.
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
