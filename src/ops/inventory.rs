//! Pets without HTTP, for programs that embed the library and for the command line: add, get, list, count, change and
//! delete them.

use std::collections::HashSet;
use std::path::Path;
use std::slice;

use super::pet_store::{Change, PetIds, PetStore};
use crate::model::{
    Caller, IdempotencyKey, NewPet, Page, Pet, PetCounts, PetPatch, PetQuery, PetStatus,
};
use crate::store::Outcome;
use petstore_base::error::{Error, ErrorKind, fail};
use petstore_base::http::limits::MAX_BODY_BYTES;
use petstore_base::json::Invalid;

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
#[derive(Debug)]
pub struct Inventory {
    store: PetStore,
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
        Self {
            limit: 20,
            after: None,
            status: None,
        }
    }
}

/// Checks the members of a pet, and that a request could have them.
fn check(patch: &PetPatch) -> Result<(), Error> {
    let invalid = |why: Invalid| Error::new(ErrorKind::InvalidInput, why.into_message());
    patch.check().map_err(invalid)?;
    let bytes = patch.name.as_deref().map_or(0, str::len);
    if bytes > MAX_BODY_BYTES {
        let message = format!(
            "the name of a pet has {bytes} bytes, and at most {MAX_BODY_BYTES} are allowed"
        );
        return fail(ErrorKind::InvalidInput, message);
    }
    Ok(())
}

