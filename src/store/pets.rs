//! The statements on pets.

use std::ops::ControlFlow;

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{OptionalExtension, Row, params};

use super::{Store, StoreError};
use crate::model::pet::{NewPet, Pet, PetStatus};

/// Which animals a page shows, in ascending order of their ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Page {
    /// At most as many.
    pub limit: u32,
    /// Only those of this status.
    pub status: Option<PetStatus>,
    /// Only ids greater than this one.
    pub after: i64,
}

impl ToSql for PetStatus {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.as_str().into())
    }
}

impl FromSql for PetStatus {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        PetStatus::parse(value.as_str()?).ok_or(rusqlite::types::FromSqlError::InvalidType)
    }
}

/// A row in the order id, name, category_id, status; the name stays in SQLite's memory.
fn pet<'r>(row: &'r Row<'_>) -> rusqlite::Result<Pet<'r>> {
    let name = row.get_ref(1)?;
    Ok(Pet {
        id: row.get(0)?,
        name: name.as_str().map_err(|error| {
            rusqlite::Error::FromSqlConversionFailure(1, name.data_type(), Box::new(error))
        })?,
        category_id: row.get(2)?,
        status: row.get(3)?,
    })
}

impl Store {
    /// Adds an animal to the batch and returns its id.
    ///
    /// # Errors
    /// Where the database cannot be written.
    pub fn insert_pet(&mut self, new: &NewPet) -> Result<i64, StoreError> {
        self.write(|connection| {
            connection
                .prepare_cached("INSERT INTO pets (name, category_id, status) VALUES (?1, ?2, ?3)")?
                .insert(params![new.name, new.category_id, new.status])
        })
    }

    /// Hands the animal with this id to `read`; `None` where there is none.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn pet<T>(&self, id: i64, read: impl FnOnce(Pet) -> T) -> Result<Option<T>, StoreError> {
        Ok(self
            .connection
            .prepare_cached("SELECT id, name, category_id, status FROM pets WHERE id = ?1")?
            .query_row([id], |row| Ok(read(pet(row)?)))
            .optional()?)
    }

    /// Hands the animals of a page to `visit`, one after the other, and one more where more follow,
    /// until it breaks off.
    ///
    /// # Errors
    /// Where the database cannot be read.
    pub fn visit_pets(
        &self,
        page: &Page,
        mut visit: impl FnMut(Pet) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let limit = page.limit + 1;
        let mut statement;
        let mut rows = if let Some(status) = page.status {
            statement = self.connection.prepare_cached(
                "SELECT id, name, category_id, status FROM pets \
                 WHERE status = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
            )?;
            statement.query(params![status, page.after, limit])?
        } else {
            statement = self.connection.prepare_cached(
                "SELECT id, name, category_id, status FROM pets WHERE id > ?1 ORDER BY id LIMIT ?2",
            )?;
            statement.query(params![page.after, limit])?
        };
        while let Some(row) = rows.next()? {
            if visit(pet(row)?).is_break() {
                break;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::tests::Folder;
    use super::*;

    pub fn new_pet(name: &str) -> NewPet<'_> {
        NewPet { name: name.into(), category_id: 1, status: Some(PetStatus::Available) }
    }

    pub fn names(store: &mut Store) -> Vec<String> {
        let mut names = Vec::new();
        store.begin_batch().unwrap();
        let all = Page { limit: 100, status: None, after: i64::MIN };
        store
            .visit_pets(&all, |pet| {
                names.push(pet.name.to_owned());
                ControlFlow::Continue(())
            })
            .unwrap();
        store.end_batch().unwrap();
        names
    }

    #[test]
    fn ids_ascend_and_are_never_used_again() {
        let folder = Folder::new();
        let mut store = Store::open_writer(&folder.database()).unwrap();
        let first = store.insert_pet(&new_pet("a")).unwrap();
        let second = store.insert_pet(&new_pet("b")).unwrap();
        assert!(second > first);
        store.end_batch().unwrap();
        store.connection.execute("DELETE FROM pets", []).unwrap();
        assert!(store.insert_pet(&new_pet("c")).unwrap() > second);
    }

    #[test]
    fn pages_read_only_their_rows() {
        let folder = Folder::new();
        let store = Store::open_writer(&folder.database()).unwrap();
        let plan = |sql: &str, values: &[&dyn ToSql]| -> String {
            store
                .connection
                .query_row(&format!("EXPLAIN QUERY PLAN {sql}"), values, |row| row.get::<_, String>(3))
                .unwrap()
        };
        let filtered = plan(
            "SELECT id, name FROM pets WHERE status = ?1 AND id > ?2 ORDER BY id LIMIT ?3",
            params![PetStatus::Sold, 5, 20],
        );
        assert!(filtered.contains("INDEX pets_by_status (status=? AND rowid>?)"), "{filtered}");
        let plain = plan("SELECT id, name FROM pets WHERE id > ?1 ORDER BY id LIMIT ?2", params![5, 20]);
        assert!(plain.contains("INTEGER PRIMARY KEY (rowid>?)"), "{plain}");
    }

    #[test]
    fn adding_a_row_builds_no_table_in_memory() {
        let folder = Folder::new();
        let store = Store::open_writer(&folder.database()).unwrap();
        let mut program = store
            .connection
            .prepare("EXPLAIN INSERT INTO pets (name, category_id, status) VALUES ('a', 1, 'sold')")
            .unwrap();
        let steps: Vec<String> = program.query_map([], |row| row.get("opcode")).unwrap().flatten().collect();
        assert!(steps.iter().any(|step| step == "IdxInsert"), "{steps:?}");
        assert!(!steps.iter().any(|step| step == "OpenEphemeral"), "{steps:?}");
    }

    #[test]
    fn other_statuses_are_refused_by_the_table_too() {
        let folder = Folder::new();
        let store = Store::open_writer(&folder.database()).unwrap();
        let add = |status: &str| {
            store.connection.execute(
                &format!("INSERT INTO pets (name, category_id, status) VALUES ('a', 1, {status})"),
                [],
            )
        };
        for status in ["NULL", "'available'", "'pending'", "'sold'"] {
            assert_eq!(add(status), Ok(1), "{status}");
        }
        for status in ["''", "'Sold'", "'lost'", "0"] {
            assert!(add(status).unwrap_err().to_string().contains("CHECK"), "{status}");
        }
    }

    #[test]
    fn names_are_kept_to_the_letter() {
        let folder = Folder::new();
        let mut store = Store::open_writer(&folder.database()).unwrap();
        for name in ["", " ", "a\0b", "'; DROP TABLE pets; --", "\u{1f600}\u{202e}", "e\u{301}"] {
            let id = store.insert_pet(&new_pet(name)).unwrap();
            assert_eq!(store.pet(id, |pet| pet.name.to_owned()), Ok(Some(name.to_owned())));
        }
    }
}
