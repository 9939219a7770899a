//! The statements of import and export: all pets out, and many in.

use std::ops::ControlFlow;

use rusqlite::{Row, ToSql, params};

use super::pets::pet;
use super::statements::{ADD_SEQUENCE, EVERY, IMPORTED, INSERT_AS, LAST_ID, RAISE_SEQUENCE};
use super::{Reader, StoreError, Writer};
use crate::model::{NewPet, Pet};
use petstore_base::clock::unix_time;

const NOTE_IMPORT: &str = "INSERT INTO imports (input, at, first_id, last_id) VALUES (?1, ?2, ?3, ?4) \
    ON CONFLICT (input) DO UPDATE SET at = excluded.at, first_id = excluded.first_id, last_id = excluded.last_id";
const ADDED: &str =
    "SELECT count(*), ifnull(min(id), 0), ifnull(max(id), 0) FROM pets WHERE id > ?1";
const IDS_BETWEEN: &str = "SELECT id FROM pets WHERE id BETWEEN ?1 AND ?2 ORDER BY id";

/// An import that was carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImportNote {
    /// In Unix time.
    pub at: i64,
    /// The least and the greatest id that its pets got.
    pub ids: (i64, i64),
}

impl Reader {
    /// Passes every pet to `visit`, in ascending order of the ids, until `visit` stops. The memory it takes
    /// does not depend on their number.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn visit_every_pet(
        &self,
        mut visit: impl FnMut(Pet) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        // A single statement reads from one snapshot.
        self.rows(EVERY, &[], &mut |row| Ok(visit(pet(row)?)))
    }

    /// The greatest id ever assigned; 0 if none was.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn last_id(&self) -> Result<i64, StoreError> {
        self.one(LAST_ID)
    }

    /// Returns the import whose input has this digest; `None` if there was none.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn import(&self, input: &[u8]) -> Result<Option<ImportNote>, StoreError> {
        let read = |row: &Row| {
            let (at, least, greatest) = row.try_into()?;
            let ids = (least, greatest);
            Ok(ImportNote { at, ids })
        };
        self.first(IMPORTED, params![input], read)
    }

    /// Passes the ids of the pets from one id to another to `visit`, in ascending order, until it stops.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn visit_ids(
        &self,
        (from, to): (i64, i64),
        mut visit: impl FnMut(i64) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.rows(IDS_BETWEEN, params![from, to], &mut |row| {
            Ok(visit(row.get(0)?))
        })
    }

    /// The number of pets with a greater id than this one, and the least and the greatest of those ids; zeros if there is
    /// none.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn pets_above(&self, id: i64) -> Result<(i64, i64, i64), StoreError> {
        let found = self.first(ADDED, params![id], |row| row.try_into())?;
        Ok(found.ok_or(rusqlite::Error::QueryReturnedNoRows)?)
    }
}

impl Writer {
    /// Adds a pet that keeps its id to the batch.
    ///
    /// # Errors
    /// If the database cannot be written, or has this id already.
    pub fn insert_pet_as(&mut self, id: i64, new: &NewPet) -> Result<(), StoreError> {
        let values = new.values();
        let values: Vec<&dyn ToSql> = values
            .iter()
            .map(|value| value as &dyn ToSql)
            .chain([&id as _])
            .collect();
        self.change(INSERT_AS, &values)?;
        self.record(id, None, Some(&new.borrowed().with_id(id)))
    }

    /// Notes an import of an input with this digest, whose pets have got ids from the least to the greatest.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn note_import(
        &mut self,
        input: &[u8],
        (least, greatest): (i64, i64),
    ) -> Result<(), StoreError> {
        let values = params![input, unix_time(), least, greatest];
        self.change(NOTE_IMPORT, values).map(drop)
    }

    /// Makes new pets get ids greater than this one.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn reserve_ids(&mut self, last: i64) -> Result<(), StoreError> {
        let values = params![last, "pets"];
        self.change(RAISE_SEQUENCE, values)?;
        self.change(ADD_SEQUENCE, values).map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::super::pets::tests::new_pet;
    use super::super::tests::pair;

    #[test]
    fn reserved_ids_are_given_to_nobody_else() {
        let (_folder, mut writer, _reader) = pair();
        assert_eq!(writer.last_id(), Ok(0));
        for (reserved, given) in [(10, 11), (5, 12)] {
            writer.reserve_ids(reserved).unwrap();
            let inserted = writer.insert_pet(&new_pet("Rex"), None).unwrap();
            writer.commit().unwrap();
            assert_eq!(inserted.id(), given);
        }
        writer.insert_pet_as(3, &new_pet("Tom")).unwrap();
        writer.commit().unwrap();
        assert_eq!(writer.last_id(), Ok(12));
    }

    #[test]
    fn last_id_counts_deleted_pets() {
        let (_folder, mut writer, _reader) = pair();
        writer.insert_pet(&new_pet("Rex"), None).unwrap();
        writer.transaction().unwrap().delete_pet(1).unwrap();
        writer.commit().unwrap();
        assert_eq!(writer.last_id(), Ok(1));
    }
}
