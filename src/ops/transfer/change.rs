//! Operators' changes that the HTTP interface does not have: set the status of a pet, and delete pets.

use std::path::Path;

use crate::base::error::{Error, ErrorKind};
use crate::model::PetStatus;
use crate::store::{self, Writer};

/// Sets the status of a pet, and returns the changed pet in the JSON of the HTTP interface.
///
/// The change is flushed to the disk, and a running service shows it at once.
///
/// ```no_run
/// use petstore::{PetStatus, set_status};
///
/// println!("{}", set_status("pets.db".as_ref(), 1, PetStatus::Sold)?);
/// # Ok::<(), petstore::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::PetUnknown`] if no pet has this id, [`ErrorKind::DatabaseMissing`] if there is no database, and
/// the kinds of a database that cannot be opened or written.
pub fn set_status(database: &Path, id: i64, status: PetStatus) -> Result<String, Error> {
    let mut store = open(database)?;
    let pet = store.transaction()?.set_status(id, status, |pet| serde_json::to_string(&pet))?;
    let pet = pet
        .ok_or_else(|| unknown(id))?
        .map_err(|error| Error::new(ErrorKind::Internal, error.to_string()).caused_by(error))?;
    store.commit()?;
    Ok(pet)
}

/// Deletes pets in one transaction: all of them or none. Returns their number.
///
/// The change is flushed to the disk, and a running service shows it at once. The ids are never used again.
///
/// ```no_run
/// let deleted = petstore::delete_pets("pets.db".as_ref(), &[2, 3])?;
/// assert_eq!(deleted, 2);
/// # Ok::<(), petstore::Error>(())
/// ```
///
/// # Errors
/// [`ErrorKind::PetUnknown`] if no pet has one of the ids, or one is given twice, [`ErrorKind::DatabaseMissing`] if there
/// is no database, and the kinds of a database that cannot be opened or written.
pub fn delete_pets(database: &Path, ids: &[i64]) -> Result<usize, Error> {
    let mut store = open(database)?;
    for (place, id) in ids.iter().enumerate() {
        let why = match store.transaction().and_then(|mut pets| pets.delete_pet(*id)) {
            // A cluster deletes at the end of the batch, so it would find a pet the second time too.
            Ok(is_there) if is_there && !ids[..place].contains(id) => continue,
            Ok(_) => unknown(*id),
            Err(error) => Error::from(error).context(format!("the pet {id} cannot be deleted")),
        };
        // The transaction is rolled back when the connection closes.
        return Err(if ids.len() > 1 { why.followed_by("nothing was deleted") } else { why });
    }
    store.commit()?;
    Ok(ids.len())
}

/// Opens an existing database.
fn open(database: &Path) -> Result<Writer, Error> {
    if !store::exists(database) {
        return Err(Error::no_database(database));
    }
    Writer::open(database)
}

fn unknown(id: i64) -> Error {
    Error::new(ErrorKind::PetUnknown, format!("there is no pet with the id {id}"))
}
