//! Check: finds the faults of a database or a backup.

use std::fmt;
use std::path::Path;

use super::Backup;
use crate::model::PetCounts;
use crate::store::{Checked, Snapshot, cluster, kind_of};
use petstore_base::error::{Error, ErrorKind, fail};

/// The result of a [`check`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Soundness {
    /// The number of pets; 0 if they cannot be counted.
    pub pets: u64,
    /// The number of pets with each status.
    pub counts: PetCounts,
    /// The version of the schema.
    pub version: i64,
    /// The faults, one line each; empty if the database is sound.
    pub faults: Vec<String>,
    /// The kind of the faults: [`ErrorKind::DatabaseDamaged`] if data is lost, [`ErrorKind::SchemaChanged`] if no data
    /// is lost, or [`ErrorKind::ReplicasDiffer`] if only nodes of a cluster have faults. `None` if the database is
    /// sound.
    pub kind: Option<ErrorKind>,
    /// Changes and additions by other programs, such as `the table _litestream_seq`, which do no harm.
    pub foreign: Vec<String>,
}

/// Reads all of a database or a backup, and lists its faults.
///
/// It finds damaged pages and indexes, values and references that the schema does not allow, text that is not UTF-8, and
/// parts of the schema that are missing. It changes nothing, and leaves no file next to the database. A service may use
/// the database meanwhile.
///
/// For a cluster, it reads the database of the leader, and compares the rows of each node in the address with it: pets,
/// keys, domains and so on. A node that does not respond is a fault.
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
/// [`ErrorKind::FileMissing`] if there is no such file. [`ErrorKind::DatabaseForeign`], [`ErrorKind::DatabaseNewer`],
/// [`ErrorKind::DatabaseMissing`] (it is empty) or [`ErrorKind::DatabaseDamaged`] if it cannot be read as a database of
/// this version. [`ErrorKind::Conflict`] if a cluster is restored during the check, or another process writes to a file
/// that this user may only read.
pub fn check(file: &Path) -> Result<Soundness, Error> {
    let Checked {
        pets,
        schema_version,
        mut faults,
        values,
        foreign,
    } = Snapshot::of_file(&cluster::whole(file)?)?.check()?;
    faults.extend(values);
    let nodes = cluster::compare(file)?;
    let of_nodes = (!nodes.is_empty()).then_some(ErrorKind::ReplicasDiffer);
    Ok(Soundness {
        pets: pets.total.cast_unsigned(),
        counts: pets,
        version: schema_version,
        kind: kind_of(&faults).or(of_nodes),
        faults: faults.iter().map(Error::to_string).chain(nodes).collect(),
        foreign,
    })
}

/// Checks that a service can use a copy.
///
/// # Errors
/// The first fault, with `name` as its subject.
pub fn usable(copy: &Path, name: impl fmt::Display) -> Result<Backup, Error> {
    let snapshot = Snapshot::of_file(copy)?;
    let found = snapshot.check()?;
    match (kind_of(&found.faults), found.faults.first()) {
        (Some(kind), Some(fault)) => fail(kind, format!("{name} is not sound: {fault}")),
        _ => Ok(Backup {
            file: copy.to_owned(),
            bytes: snapshot.bytes()?,
            pets: found.pets.total.cast_unsigned(),
            faults: found.values.iter().map(Error::to_string).collect(),
            removed: Vec::new(),
        }),
    }
}
