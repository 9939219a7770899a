//! Pets without HTTP, for programs that embed the library and for the command line: add, get, list, count, change and
//! delete them.

use std::collections::HashSet;
use std::fmt;
use std::ops::ControlFlow;
use std::path::Path;
use std::slice;

use serde::{Deserialize, Serialize};

use crate::base::error::{Error, ErrorKind, fail};
use crate::base::http::limits::MAX_BODY_BYTES;
use crate::model::{self, Page, PetCounts, PetQuery, PetStatus};
use crate::store::{Cause, Outcome, Reader, StoreError, Transaction, Writer};

/// The pets of a database, without HTTP.
///
/// A server may have the database at the same time, in this process or in another one: then its clients see an added pet
/// at once. [`Server::inventory`](crate::Server::inventory) opens the database of a server.
///
/// An inventory has connections of its own. It is `Send`, but not `Sync`: give each thread its own, or share one in a
/// `Mutex`. Only one connection of all processes writes at a time, and reads never wait. [`add`](Self::add) waits up to
/// 5 seconds for the others, and then fails with [`ErrorKind::DatabaseLocked`].
///
/// ```
/// use petstore::{Inventory, ListOptions, NewPet, PetPatch, PetStatus};
///
/// # let folder = std::env::temp_dir().join(format!("petstore-doc-inventory-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// # let database = folder.join("pets.db");
/// let mut inventory = Inventory::open(&database)?;
/// let rex = inventory.add(&NewPet::new("Rex", 3).status(PetStatus::Available))?;
/// let tom: NewPet = serde_json::from_str(r#"{"name":"Tom","categoryId":3}"#)?;
/// inventory.add_all(&[tom, NewPet::new("Ada", 4)])?;
///
/// let sold = inventory.update(&[rex.id], &PetPatch::new().status(PetStatus::Sold))?;
/// assert_eq!(inventory.get(rex.id)?.as_ref(), sold.first());
/// let mut options = ListOptions::default();
/// options.limit = 2;
/// let page = inventory.list(&options)?;
/// options.after = page.last().map(|pet| pet.id);
/// assert_eq!(inventory.list(&options)?[0].name, "Ada");
/// # drop(inventory);
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Inventory {
    // Before the writer, which removes the log when it is the last to close.
    reader: Reader,
    /// `None` if it only reads.
    writer: Option<Writer>,
}

impl fmt::Debug for Inventory {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Inventory").field("writes", &self.writer.is_some()).finish_non_exhaustive()
    }
}

/// A pet in the inventory. Its JSON is that of the HTTP interface.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct Pet {
    /// The identifier. Identifiers ascend, and are never used again.
    pub id: i64,
    /// The name, which can be empty.
    pub name: String,
    /// The identifier of the category that the pet belongs to.
    pub category_id: i64,
    /// The availability; `None` if the pet was added without one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PetStatus>,
}

/// A pet to add. Its JSON is that of the HTTP interface.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[non_exhaustive]
pub struct NewPet {
    /// The name: any text of up to 64 KiB, even an empty one.
    pub name: String,
    /// The identifier of the category that the pet belongs to.
    pub category_id: i64,
    /// The availability. By default none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<PetStatus>,
}

/// A change to pets. A field that is not set stays as it is.
///
/// ```
/// use petstore::{PetPatch, PetStatus};
///
/// let sold = PetPatch::new().status(PetStatus::Sold);
/// let renamed = PetPatch::new().name("Rex").status(None);
/// # assert_ne!(sold, renamed);
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PetPatch {
    /// The new name: any text of up to 64 KiB.
    pub name: Option<String>,
    /// The identifier of the new category.
    pub category_id: Option<i64>,
    /// The new status. `Some(None)` removes the status.
    pub status: Option<Option<PetStatus>>,
}

impl PetPatch {
    /// Changes nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the [`name`](Self#structfield.name).
    pub fn name(self, name: impl Into<String>) -> Self {
        Self { name: Some(name.into()), ..self }
    }

    /// Sets the [`category_id`](Self#structfield.category_id).
    pub fn category_id(self, category_id: i64) -> Self {
        Self { category_id: Some(category_id), ..self }
    }

    /// Sets the [`status`](Self#structfield.status); `None` removes it.
    pub fn status(self, status: impl Into<Option<PetStatus>>) -> Self {
        Self { status: Some(status.into()), ..self }
    }
}

