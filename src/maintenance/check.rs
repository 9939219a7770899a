//! Check: whether a database or a backup is sound.

use std::path::Path;

use crate::error::{Error, ErrorKind, fail};
use crate::store::{Fault, Findings, Snapshot, Whole, compare_nodes};

/// How often to check a file that other processes write to meanwhile.
const TRIES: usize = 3;

/// The result of a [`check`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Soundness {
    /// The number of pets; 0 if they cannot be counted.
    pub pets: u64,
    /// The version of the schema.
    pub version: i64,
    /// What is wrong, one line each; empty if the database is sound.
    pub faults: Vec<String>,
    /// The kind of the faults: [`ErrorKind::DatabaseDamaged`] if something is lost,
    /// [`ErrorKind::SchemaChanged`] if nothing is, or [`ErrorKind::ReplicasDiffer`] if only nodes of a cluster have
    /// faults. `None` if the database is sound.
    pub kind: Option<ErrorKind>,
    /// What other programs have added, such as `the table _litestream_seq`. It does no harm to the file.
    pub foreign: Vec<String>,
}

/// Reads all of a database or of a backup, and lists what is wrong with it.
///
/// It finds damaged pages and indexes, values and references that the schema does not allow, parts of the schema that
/// are missing or changed, and ids that no service assigned. It changes nothing, and leaves no file next to the
/// database. A service may use the database meanwhile.
///
/// Of a cluster, it reads what the leader has, and compares each node of the address with it: the newest 100,000 pets,
/// and the numbers of keys, domains and so on. A node that does not answer is a fault.
///
/// ```no_run
/// # fn main() -> Result<(), petstore::Error> {
/// let found = petstore::check("copy.db".as_ref())?;
/// println!("{} pets, faults: {:?}", found.pets, found.faults);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`ErrorKind::FileMissing`] if there is no such file. [`ErrorKind::DatabaseForeign`],
/// [`ErrorKind::DatabaseNewer`], [`ErrorKind::DatabaseMissing`] (it is empty) or [`ErrorKind::DatabaseDamaged`] if it
/// cannot be read as a database of this version. [`ErrorKind::Conflict`] if other processes keep writing to it.
pub fn check(file: &Path) -> Result<Soundness, Error> {
    let Findings { pets, version, schema, faults } = findings(&Whole::of(file)?)?;
    let all: Vec<Fault> =
        schema.gaps.into_iter().chain(schema.changes.into_iter().map(Fault::change)).chain(faults).collect();
    let nodes = compare_nodes(file)?;
    let of_nodes = (!nodes.is_empty()).then_some(ErrorKind::ReplicasDiffer);
    Ok(Soundness {
        pets,
        version,
        kind: if all.is_empty() { of_nodes } else { Some(Fault::kind(&all)) },
        faults: all.iter().map(Fault::line).chain(nodes).collect(),
        foreign: schema.foreign,
    })
}

/// What a check finds in a file.
fn findings(file: &Path) -> Result<Findings, Error> {
    for _ in 0..TRIES {
        let snapshot = Snapshot::of_file(file)?;
        let found = snapshot.findings()?;
        if snapshot.is_unchanged() {
            return Ok(found);
        }
    }
    fail(ErrorKind::Conflict, format!("{} was written to while it was checked", file.display()))
}

/// The number of pets in a copy that a service can work with, and what other programs have changed or added in it.
///
/// # Errors
/// What is wrong with it, said of `name`.
pub fn usable(copy: &Path, name: &Path) -> Result<(u64, Option<String>), Error> {
    let found = findings(copy)?;
    let alterations = found.schema.line();
    let faults: Vec<Fault> = found.schema.gaps.into_iter().chain(found.faults).collect();
    match faults.first() {
        Some(fault) => {
            fail(Fault::kind(&faults), format!("{} is not sound: {}", name.display(), fault.line()))
        }
        None => Ok((found.pets, alterations)),
    }
}

/// What other programs have removed, changed or added in a database or a backup, in one line; `None` if nothing.
/// Unlike [`check`], it reads only the schema.
///
/// ```no_run
/// # fn main() -> Result<(), petstore::Error> {
/// if let Some(line) = petstore::alterations("copy.db".as_ref())? {
///     println!("{line}"); // such as: it also has the table _litestream_seq
/// }
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The kinds of [`check`].
pub fn alterations(file: &Path) -> Result<Option<String>, Error> {
    Ok(Snapshot::of_file(file)?.differences()?.line())
}
