//! Whether a database is sound.

use std::path::Path;

use crate::Error;
use crate::store::Snapshot;

/// How often a file is looked at that others write to meanwhile.
const TRIES: usize = 3;

/// What a check found.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Soundness {
    /// How many animals there are; 0 where they cannot be counted.
    pub animals: u64,
    /// The version of the schema; 0 where it cannot be read.
    pub version: i64,
    /// What is wrong, a plain line each; empty: nothing.
    pub faults: Vec<String>,
}

/// Reads all of a database or of its copy, and says what is wrong with it: damaged pages and indexes, values and
/// references that the schema does not allow, another schema than this program makes, another application's
/// file, ids that no service gave. Changes nothing, and leaves no file beside it. The service may run.
///
/// # Errors
/// Where the file is not there, is no database, or cannot be read.
pub fn check(file: &Path) -> Result<Soundness, Error> {
    for _ in 0..TRIES {
        let snapshot = Snapshot::of_file(file)?;
        let found = snapshot.findings();
        if snapshot.is_unchanged() {
            return Ok(Soundness { animals: found.animals, version: found.version, faults: found.faults });
        }
    }
    Err(format!("{} was written to while it was checked; check it again", file.display()).into())
}