/// The choice of a list. The default is the first 20 pets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct ListOptions {
    /// The most pets. By default 20. A list with fewer pets is the last one.
    pub limit: u32,
    /// Only pets with higher ids than this one, such as that of the last pet of the list before. By default all.
    pub after: Option<i64>,
    /// Only pets with this status. By default all.
    pub status: Option<PetStatus>,
}

impl Default for ListOptions {
    fn default() -> Self {
        Self { limit: 20, after: None, status: None }
    }
}

impl NewPet {
    /// A pet without a status.
    pub fn new(name: impl Into<String>, category_id: i64) -> Self {
        Self { name: name.into(), category_id, status: None }
    }

    /// Sets the [`status`](Self#structfield.status).
    pub fn status(self, status: PetStatus) -> Self {
        Self { status: Some(status), ..self }
    }

    /// The pet for the store.
    fn checked(&self) -> Result<model::NewPet<'_>, Error> {
        check_name(&self.name)?;
        let Self { name, category_id, status } = self;
        Ok(model::NewPet { name: name.into(), category_id: *category_id, status: *status })
    }
}

fn check_name(name: &str) -> Result<(), Error> {
    if name.len() > MAX_BODY_BYTES {
        let message =
            format!("the name of a pet has {} bytes, and at most {MAX_BODY_BYTES} are allowed", name.len());
        return fail(ErrorKind::InvalidInput, message);
    }
    Ok(())
}

impl From<model::Pet<'_>> for Pet {
    fn from(model::Pet { id, name, category_id, status }: model::Pet) -> Self {
        Self { id, name: name.to_owned(), category_id, status }
    }
}

impl Inventory {
    /// Opens a database, and creates it if it does not exist.
    ///
    /// While an inventory is open, treat the file as you would that of a server: see
    /// [`Config::database`](crate::Config#structfield.database).
    ///
    /// # Errors
    /// [`ErrorKind::DatabaseOlder`] if a service must migrate it first, and the kinds of a database that cannot be opened
    /// or created, such as [`ErrorKind::DatabaseForeign`] or [`ErrorKind::PermissionDenied`].
    pub fn open(database: &Path) -> Result<Self, Error> {
        // The writer first: it creates the database.
        let writer = Writer::open(database)?;
        Ok(Self { reader: Reader::open(database)?, writer: Some(writer) })
    }

    /// Opens an existing database only to read it.
    ///
    /// # Errors
    /// [`ErrorKind::DatabaseMissing`] if it does not exist, and the kinds of a database that cannot be opened.
    pub fn open_to_read(database: &Path) -> Result<Self, Error> {
        Ok(Self { reader: Reader::open(database)?, writer: None })
    }

    /// Adds a pet, and returns it with its id. It is then flushed to the disk.
    ///
    /// # Errors
    /// Those of [`add_all`](Self::add_all).
    pub fn add(&mut self, pet: &NewPet) -> Result<Pet, Error> {
        let added = self.add_all(slice::from_ref(pet))?.pop();
        added.ok_or_else(|| Error::new(ErrorKind::Internal, "the pet was not added"))
    }

    /// Adds pets in one transaction with one flush, and returns them with their ids. On a failure none is added. Others
    /// cannot write until it returns, so add some thousands at a time, or use an [`Import`](crate::Import).
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if a name is too long, [`ErrorKind::DatabaseLocked`] if another connection writes for
    /// more than 5 seconds, [`ErrorKind::DiskFull`], [`ErrorKind::PermissionDenied`] if the database can only be read,
    /// [`ErrorKind::DatabaseMoved`], [`ErrorKind::DatabaseDamaged`], and [`ErrorKind::Io`]. On a cluster also
    /// [`ErrorKind::Conflict`] and [`ErrorKind::DatabaseUnreachable`]. After [`ErrorKind::OutcomeUnknown`], the pets may have
    /// been added.
    pub fn add_all(&mut self, pets: &[NewPet]) -> Result<Vec<Pet>, Error> {
        let pets = pets.iter().map(NewPet::checked).collect::<Result<Vec<_>, _>>()?;
        let writer = self.writer()?;
        let inserted: Result<Vec<_>, _> = pets.iter().map(|pet| writer.insert_pet(pet, None)).collect();
        let inserted = inserted.inspect_err(|_| writer.undo())?;
        let committed = writer.commit()?;
        let added = pets.iter().zip(inserted).map(|(pet, inserted)| match inserted.outcome(&committed)? {
            Outcome::Made(id) | Outcome::Replayed(id) => Ok(pet.with_id(id).into()),
            Outcome::Reused => fail(ErrorKind::Internal, "a pet without a key was taken for another"),
        });
        added.collect()
    }

