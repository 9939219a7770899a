//! What the interface leaves to the operator: the status of an animal, and its end.

use std::path::Path;

use super::say;
use crate::Error;
use crate::model::PetStatus;
use crate::store::Writer;

/// Changes the status of an animal, and returns the animal as the interface now serves it. The change is
/// flushed, and seen at once by a running service.
///
/// # Errors
/// One plain line, where no animal has this id, or the database is not there or cannot be written.
pub fn set_status(database: &Path, id: i64, status: PetStatus) -> Result<String, Error> {
    let mut store = open(database)?;
    let pet = store.set_status(id, status, |pet| serde_json::to_string(&pet)).map_err(say)?;
    let pet = pet.ok_or_else(|| unknown(id))?.map_err(|error| Error::from(error.to_string()))?;
    store.commit().map_err(say)?;
    Ok(pet)
}

/// Deletes animals, all of them or none, and returns how many there were. It is flushed, and seen at once by a
/// running service. Their ids are never used again.
///
/// # Errors
/// One plain line, where no animal has one of the ids, one is given twice, or the database is not there or cannot be written.
pub fn delete_pets(database: &Path, ids: &[i64]) -> Result<usize, Error> {
    let mut store = open(database)?;
    for (i, id) in ids.iter().enumerate() {
        // Twice the same is perhaps a slip for another.
        let why = if ids[..i].contains(id) {
            Error::from(format!("the id {id} is given twice"))
        } else if !store.delete_pet(*id).map_err(say)? {
            unknown(*id)
        } else {
            continue;
        };
        // The transaction ends with the connection, and nothing of it is kept.
        return Err(if ids.len() > 1 { Error::from(format!("{why}; nothing was deleted")) } else { why });
    }
    store.commit().map_err(say)?;
    Ok(ids.len())
}

/// A database that is there.
fn open(database: &Path) -> Result<Writer, Error> {
    if !database.exists() {
        return Err(Error::from(format!("there is no database {}", database.display())));
    }
    Ok(Writer::open(database)?)
}

fn unknown(id: i64) -> Error {
    Error::from(format!("there is no animal with the id {id}"))
}