fn each(ids: &[i64]) -> Vec<PetIds> {
    ids.iter().copied().map(PetIds::One).collect()
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
        Ok(Self {
            store: PetStore::open(database)?,
        })
    }

    /// Opens an existing database only to read it.
    ///
    /// # Errors
    /// [`ErrorKind::DatabaseMissing`] if it does not exist, and the kinds of a database that cannot be opened.
    pub fn open_to_read(database: &Path) -> Result<Self, Error> {
        Ok(Self {
            store: PetStore::open_to_read(database)?,
        })
    }

    /// Sets the name under which changes by this inventory are recorded (see [`keep_changes`](crate::keep_changes)), such as
    /// that of your program. By default none.
    pub fn change_as(&mut self, name: &str) {
        self.store.change_as(name);
    }

    /// Adds a pet, and returns it with its id. It is then flushed to the disk.
    ///
    /// # Errors
    /// Those of [`add_all`](Self::add_all).
    pub fn add(&mut self, pet: &NewPet) -> Result<Pet<'static>, Error> {
        self.insert_one(pet, None)
    }

    /// Adds a pet as [`add`](Self::add) does, unless a call with the same `key` has added it within the last 24 hours: then
    /// returns that pet as it was added. So after [`ErrorKind::OutcomeUnknown`], or if your program ended in between, call it
    /// again with the same key. Keys of HTTP clients are others, even with the same text.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if another pet was added with this key, and those of [`add_all`](Self::add_all).
    pub fn add_once(&mut self, pet: &NewPet, key: &str) -> Result<Pet<'static>, Error> {
        let key = IdempotencyKey::new(Caller::host(), key.as_bytes());
        self.insert_one(pet, Some(&key))
    }

    fn insert_one(
        &mut self,
        pet: &NewPet,
        key: Option<&IdempotencyKey>,
    ) -> Result<Pet<'static>, Error> {
        let mut added = self.insert(slice::from_ref(pet), key)?;
        Ok(added.remove(0))
    }

    /// Adds pets in one transaction with one flush, and returns them with their ids. On a failure none is added. Others
    /// cannot write until it returns, so add some thousands at a time, or use an [`Import`](crate::Import).
    ///
    /// # Errors
    /// [`ErrorKind::InvalidInput`] if a name is too long, [`ErrorKind::DatabaseLocked`] if another connection writes for
    /// more than 5 seconds, [`ErrorKind::DiskFull`], [`ErrorKind::PermissionDenied`] if the database can only be read,
    /// [`ErrorKind::DatabaseMoved`], [`ErrorKind::DatabaseDamaged`], and [`ErrorKind::Io`]. On a cluster also
    /// [`ErrorKind::InvalidInput`] for more than 4,096 pets, [`ErrorKind::Conflict`] and [`ErrorKind::DatabaseUnreachable`]. After [`ErrorKind::OutcomeUnknown`], the pets may have
    /// been added.
    pub fn add_all(&mut self, pets: &[NewPet]) -> Result<Vec<Pet<'static>>, Error> {
        self.insert(pets, None)
    }

    fn insert(
        &mut self,
        pets: &[NewPet],
        key: Option<&IdempotencyKey>,
    ) -> Result<Vec<Pet<'static>>, Error> {
        for pet in pets {
            check(&pet.borrowed().into())?;
        }
        let outcomes = self.store.insert(pets, key)?;
        let added = pets
            .iter()
            .zip(outcomes)
            .map(|(pet, outcome)| match outcome {
                Outcome::Made(id) | Outcome::Replayed(id) => {
                    Ok(pet.clone().with_id(id).into_owned())
                }
                Outcome::Reused => fail(
                    ErrorKind::InvalidInput,
                    "another pet was added with this idempotency key; nothing was added",
                ),
            });
        added.collect()
    }

    /// Changes pets in one transaction, and returns them as they are then, flushed to the disk. On a failure none is
    /// changed.
    ///
    /// # Errors
    /// [`ErrorKind::PetUnknown`] if no pet has one of the ids, and those of [`add_all`](Self::add_all).
    pub fn update(&mut self, ids: &[i64], patch: &PetPatch) -> Result<Vec<Pet<'static>>, Error> {
        self.update_all(&each(ids), patch)
    }

    /// Changes pets as [`update`](Self::update) does, also those of ranges.
    ///
    /// # Errors
    /// Those of [`update`](Self::update).
    pub fn update_all(
        &mut self,
        ids: &[PetIds],
        patch: &PetPatch,
    ) -> Result<Vec<Pet<'static>>, Error> {
        check(patch)?;
        self.change(ids, None, Some(patch))
    }

    /// Changes a pet if it is still as `expected`, as it was read, and returns it as it is then. So of two buyers, only one
    /// gets a pet.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] if the pet has changed since, and those of [`update`](Self::update).
    pub fn update_if_match(
        &mut self,
        expected: &Pet,
        patch: &PetPatch,
    ) -> Result<Pet<'static>, Error> {
        check(patch)?;
        self.change(&[PetIds::One(expected.id)], Some(expected), Some(patch))?;
        Ok(patch.apply(expected).into_owned())
    }

    /// Deletes a pet if it is still as `expected`, as it was read.
    ///
    /// # Errors
    /// Those of [`update_if_match`](Self::update_if_match).
    pub fn delete_if_match(&mut self, expected: &Pet) -> Result<(), Error> {
        let ids = [PetIds::One(expected.id)];
        self.change(&ids, Some(expected), None).map(drop)
    }

    /// Deletes pets in one transaction. On a failure none is deleted. The ids are never used again.
    ///
    /// # Errors
    /// [`ErrorKind::PetUnknown`] if no pet has one of the ids, or one is given twice, and those of
    /// [`add_all`](Self::add_all).
    pub fn delete(&mut self, ids: &[i64]) -> Result<(), Error> {
        self.delete_all(&each(ids)).map(drop)
    }

    /// Deletes pets as [`delete`](Self::delete) does, also those of ranges. Returns how many.
    ///
    /// # Errors
    /// Those of [`delete`](Self::delete).
    pub fn delete_all(&mut self, ids: &[PetIds]) -> Result<usize, Error> {
        let mut seen = HashSet::new();
        for ids in ids {
            if let PetIds::One(id) = ids
                && !seen.insert(id)
            {
                let message = format!("the id {id} is given twice; nothing was changed");
                return fail(ErrorKind::PetUnknown, message);
            }
        }
        Ok(self.change(ids, None, None)?.len())
    }

    fn change(
        &mut self,
        ids: &[PetIds],
        expected: Option<&Pet>,
        patch: Option<&PetPatch>,
    ) -> Result<Vec<Pet<'static>>, Error> {
        let changed = self.store.change(ids, &Change { expected, patch });
        changed.map_err(|why| {
            let is_one = matches!(ids, [PetIds::One(_)]);
            if is_one || why.kind() == ErrorKind::OutcomeUnknown {
                why
            } else {
                why.followed_by("nothing was changed")
            }
        })
    }

    /// Returns the pet with this id; `None` if there is none.
    ///
    /// # Errors
    /// The kinds of a database that cannot be read, such as [`ErrorKind::DatabaseMoved`] and
    /// [`ErrorKind::DatabaseDamaged`].
    pub fn get(&mut self, id: i64) -> Result<Option<Pet<'static>>, Error> {
        self.store.get(id)
    }

    /// Returns pets in ascending order of their ids.
    ///
    /// # Errors
    /// Those of [`get`](Self::get).
    pub fn list(&mut self, options: &ListOptions) -> Result<Vec<Pet<'static>>, Error> {
        let (limit, after) = (options.limit, options.after);
        let query = PetQuery {
            page: Page::ascending(limit, after),
            status: options.status,
        };
        let mut pets = self.store.list(&query)?;
        pets.truncate(limit as usize);
        Ok(pets)
    }

    /// Counts the pets with each status. This takes a tenth of a second for a million pets.
    ///
    /// # Errors
    /// Those of [`get`](Self::get).
    pub fn counts(&mut self) -> Result<PetCounts, Error> {
        self.store.counts()
    }
}