    /// Changes pets in one transaction, and returns them as they are then, flushed to the disk. On a failure none is
    /// changed.
    ///
    /// # Errors
    /// [`ErrorKind::PetUnknown`] if no pet has one of the ids, and those of [`add_all`](Self::add_all).
    pub fn update(&mut self, ids: &[i64], patch: &PetPatch) -> Result<Vec<Pet>, Error> {
        let PetPatch { name, category_id, status } = patch;
        name.as_deref().map_or(Ok(()), check_name)?;
        let name = name.as_ref().map(Into::into);
        let patch = model::PetPatch { name, category_id: *category_id, status: *status };
        self.change(ids, |transaction, id| {
            let found = transaction.pet(id, |pet| (pet.status, Pet::from(patch.apply(pet))))?;
            let Some((status, changed)) = found else { return Ok(None) };
            transaction.update_pet(id, status, &patch)?;
            Ok(Some(changed))
        })
    }

    /// Deletes pets in one transaction. On a failure none is deleted. The ids are never used again.
    ///
    /// # Errors
    /// [`ErrorKind::PetUnknown`] if no pet has one of the ids, or one is given twice, and those of
    /// [`add_all`](Self::add_all).
    pub fn delete(&mut self, ids: &[i64]) -> Result<(), Error> {
        let mut seen = HashSet::new();
        if let Some(id) = ids.iter().find(|id| !seen.insert(**id)) {
            return fail(ErrorKind::PetUnknown, format!("the id {id} is given twice; nothing was changed"));
        }
        let deleted = self.change(ids, |transaction, id| {
            let Some(status) = transaction.pet(id, |pet| pet.status)? else { return Ok(None) };
            transaction.delete_pet(id, status)?;
            Ok(Some(()))
        });
        deleted.map(drop)
    }

    /// Changes each of these pets in one transaction, which is committed if `change` finds all of them.
    fn change<T>(
        &mut self,
        ids: &[i64],
        mut change: impl FnMut(&mut Transaction, i64) -> Result<Option<T>, StoreError>,
    ) -> Result<Vec<T>, Error> {
        self.writer()?.transact(|writer| {
            let changed = ids.iter().map(|id| {
                let found = change(&mut writer.transaction()?, *id)
                    .map_err(|error| Error::from(error).context(format!("the pet {id} cannot be changed")))?;
                found.ok_or_else(|| {
                    Error::new(ErrorKind::PetUnknown, format!("there is no pet with the id {id}"))
                })
            });
            let changed: Result<_, Error> = changed.collect();
            changed.map_err(|why| if ids.len() > 1 { why.followed_by("nothing was changed") } else { why })
        })
    }

    /// The connection that writes.
    fn writer(&mut self) -> Result<&mut Writer, StoreError> {
        self.writer.as_mut().ok_or_else(|| {
            StoreError::Unavailable(Cause::ReadOnly, "the inventory was opened read-only".to_owned())
        })
    }

    /// Returns the pet with this id; `None` if there is none.
    ///
    /// # Errors
    /// The kinds of a database that cannot be read, such as [`ErrorKind::DatabaseMoved`] and
    /// [`ErrorKind::DatabaseDamaged`].
    pub fn get(&mut self, id: i64) -> Result<Option<Pet>, Error> {
        self.read(|store| store.pet(id, |pet| Pet::from(pet)))
    }

    /// Returns pets in ascending order of their ids.
    ///
    /// # Errors
    /// Those of [`get`](Self::get).
    pub fn list(&mut self, options: &ListOptions) -> Result<Vec<Pet>, Error> {
        let ListOptions { limit, after, status } = *options;
        let query = PetQuery { page: Page { limit, after }, status };
        let mut pets = Vec::new();
        let add = |pet: model::Pet| {
            if pets.len() == limit as usize {
                return ControlFlow::Break(());
            }
            pets.push(pet.into());
            ControlFlow::Continue(())
        };
        self.read(|store| store.visit_pets(&query, add))?;
        Ok(pets)
    }

    /// Counts the pets with each status. This takes a tenth of a second for a million pets.
    ///
    /// # Errors
    /// Those of [`get`](Self::get).
    pub fn counts(&mut self) -> Result<PetCounts, Error> {
        self.read(Reader::count_pets)
    }

