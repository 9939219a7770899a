//! Operators' tasks with pets: export all, import many, change one, delete some. A running service shows each change at
//! once. Knows nothing of HTTP, terminals and signals.

mod csv;
mod export;
#[cfg(any(test, fuzzing))]
pub mod fuzz_tests;
mod import;
mod import_target;
mod input;
mod rows;
mod start;

pub use export::export;
pub use import::{Import, ImportIds, ImportOptions, Imported};
pub use input::Source;

use crate::model::words;

words! {
    /// The format of exported and imported pets.
    #[derive(Default)]
    Format {
        /// Newline-delimited JSON (`ndjson`): one pet on each line, with the members of the HTTP interface. The default.
        #[default]
        Ndjson = "ndjson",
        /// CSV (`csv`, RFC 4180) with the names of the members as the header line. An absent member is an empty field,
        /// and an empty field of an optional member is read as absent.
        Csv = "csv",
    }
}
