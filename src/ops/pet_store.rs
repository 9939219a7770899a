//! Where the pets of a database are, for an inventory: in its file, or in a cluster.

use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use crate::model::{IdempotencyKey, NewPet, Page, Pet, PetCounts, PetPatch, PetQuery};
use crate::store::cluster::{CONTENDS_FOR, Cluster, Done, MOST_PETS, Work};
use crate::store::{Cause, Outcome, Reader, StoreError, Writer};
use petstore_base::error::{Error, ErrorKind, fail};

/// The pets that a range is read by at once.
const AT_ONCE: u32 = 100;

/// The pets of a database.
#[derive(Debug)]
#[expect(clippy::large_enum_variant, reason = "a command has one")]
pub enum PetStore {
    File {
        // Before the writer, which removes the log when it is the last to close.
        reader: Reader,
        /// `None` if it only reads.
        writer: Option<Writer>,
    },
    Cluster {
        cluster: Cluster,
        is_read_only: bool,
    },
}

/// Pets to change or to delete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PetIds {
    /// The pet with this id, which must exist.
    One(i64),
    /// The pets from one id to another, however many there are.
    Range(i64, i64),
}

/// What becomes of pets.
pub struct Change<'c> {
    /// A pet must be as this one.
    pub expected: Option<&'c Pet<'c>>,
    /// `None`: they are deleted.
    pub patch: Option<&'c PetPatch<'c>>,
}

impl Change<'_> {
    /// A pet after its change, or before it is deleted.
    fn of(&self, pet: &Pet) -> Result<Pet<'static>, Error> {
        if self.expected.is_some_and(|expected| expected != pet) {
            let message = format!("the pet {} has changed; nothing was changed now", pet.id);
            return fail(ErrorKind::Conflict, message);
        }
        let after = match self.patch {
            Some(patch) => patch.apply(pet),
            None => pet.clone(),
        };
        Ok(after.into_owned())
    }
}

fn no_pet(id: i64) -> Error {
    Error::new(
        ErrorKind::PetUnknown,
        format!("there is no pet with the id {id}"),
    )
}

impl PetStore {
    /// Opens a database, and creates a file that does not exist.
    ///
    /// # Errors
    /// The kinds of a database that cannot be opened or created.
    pub fn open(database: &Path) -> Result<Self, Error> {
        if let Some(cluster) = Cluster::at(database)? {
            return Ok(Self::Cluster {
                cluster,
                is_read_only: false,
            });
        }
        // The writer first: it creates the database.
        let writer = Writer::open(database)?;
        Ok(Self::File {
            reader: Reader::open(database)?,
            writer: Some(writer),
        })
    }

    /// Opens an existing database to read it.
    ///
    /// # Errors
    /// The kinds of a database that cannot be opened.
    pub fn open_to_read(database: &Path) -> Result<Self, Error> {
        Ok(match Cluster::at_existing(database)? {
            Some(cluster) => Self::Cluster {
                cluster,
                is_read_only: true,
            },
            None => Self::File {
                reader: Reader::open(database)?,
                writer: None,
            },
        })
    }

    /// Sets the name under which changes in a file are recorded.
    pub fn change_as(&mut self, name: &str) {
        if let Self::File {
            writer: Some(writer),
            ..
        } = self
        {
            writer.change_as(Some(name.into()));
        }
    }

