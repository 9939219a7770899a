//! Where an import goes: into a file, or into a cluster; and what it asks of either.

use std::collections::HashMap;
use std::ops::ControlFlow;
use std::path::Path;

use crate::model::Pet;
use crate::store::cluster::Cluster;
use crate::store::{ImportNote, Reader, Staging, StoreError, Writer};
use petstore_base::error::Error;

/// The connection that writes.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a command has one")]
pub enum ImportTarget {
    File(Writer),
    Cluster(Cluster),
}

impl ImportTarget {
    /// Opens a database, and creates a file that does not exist.
    ///
    /// # Errors
    /// The kinds of a database that cannot be opened or created.
    pub fn open(database: &Path) -> Result<Self, Error> {
        Ok(match Cluster::at(database)? {
            Some(cluster) => Self::Cluster(cluster),
            None => Self::File(Writer::open(database)?),
        })
    }
}

/// What an import asks of the database.
pub trait Known {
    /// The earlier import of an input with this digest.
    ///
    /// # Errors
    /// If the database cannot be read, as all of these.
    fn imported(&self, input: &[u8]) -> Result<Option<ImportNote>, Error>;

    /// The greatest id ever assigned.
    fn last_id(&self) -> Result<i64, Error>;

    /// Returns true if a pet has an id from the first to the second.
    fn has_pet_between(&self, ids: (i64, i64)) -> Result<bool, Error>;

    /// Passes the pet with an id of the input to `read`; `None` if there is none.
    fn pet<T>(&self, id: i64, read: impl FnOnce(&Pet) -> T) -> Result<Option<T>, Error>;
}

impl Known for Reader {
    fn imported(&self, input: &[u8]) -> Result<Option<ImportNote>, Error> {
        Ok(self.import(input)?)
    }

    fn last_id(&self) -> Result<i64, Error> {
        Ok(Reader::last_id(self)?)
    }

    fn has_pet_between(&self, ids: (i64, i64)) -> Result<bool, Error> {
        let mut is_one = false;
        self.visit_ids(ids, |_| {
            is_one = true;
            ControlFlow::Break(())
        })?;
        Ok(is_one)
    }

    fn pet<T>(&self, id: i64, read: impl FnOnce(&Pet) -> T) -> Result<Option<T>, Error> {
        Ok(Reader::pet(self, id, |pet| read(&pet))?)
    }
}

/// What a cluster has of an input.
pub struct KnownPets {
    imported: Option<ImportNote>,
    last_id: i64,
    /// The pets with ids of the input.
    pets: HashMap<i64, Pet<'static>>,
}

impl KnownPets {
    /// Reads it. The input must be small enough for a cluster.
    ///
    /// # Errors
    /// If the cluster does not answer.
    pub fn read(cluster: &mut Cluster, digest: &[u8], staging: &Staging) -> Result<Self, Error> {
        let mut ids = Vec::new();
        staging.visit(|row| {
            ids.extend(row.id);
            Ok::<_, StoreError>(())
        })?;
        cluster.begin()?;
        let (imported, last_id) = cluster.imported(digest)?;
        let pets = cluster.pets(&ids)?;
        Ok(Self {
            imported,
            last_id,
            pets,
        })
    }
}

impl Known for KnownPets {
    fn imported(&self, _: &[u8]) -> Result<Option<ImportNote>, Error> {
        Ok(self.imported)
    }

    fn last_id(&self) -> Result<i64, Error> {
        Ok(self.last_id)
    }

    fn has_pet_between(&self, _: (i64, i64)) -> Result<bool, Error> {
        Ok(!self.pets.is_empty())
    }

    fn pet<T>(&self, id: i64, read: impl FnOnce(&Pet) -> T) -> Result<Option<T>, Error> {
        Ok(self.pets.get(&id).map(read))
    }
}