#[cfg(test)]
mod tests {
    use std::fmt;
    use std::time::Duration;

    use super::*;
    use crate::store::Writer;
    use crate::store::tests::{lose_pets, refuse_writes};
    use petstore_base::testing::Folder;

    fn kind<T: fmt::Debug>(failed: Result<T, Error>) -> ErrorKind {
        failed.unwrap_err().kind()
    }

    impl Inventory {
        fn file(&mut self) -> &mut Writer {
            match &mut self.store {
                PetStore::File {
                    writer: Some(writer),
                    ..
                } => writer,
                other => panic!("{other:?}"),
            }
        }
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
        inventory
            .add(&NewPet::new("b", 1).status(PetStatus::Sold))
            .unwrap();
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
            let pet = inventory.add(&new).unwrap();
            let json = serde_json::to_string(&pet).unwrap();
            assert_eq!(
                json,
                body.replacen('{', &format!("{{\"id\":{},", pet.id), 1)
            );
            assert_eq!(serde_json::from_str::<Pet>(&json).unwrap(), pet);
        }
        // As strict as the interface, and no stricter.
        let read = |json: &str| serde_json::from_str::<NewPet>(json);
        assert_eq!(
            read(r#"{"name":"","categoryId":1.0,"id":7}"#).unwrap(),
            NewPet::new("", 1)
        );
        for (json, said) in [
            (
                r#"{"name":"","categoryId":1,"status":"Sold"}"#,
                "The field 'status' must be 'available', 'pending' or 'sold'",
            ),
            (
                r#"{"name":"","categoryId":1,"status":null}"#,
                "The field 'status' must be ",
            ),
            (r#"{"name":"","name":"","categoryId":1}"#, "'name'"),
            (r#"{"categoryId":1}"#, "The field 'name' is missing"),
        ] {
            let wrong = read(json).unwrap_err().to_string();
            assert!(wrong.contains(said), "{json}: {wrong}");
        }
        assert!(
            serde_json::from_str::<Pet>(r#"{"name":"","categoryId":1}"#)
                .unwrap_err()
                .to_string()
                .contains("'id' is missing")
        );
        let patch: PetPatch =
            serde_json::from_reader(&br#"{"status":null,"categoryId":2e0}"#[..]).unwrap();
        assert_eq!(patch, PetPatch::new().status(None).category_id(2));
    }

    #[test]
    fn pet_is_added_once_with_a_key() {
        let (_folder, mut inventory) = inventory();
        let rex = NewPet::new("Rex", 1).status(PetStatus::Sold);
        let added = [(); 2].map(|()| inventory.add_once(&rex, "order 7").unwrap());
        assert_eq!(added[0], added[1]);
        assert_eq!(
            kind(inventory.add_once(&NewPet::new("Tom", 1), "order 7")),
            ErrorKind::InvalidInput
        );
        assert_eq!(inventory.add_once(&rex, "order 8").unwrap().id, 2);
        assert_eq!(inventory.counts().unwrap().total, 2);
    }

    #[test]
    fn pet_is_changed_only_as_it_was_read() {
        let (_folder, mut inventory) = inventory();
        let rex = inventory.add(&NewPet::new("Rex", 1)).unwrap();
        let sold = PetPatch::new().status(PetStatus::Sold);
        let now = inventory.update_if_match(&rex, &sold).unwrap();
        assert_eq!(inventory.get(rex.id).unwrap().as_ref(), Some(&now));
        assert_eq!(
            kind(inventory.update_if_match(&rex, &sold)),
            ErrorKind::Conflict
        );
        assert_eq!(kind(inventory.delete_if_match(&rex)), ErrorKind::Conflict);
        assert_eq!(inventory.get(rex.id).unwrap().as_ref(), Some(&now));
        inventory.delete_if_match(&now).unwrap();
        let gone = Pet::new(9, "Tom", 1);
        for pet in [&now, &gone] {
            assert_eq!(kind(inventory.delete_if_match(pet)), ErrorKind::PetUnknown);
            assert_eq!(
                kind(inventory.update_if_match(pet, &sold)),
                ErrorKind::PetUnknown
            );
        }
    }

    #[test]
    fn lists_have_pages_and_a_filter() {
        let (_folder, mut inventory) = inventory();
        let pets = ["a", "b", "c", "d"].map(|name| NewPet::new(name, 1));
        let [a, b, c, d] = pets;
        let sold = |pet: NewPet<'static>| pet.status(PetStatus::Sold);
        let added = inventory.add_all(&[a, sold(b), c, sold(d)]).unwrap();
        let mut listed = |limit, after, status| {
            let names = inventory
                .list(&ListOptions {
                    limit,
                    after,
                    status,
                })
                .unwrap();
            names.into_iter().map(|pet| pet.name).collect::<String>()
        };
        let sold = Some(PetStatus::Sold);
        assert_eq!(
            [
                listed(20, None, None),
                listed(4, None, None),
                listed(3, None, None)
            ],
            ["abcd", "abcd", "abc"]
        );
        assert_eq!(
            [listed(2, Some(added[0].id), None), listed(9, None, sold)],
            ["bc", "bd"]
        );
        assert_eq!(
            [listed(0, None, None), listed(1, Some(i64::MAX), None)],
            ["", ""]
        );
        assert_eq!(inventory.get(added[3].id).unwrap().as_ref(), added.last());
        assert_eq!(inventory.get(5).unwrap(), None);
        assert_eq!(inventory.add_all(&[]).unwrap(), []);
    }

    #[test]
    fn all_pets_are_changed_or_none() {
        let (_folder, mut inventory) = inventory();
        inventory
            .add_all(&["a", "b", "c"].map(|name| NewPet::new(name, 1)))
            .unwrap();
        let patch = PetPatch::new()
            .name("x")
            .category_id(9)
            .status(PetStatus::Sold);
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
        let pet = |id| Pet {
            id,
            name: "x".into(),
            category_id: 9,
            status: Some(PetStatus::Sold),
        };
        assert_eq!(changed, [pet(3), pet(1)]);
        assert_eq!(inventory.get(3).unwrap(), Some(pet(3)));
        assert_eq!(
            inventory
                .update(&[1], &PetPatch::new().status(None))
                .unwrap()[0]
                .status,
            None
        );
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
        assert_eq!(
            kind(inventory.update(&[1], &patch)),
            ErrorKind::InvalidInput
        );
        assert_eq!(inventory.add(&long(MAX_BODY_BYTES)).unwrap().id, 1);
    }

    #[test]
    fn failures_have_kinds_and_pass() {
        let (folder, mut inventory) = inventory();
        let new = NewPet::new("Rex", 1);
        let mut other = Writer::open(&folder.database()).unwrap();
        other.open_transaction().unwrap();
        inventory.file().set_busy_timeout(Duration::ZERO);
        assert_eq!(kind(inventory.add(&new)), ErrorKind::DatabaseLocked);
        assert_eq!(inventory.list(&ListOptions::default()).unwrap(), []);
        other.undo();
        assert_eq!(inventory.add(&new).unwrap().id, 1);

        crate::store::tests::run(inventory.file(), "PRAGMA max_page_count = 1");
        let large = NewPet::new("x".repeat(MAX_BODY_BYTES), 1);
        assert_eq!(
            kind(inventory.add_all(&[new.clone(), large.clone()])),
            ErrorKind::DiskFull
        );
        crate::store::tests::run(inventory.file(), "PRAGMA max_page_count = 1000000");
        assert_eq!(inventory.list(&ListOptions::default()).unwrap().len(), 1);

        refuse_writes(inventory.file(), true);
        assert_eq!(kind(inventory.add(&new)), ErrorKind::PermissionDenied);
        refuse_writes(inventory.file(), false);
        assert_eq!(inventory.add(&large).unwrap().id, 2);

        lose_pets(inventory.file());
        assert_eq!(kind(inventory.get(1)), ErrorKind::SchemaChanged);
        assert_eq!(kind(inventory.add(&new)), ErrorKind::SchemaChanged);
    }

    #[test]
    fn inventory_that_only_reads_adds_nothing() {
        let (folder, mut inventory) = inventory();
        let rex = inventory.add(&NewPet::new("Rex", 1)).unwrap();
        let mut only = Inventory::open_to_read(&folder.database()).unwrap();
        assert_eq!(
            kind(only.add(&NewPet::new("Tom", 1))),
            ErrorKind::PermissionDenied
        );
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