    /// Adds pets in one transaction, each unless a create with this key was carried out before.
    ///
    /// # Errors
    /// If the database cannot be written. Then none is added.
    pub fn insert(
        &mut self,
        pets: &[NewPet],
        key: Option<&IdempotencyKey>,
    ) -> Result<Vec<Outcome>, Error> {
        match self {
            Self::File { writer, .. } => {
                let writer = writing(writer)?;
                let mut outcomes = Vec::with_capacity(pets.len());
                for pet in pets {
                    match writer.insert_pet(pet, key) {
                        Ok(outcome) => outcomes.push(outcome),
                        Err(error) => {
                            writer.undo();
                            return Err(error.into());
                        }
                    }
                }
                writer.commit()?;
                Ok(outcomes)
            }
            Self::Cluster {
                is_read_only: true, ..
            } => Err(read_only().into()),
            Self::Cluster { cluster, .. } => {
                let create = |pet: &NewPet| Work::Create {
                    new: pet.borrowed().into_owned(),
                    key: key.copied(),
                };
                check_size(pets.len())?;
                let work: Vec<Work> = pets.iter().map(create).collect();
                let done = cluster.commit_all(&work)?;
                let created = done.into_iter().filter_map(|done| match done {
                    Done::Created(outcome) => Some(outcome),
                    Done::Changed | Done::Overtaken => None,
                });
                Ok(created.collect())
            }
        }
    }

    /// Changes each of these pets in one transaction, which is committed if all that are named are there and as expected.
    /// Returns each as [`Change::of`] does.
    ///
    /// # Errors
    /// If one is not, or the database cannot be written.
    pub fn change(&mut self, ids: &[PetIds], change: &Change) -> Result<Vec<Pet<'static>>, Error> {
        match self {
            Self::File { writer, .. } => {
                writing(writer)?.transact(|writer| change_in_file(writer, ids, change))
            }
            Self::Cluster {
                is_read_only: true, ..
            } => Err(read_only().into()),
            Self::Cluster { cluster, .. } => {
                let begun = Instant::now();
                loop {
                    let (work, changed) = planned(cluster, ids, change)?;
                    match cluster.commit_all(&work) {
                        Err(error) if error.is_overtaken() && begun.elapsed() < CONTENDS_FOR => {}
                        Err(error) => return Err(error.into()),
                        Ok(_) => return Ok(changed),
                    }
                }
            }
        }
    }

    /// The pet with this id; `None` if there is none.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn get(&mut self, id: i64) -> Result<Option<Pet<'static>>, Error> {
        match self {
            Self::File { reader, .. } => {
                read(reader, |store| store.pet(id, |pet| pet.into_owned()))
            }
            Self::Cluster { cluster, .. } => {
                cluster.begin()?;
                Ok(cluster.pets(&[id])?.remove(&id))
            }
        }
    }

    /// The pets of a list, and one more if more follow.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn list(&mut self, query: &PetQuery) -> Result<Vec<Pet<'static>>, Error> {
        match self {
            Self::File { reader, .. } => read(reader, |store| {
                let mut pets = Vec::new();
                store.visit_pets(query, |pet| {
                    pets.push(pet.into_owned());
                    ControlFlow::Continue(())
                })?;
                Ok(pets)
            }),
            Self::Cluster { cluster, .. } => {
                cluster.begin()?;
                let enough = |pets: &[Pet]| pets.len() >= query.page.rows() as usize;
                Ok(listed(cluster, *query, enough)?)
            }
        }
    }

    /// Counts the pets with each status.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn counts(&mut self) -> Result<PetCounts, Error> {
        match self {
            Self::File { reader, .. } => read(reader, Reader::count_pets),
            Self::Cluster { cluster, .. } => {
                cluster.begin()?;
                Ok(cluster.counts()?)
            }
        }
    }
}

fn writing(writer: &mut Option<Writer>) -> Result<&mut Writer, StoreError> {
    writer.as_mut().ok_or_else(read_only)
}

fn read_only() -> StoreError {
    let why = "the inventory was opened read-only".to_owned();
    StoreError::Unavailable(Cause::ReadOnly, why)
}

/// Reads from one snapshot, which has everything that was acknowledged before.
fn read<T>(
    reader: &mut Reader,
    work: impl FnOnce(&Reader) -> Result<T, StoreError>,
) -> Result<T, Error> {
    let read = reader.begin().and_then(|()| work(reader));
    let ended = reader.end();
    let read = read?;
    ended?;
    Ok(read)
}

