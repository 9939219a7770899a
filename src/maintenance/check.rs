//! Check: whether a database or a backup is sound.

use std::path::Path;

use crate::error::{Error, ErrorKind, fail};
use crate::store::Snapshot;

/// How often to check a file that other processes write to meanwhile.
const TRIES: usize = 3;

/// The result of a [`check`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Soundness {
    /// The number of pets; 0 if they cannot be counted.
    pub pets: u64,
    /// The version of the schema; 0 if it cannot be read.
    pub version: i64,
    /// What is wrong, one line each; empty if the file is sound.
    pub faults: Vec<String>,
}

/// Reads all of a database or of a backup, and lists what is wrong with it.
///
/// It finds damaged pages and indexes, values and references that the schema does not allow, a schema other than
/// this version's, the file of another application, and ids that no service assigned. It changes nothing, and
/// leaves no file next to the database. A service may use the database meanwhile.
///
/// # Errors
/// [`ErrorKind::FileMissing`], [`ErrorKind::DatabaseForeign`] or [`ErrorKind::DatabaseDamaged`] if the file
/// cannot be read as a database at all, and [`ErrorKind::Conflict`] if other processes keep writing to it.
pub fn check(file: &Path) -> Result<Soundness, Error> {
    for _ in 0..TRIES {
        let snapshot = Snapshot::of_file(file)?;
        let found = snapshot.findings();
        if snapshot.is_unchanged() {
            return Ok(Soundness { pets: found.pets, version: found.version, faults: found.faults });
        }
    }
    fail(ErrorKind::Conflict, format!("{} was written to while it was checked", file.display()))
}
