//! Operators' tasks with pets: export all, import many, change one, delete some. A running service shows each change at
//! once. Knows nothing of HTTP, terminals and signals.

pub mod csv;
mod export;
#[cfg(any(test, fuzzing))]
pub mod fuzz_tests;
mod import;
mod import_target;
mod input;
mod rows;
mod start;

pub use export::export;
pub use import::{Import, ImportOptions, Imported};
pub use input::Source;

use petstore_base::words;

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
        /// CSV that a spreadsheet opens by a double click (`excel`): as UTF-8 with a byte order mark, and with an apostrophe
        /// before a text that it would take for a formula, a number or a date. An import takes the apostrophe off again.
        Excel = "excel",
        /// The same with semicolons (`excel-semicolon`), as spreadsheets expect it where the decimal separator is a comma.
        ExcelSemicolon = "excel-semicolon",
    }
}

impl Format {
    /// Whether it is CSV in any form.
    pub(crate) const fn is_csv(self) -> bool {
        !matches!(self, Self::Ndjson)
    }

    const fn is_for_sheets(self) -> bool {
        matches!(self, Self::Excel | Self::ExcelSemicolon)
    }

    pub(crate) const fn separator(self) -> char {
        match self {
            Self::ExcelSemicolon => ';',
            _ => ',',
        }
    }
}

/// What an import does with the ids of its input.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ImportIds {
    /// Adds pets, which get new ids. If a pet of the database has an id of the input, which is then probably an export,
    /// the import is refused. The default.
    #[default]
    NewUnlessTaken,
    /// Adds pets, which get new ids, whatever ids the input has.
    New,
    /// Adds pets with the ids of the input. The database must never have had a pet.
    Keep,
    /// Changes the pets with the ids of the input. Members that the input does not have stay as they are.
    Update,
}

impl ImportIds {
    /// True if each row needs an id.
    const fn are_needed(self) -> bool {
        matches!(self, Self::Keep | Self::Update)
    }
}