    /// Reads from one snapshot, which has everything that was acknowledged before.
    fn read<T>(&mut self, work: impl FnOnce(&Reader) -> Result<T, StoreError>) -> Result<T, Error> {
        let read = self.reader.begin().and_then(|()| work(&self.reader));
        let ended = self.reader.end();
        let read = read?;
        ended?;
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::store::tests::{lose_pets, refuse_writes};
    use crate::testing::Folder;

    fn kind<T: fmt::Debug>(failed: Result<T, Error>) -> ErrorKind {
        failed.unwrap_err().kind()
    }

    fn inventory() -> (Folder, Inventory) {
        let folder = Folder::new();
        let inventory = Inventory::open(&folder.database()).unwrap();
        (folder, inventory)
    }

    #[test]
    fn pets_are_counted_by_status() {
        let (_folder, mut inventory) = inventory();
        inventory.add(&NewPet::new("a", 1)).unwrap();
        inventory.add(&NewPet::new("b", 1).status(PetStatus::Sold)).unwrap();
        let counts = inventory.counts().unwrap();
        let words = [("available", 0), ("pending", 0), ("sold", 1), ("unset", 1)];
        assert_eq!((counts.by_word(), counts.total), (words, 2));
    }

    #[test]
    fn inventory_moves_between_threads() {
        fn is_send<T: Send>() {}
        is_send::<Inventory>();
    }

    #[test]
    fn json_is_that_of_the_interface() {
        let (_folder, mut inventory) = inventory();
        for body in [
            r#"{"name":"","categoryId":-9223372036854775808}"#,
            r#"{"name":"a\"b","categoryId":2,"status":"sold"}"#,
        ] {
            let new: NewPet = serde_json::from_str(body).unwrap();
            assert_eq!(serde_json::to_string(&new).unwrap(), body);
            assert_eq!(new.checked().unwrap(), model::NewPet::from_json(body.as_bytes()).unwrap());
            let pet = inventory.add(&new).unwrap();
            let json = serde_json::to_string(&pet).unwrap();
            assert_eq!(json, body.replacen('{', &format!("{{\"id\":{},", pet.id), 1));
            assert_eq!(serde_json::from_str::<Pet>(&json).unwrap(), pet);
        }
        let wrong =
            serde_json::from_str::<NewPet>(r#"{"name":"","categoryId":1,"status":"Sold"}"#).unwrap_err();
        assert!(
            wrong.to_string().starts_with("must be 'available', 'pending' or 'sold', not another"),
            "{wrong}"
        );
    }

    #[test]
    fn lists_have_pages_and_a_filter() {
        let (_folder, mut inventory) = inventory();
        let pets = ["a", "b", "c", "d"].map(|name| NewPet::new(name, 1));
        let [a, b, c, d] = pets;
        let sold = |pet: NewPet| pet.status(PetStatus::Sold);
        let added = inventory.add_all(&[a, sold(b), c, sold(d)]).unwrap();
        let mut listed = |limit, after, status| {
            let names = inventory.list(&ListOptions { limit, after, status }).unwrap();
            names.into_iter().map(|pet| pet.name).collect::<String>()
        };
        let sold = Some(PetStatus::Sold);
        assert_eq!(
            [listed(20, None, None), listed(4, None, None), listed(3, None, None)],
            ["abcd", "abcd", "abc"]
        );
        assert_eq!([listed(2, Some(added[0].id), None), listed(9, None, sold)], ["bc", "bd"]);
        assert_eq!([listed(0, None, None), listed(1, Some(i64::MAX), None)], ["", ""]);
        assert_eq!(inventory.get(added[3].id).unwrap().as_ref(), added.last());
        assert_eq!(inventory.get(5).unwrap(), None);
        assert_eq!(inventory.add_all(&[]).unwrap(), []);
    }

    #[test]
    fn all_pets_are_changed_or_none() {
        let (_folder, mut inventory) = inventory();
        inventory.add_all(&["a", "b", "c"].map(|name| NewPet::new(name, 1))).unwrap();
        let patch = PetPatch::new().name("x").category_id(9).status(PetStatus::Sold);
        for ids in [&[1, 9][..], &[9], &[2, 1, 9]] {
            assert_eq!(kind(inventory.update(ids, &patch)), ErrorKind::PetUnknown);
            assert_eq!(kind(inventory.delete(ids)), ErrorKind::PetUnknown);
        }
        assert_eq!(kind(inventory.delete(&[1, 1])), ErrorKind::PetUnknown);
        let names = |inventory: &mut Inventory| {
            let pets = inventory.list(&ListOptions::default()).unwrap();
            pets.into_iter().map(|pet| pet.name).collect::<String>()
        };
        assert_eq!(names(&mut inventory), "abc");
        let changed = inventory.update(&[3, 1], &patch).unwrap();
        let pet = |id| Pet { id, name: "x".to_owned(), category_id: 9, status: Some(PetStatus::Sold) };
        assert_eq!(changed, [pet(3), pet(1)]);
        assert_eq!(inventory.get(3).unwrap(), Some(pet(3)));
        assert_eq!(inventory.update(&[1], &PetPatch::new().status(None)).unwrap()[0].status, None);
        inventory.delete(&[1, 2]).unwrap();
        assert_eq!(names(&mut inventory), "x");
        assert_eq!(inventory.update(&[], &patch).unwrap(), []);
    }

    #[test]
    fn name_that_is_too_long_adds_none() {
        let (_folder, mut inventory) = inventory();
        let long = |bytes| NewPet::new("x".repeat(bytes), 1);
        let failed = inventory.add_all(&[long(1), long(MAX_BODY_BYTES + 1)]);
        assert_eq!(kind(failed), ErrorKind::InvalidInput);
        let patch = PetPatch::new().name("x".repeat(MAX_BODY_BYTES + 1));
        assert_eq!(kind(inventory.update(&[1], &patch)), ErrorKind::InvalidInput);
        assert_eq!(inventory.add(&long(MAX_BODY_BYTES)).unwrap().id, 1);
    }

    #[test]
    fn failures_have_kinds_and_pass() {
        let (folder, mut inventory) = inventory();
        let new = NewPet::new("Rex", 1);
        let mut other = Writer::open(&folder.database()).unwrap();
        other.open_transaction().unwrap();
        inventory.writer.as_mut().unwrap().set_busy_timeout(Duration::ZERO);
        assert_eq!(kind(inventory.add(&new)), ErrorKind::DatabaseLocked);
        assert_eq!(inventory.list(&ListOptions::default()).unwrap(), []);
        other.undo();
        assert_eq!(inventory.add(&new).unwrap().id, 1);

        let writer = inventory.writer.as_ref().unwrap();
        crate::store::tests::run(writer, "PRAGMA max_page_count = 1");
        let large = NewPet::new("x".repeat(MAX_BODY_BYTES), 1);
        assert_eq!(kind(inventory.add_all(&[new.clone(), large.clone()])), ErrorKind::DiskFull);
        crate::store::tests::run(inventory.writer.as_ref().unwrap(), "PRAGMA max_page_count = 1000000");
        assert_eq!(inventory.list(&ListOptions::default()).unwrap().len(), 1);

        refuse_writes(inventory.writer.as_ref().unwrap(), true);
        assert_eq!(kind(inventory.add(&new)), ErrorKind::PermissionDenied);
        refuse_writes(inventory.writer.as_ref().unwrap(), false);
        assert_eq!(inventory.add(&large).unwrap().id, 2);

        lose_pets(inventory.writer.as_ref().unwrap());
        assert_eq!(kind(inventory.get(1)), ErrorKind::DatabaseDamaged);
        assert_eq!(kind(inventory.add(&new)), ErrorKind::DatabaseDamaged);
    }

    #[test]
    fn inventory_that_only_reads_adds_nothing() {
        let (folder, mut inventory) = inventory();
        let rex = inventory.add(&NewPet::new("Rex", 1)).unwrap();
        let mut only = Inventory::open_to_read(&folder.database()).unwrap();
        assert_eq!(kind(only.add(&NewPet::new("Tom", 1))), ErrorKind::PermissionDenied);
        assert_eq!(only.get(rex.id).unwrap(), Some(rex));
        let missing = Inventory::open_to_read(&folder.0.join("missing"));
        assert_eq!(kind(missing), ErrorKind::DatabaseMissing);
    }

    #[test]
    fn last_inventory_leaves_one_file() {
        let (folder, mut inventory) = inventory();
        inventory.add(&NewPet::new("Rex", 1)).unwrap();
        inventory.get(1).unwrap();
        drop(inventory);
        assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 1);
    }
}
