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

pub use change::{delete_pets, set_status};
pub use export::export;
pub use import::{Import, ImportOptions, LinesWritten};
pub use input::Source;

use crate::model::words;

words! {
    /// The format of exported and imported pets.
    #[derive(Default)]
    Format {
        /// Newline-delimited JSON (`ndjson`): one pet on each line, as the HTTP interface serves it.
        #[default]
        Ndjson = "ndjson",
        /// CSV (`csv`, RFC 4180) with a header line of the names of the members. A member that a pet does not have is
        /// empty, so an optional member that is an empty text becomes none.
        Csv = "csv",
    }
}