fn change_in_file(
    writer: &mut Writer,
    ids: &[PetIds],
    change: &Change,
) -> Result<Vec<Pet<'static>>, Error> {
    let mut changed = Vec::new();
    for ids in ids {
        let mut there = Vec::new();
        match *ids {
            PetIds::One(id) => there.push(id),
            PetIds::Range(from, to) => writer.visit_ids((from, to), |id| {
                there.push(id);
                ControlFlow::Continue(())
            })?,
        }
        for id in there {
            let cannot = |error: StoreError| {
                Error::from(error).context(format!("the pet {id} cannot be changed"))
            };
            let mut transaction = writer.transaction()?;
            let found = transaction.pet(id, |pet| change.of(&pet)).map_err(cannot)?;
            changed.push(found.ok_or_else(|| no_pet(id))??);
            let done = match change.patch {
                Some(patch) => transaction.update_pet(id, patch),
                None => transaction.delete_pet(id),
            };
            done.map_err(cannot)?;
        }
    }
    Ok(changed)
}

/// Checks that a cluster takes this many pets in one transaction, which is one request.
fn check_size(pets: usize) -> Result<(), Error> {
    if pets > MOST_PETS {
        let message = format!("a cluster takes at most {MOST_PETS} pets in one transaction");
        return fail(ErrorKind::InvalidInput, message);
    }
    Ok(())
}

/// The work that changes pets of a cluster as they are now, and the pets as [`Change::of`] returns them.
fn planned(
    cluster: &mut Cluster,
    ids: &[PetIds],
    change: &Change,
) -> Result<(Vec<Work>, Vec<Pet<'static>>), Error> {
    cluster.begin()?;
    let named: Vec<i64> = ids
        .iter()
        .filter_map(|ids| match ids {
            PetIds::One(id) => Some(*id),
            PetIds::Range(..) => None,
        })
        .collect();
    check_size(named.len())?;
    let mut pets = cluster.pets(&named)?;
    let mut there = Vec::new();
    for ids in ids {
        match *ids {
            PetIds::One(id) => there.push((id, true)),
            PetIds::Range(from, to) => {
                for pet in pets_between(cluster, from, to)? {
                    there.push((pet.id, false));
                    pets.insert(pet.id, pet);
                }
            }
        }
        check_size(there.len())?;
    }
    let (mut work, mut changed) = (Vec::new(), Vec::new());
    for (id, is_named) in there {
        let Some(old) = pets.remove(&id) else {
            if is_named {
                return Err(no_pet(id));
            }
            // It was deleted by an earlier range.
            continue;
        };
        let new = change.of(&old)?;
        let left = change.patch.map(|_| new.clone());
        pets.extend(left.clone().map(|pet| (id, pet)));
        changed.push(new);
        work.push(Work::Change { old, new: left });
    }
    Ok((work, changed))
}

/// The pets of a range: all of them, or more than a cluster takes.
fn pets_between(cluster: &Cluster, from: i64, to: i64) -> Result<Vec<Pet<'static>>, StoreError> {
    let (limit, after) = (AT_ONCE, from.checked_sub(1));
    let query = PetQuery::all(Page::ascending(limit, after));
    let is_past =
        |pets: &[Pet]| pets.len() > MOST_PETS || pets.last().is_some_and(|last| last.id > to);
    let mut found = listed(cluster, query, is_past)?;
    found.retain(|pet| pet.id <= to);
    Ok(found)
}

/// The pets of a list, page by page, until there are enough or no more.
fn listed(
    cluster: &Cluster,
    mut query: PetQuery,
    enough: impl Fn(&[Pet]) -> bool,
) -> Result<Vec<Pet<'static>>, StoreError> {
    let mut found = Vec::new();
    while !enough(&found) {
        let pets = cluster.list(&query)?;
        let Some(last) = pets.last() else {
            break;
        };
        query.page.after = Some(last.id);
        found.extend(pets);
    }
    Ok(found)
}
