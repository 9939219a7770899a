//! The operator's work on the animals: all of them out, many in, one changed, some deleted. In force at once
//! on a running service, whose lists are made anew when the database has changed. Knows nothing of HTTP, nor
//! of terminals and signals.

mod change;
mod csv;
mod export;
mod ids;
mod import;
mod input;
mod rows;
mod turns;

use std::str::FromStr;

use crate::Error;
use crate::store::StoreError;

pub use change::{delete_pets, set_status};
pub use export::export;
pub use import::{Import, ImportOptions, LinesWritten};
pub use input::Source;

/// How animals are written outside of the database.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Format {
    /// An animal on each line, as the JSON that the interface serves (`ndjson`).
    #[default]
    Ndjson,
    /// RFC 4180, with the header line `id,name,categoryId,status` (`csv`). An animal without a status has an
    /// empty one.
    Csv,
}

impl FromStr for Format {
    type Err = String;

    /// Reads `ndjson` or `csv`.
    ///
    /// # Errors
    /// What is expected, to follow on "must be".
    fn from_str(word: &str) -> Result<Self, String> {
        match word {
            "ndjson" => Ok(Self::Ndjson),
            "csv" => Ok(Self::Csv),
            _ => Err("'ndjson' or 'csv'".to_owned()),
        }
    }
}

fn say(error: StoreError) -> Error {
    Error::from(match error {
        StoreError::Unavailable(..) => error.to_string(),
        StoreError::Internal(detail) => format!("the database refuses it: {detail}"),
    })
}
