//! The statements on pets.

use std::ops::ControlFlow;

use rusqlite::types::{FromSql, FromSqlResult, ToSql, ToSqlOutput, ValueRef};
use rusqlite::{OptionalExtension, Row, params};

use super::{Cause, Committed, Database, StoreError, Writer};
use crate::json::Word;
use crate::model::{NewPet, Pet, PetQuery, PetStatus};

/// A pet that waits for the commit.
#[derive(Debug, PartialEq)]
pub struct Inserted(i64);

impl Inserted {
    /// A pet that an earlier create has inserted.
    pub(super) fn earlier(id: i64) -> Self {
        Self(id)
    }

    /// The id, for other rows of the same batch.
    pub(super) fn unconfirmed(&self) -> i64 {
        self.0
    }

    /// Its id, which is valid only once its batch is committed.
    pub fn id(&self, _: &Committed) -> i64 {
        self.0
    }
}

const INSERT: &str = "INSERT INTO pets (name, category_id, status) VALUES (?1, ?2, ?3)";
const BY_ID: &str = "SELECT id, name, category_id, status FROM pets WHERE id = ?1";
/// The cost does not depend on how many pets come before the page.
pub(super) const PAGE: &str =
    "SELECT id, name, category_id, status FROM pets WHERE id >= ?1 ORDER BY id LIMIT ?2";
const PAGE_OF_STATUS: &str = "SELECT id, name, category_id, status FROM pets \
    WHERE status = ?1 AND id >= ?2 ORDER BY id LIMIT ?3";

const SET_STATUS: &str = "UPDATE pets SET status = ?2 WHERE id = ?1 RETURNING id, name, category_id, status";
const DELETE: &str = "DELETE FROM pets WHERE id = ?1";
const REFERRING: &str = "SELECT DISTINCT m.name FROM sqlite_schema m, pragma_foreign_key_list(m.name) f \
    WHERE m.type = 'table' AND f.[table] = 'pets' COLLATE NOCASE ORDER BY m.name";

impl ToSql for PetStatus {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(self.as_str().into())
    }
}

impl FromSql for PetStatus {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        PetStatus::of_str(value.as_str()?).ok_or(rusqlite::types::FromSqlError::InvalidType)
    }
}

/// A row in the order id, name, category_id, status; the name stays in SQLite's memory.
pub(super) fn pet<'r>(row: &'r Row<'_>) -> rusqlite::Result<Pet<'r>> {
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

impl Writer {
    /// Adds a pet to the batch.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn insert_pet(&mut self, new: &NewPet) -> Result<Inserted, StoreError> {
        let inserted = self.write(|connection| {
            let values = params![new.name, new.category_id, new.status];
            connection.prepare_cached(INSERT)?.insert(values).map(Inserted)
        });
        // The page of the sequences is that of the mark.
        self.has_mark |= inserted.is_ok();
        match inserted {
            // SQLite reports both cases as a full disk (sqlite.org/autoinc.html).
            Err(StoreError::Unavailable(Cause::Full, detail)) if self.last_id() == Ok(i64::MAX) => {
                Err(self.failed(StoreError::Unavailable(Cause::NoIds, detail)))
            }
            inserted => inserted,
        }
    }

    /// Changes the status of a pet in the batch, and passes the changed pet to `read`; `None` if there is no
    /// pet with this id.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn set_status<T>(
        &mut self,
        id: i64,
        status: PetStatus,
        read: impl FnOnce(Pet) -> T,
    ) -> Result<Option<T>, StoreError> {
        self.write(|connection| {
            let mut statement = connection.prepare_cached(SET_STATUS)?;
            statement.query_row(params![id, status], |row| Ok(read(pet(row)?))).optional()
        })
    }

    /// Deletes a pet in the batch; `false` if there is none with this id.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn delete_pet(&mut self, id: i64) -> Result<bool, StoreError> {
        Ok(self.change(DELETE, params![id])? == 1)
    }

    /// The tables of other programs whose rows refer to pets, if this is the error of a pet that they keep from being
    /// deleted; otherwise none.
    pub fn referring(&self, error: &StoreError) -> Vec<String> {
        let StoreError::Internal(detail) = error else { return Vec::new() };
        if !detail.contains("FOREIGN KEY") {
            return Vec::new();
        }
        let names = || {
            let mut statement = self.connection.prepare(REFERRING)?;
            statement.query_map([], |row| row.get(0))?.collect::<rusqlite::Result<Vec<String>>>()
        };
        names().unwrap_or_default()
    }

    /// Runs a statement within the batch, and returns how many rows it changed.
    pub(super) fn change(&mut self, sql: &str, values: &[&dyn ToSql]) -> Result<usize, StoreError> {
        self.write(|connection| connection.prepare_cached(sql)?.execute(values))
    }
}

impl Database {
    /// Passes the pet with this id to `read`; `None` if there is none.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn pet<T>(&self, id: i64, read: impl FnOnce(Pet) -> T) -> Result<Option<T>, StoreError> {
        let mut statement = self.connection()?.prepare_cached(BY_ID)?;
        Ok(statement.query_row([id], |row| Ok(read(pet(row)?))).optional()?)
    }

    /// Passes the pets of a list to `visit`, one after the other, and one more if more follow, until `visit`
    /// stops.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn visit_pets(
        &self,
        query: &PetQuery,
        mut visit: impl FnMut(Pet) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let Some(first) = query.page.first() else { return Ok(()) };
        let rows = query.page.rows();
        let visit = |row: &Row| Ok(visit(pet(row)?));
        match query.status {
            Some(status) => self.visit(PAGE_OF_STATUS, params![status, first, rows], visit),
            None => self.visit(PAGE, params![first, rows], visit),
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::tests::pair;
    use super::super::{Reader, Units};
    use super::*;
    use crate::model::Page;

    const ALL: PetQuery = PetQuery { page: Page { limit: 100, after: None }, status: None };

    pub fn new_pet(name: &str) -> NewPet<'_> {
        NewPet { name: name.into(), category_id: 1, status: Some(PetStatus::Available) }
    }

    /// The ids and names that a query returns, including the one more if more follow.
    fn shown(database: &Database, query: &PetQuery) -> Vec<(i64, String)> {
        let mut pets = Vec::new();
        let visit = |pet: Pet| {
            pets.push((pet.id, pet.name.to_owned()));
            ControlFlow::Continue(())
        };
        database.visit_pets(query, visit).unwrap();
        pets
    }

    pub fn count(database: &Database) -> usize {
        shown(database, &ALL).len()
    }

    pub fn names(reader: &mut Reader) -> Vec<String> {
        reader.begin().unwrap();
        let names = shown(reader, &ALL).into_iter().map(|(_, name)| name).collect();
        reader.end().unwrap();
        names
    }

    fn insert_with_id(writer: &Writer, id: i64) {
        let sql = "INSERT INTO pets (id, name, category_id) VALUES (?1, '', 1)";
        writer.database.connection.execute(sql, [id]).unwrap();
    }

    #[test]
    fn ids_ascend_and_are_never_used_again() {
        let (_folder, mut writer, _reader) = pair();
        let first = writer.insert_pet(&new_pet("a")).unwrap();
        let second = writer.insert_pet(&new_pet("b")).unwrap();
        let committed = writer.commit().unwrap();
        assert!(second.id(&committed) > first.id(&committed));
        writer.database.connection.execute("DELETE FROM pets", []).unwrap();
        let third = writer.insert_pet(&new_pet("c")).unwrap();
        let committed = writer.commit().unwrap();
        assert!(third.id(&committed) > second.id(&committed));
    }

    #[test]
    fn greatest_id_is_the_last_and_a_full_disk_is_told_apart() {
        let (_folder, mut writer, _reader) = pair();
        let cause = |inserted: Result<Inserted, StoreError>| match inserted {
            Err(StoreError::Unavailable(cause, _)) => cause,
            other => panic!("{other:?}"),
        };
        writer.connection.pragma_update(None, "max_page_count", 1).unwrap();
        assert_eq!(cause(writer.insert_pet(&new_pet(&"x".repeat(100_000)))), Cause::Full);
        assert!(writer.commit().is_err());
        writer.connection.pragma_update(None, "max_page_count", 1_000_000).unwrap();
        insert_with_id(&writer, i64::MAX - 1);
        let last = writer.insert_pet(&new_pet("last")).unwrap();
        assert_eq!(last.id(&writer.commit().unwrap()), i64::MAX);
        assert_eq!(cause(writer.insert_pet(&new_pet("more"))), Cause::NoIds);
    }

    #[test]
    fn create_writes_its_row_and_no_mark() {
        let (_folder, mut writer, _reader) = pair();
        let before = writer.connection.total_changes();
        writer.insert_pet(&new_pet("a")).unwrap();
        writer.commit().unwrap();
        assert_eq!(writer.connection.total_changes() - before, 1);
    }

    #[test]
    fn status_is_set_and_the_changed_pet_is_read() {
        let (_folder, mut writer, _reader) = pair();
        writer.insert_pet(&new_pet("a")).unwrap();
        let read = |pet: Pet| (pet.name.to_owned(), pet.status);
        let set = writer.set_status(1, PetStatus::Sold, read).unwrap();
        assert_eq!(set, Some(("a".to_owned(), Some(PetStatus::Sold))));
        assert_eq!(writer.set_status(2, PetStatus::Sold, read).unwrap(), None);
    }

    #[test]
    fn every_id_has_its_place_in_the_order() {
        let (_folder, writer, _reader) = pair();
        for id in [i64::MIN, -1, 5, i64::MAX] {
            insert_with_id(&writer, id);
        }
        let ids = |after| -> Vec<i64> {
            shown(&writer, &PetQuery { page: Page { after, ..ALL.page }, ..ALL })
                .into_iter()
                .map(|(id, _)| id)
                .collect()
        };
        assert_eq!(ids(None), [i64::MIN, -1, 5, i64::MAX]);
        assert_eq!(ids(Some(i64::MIN)), [-1, 5, i64::MAX]);
        assert_eq!(ids(Some(5)), [i64::MAX]);
        assert_eq!(ids(Some(i64::MAX)), [0; 0]);
    }

    #[test]
    fn list_shows_one_more_where_more_follow() {
        let (_folder, mut writer, _reader) = pair();
        writer.begin(Units::Joined).unwrap();
        for name in ["a", "b", "c"] {
            writer.insert_pet(&new_pet(name)).unwrap();
        }
        writer.commit().unwrap();
        for (limit, expected) in [(1, 2), (2, 3), (3, 3)] {
            let page = Page { limit, ..ALL.page };
            assert_eq!(shown(&writer, &PetQuery { page, ..ALL }).len(), expected);
            let filtered = PetQuery { page, status: Some(PetStatus::Available) };
            assert_eq!(shown(&writer, &filtered).len(), expected);
        }
        assert_eq!(shown(&writer, &PetQuery { status: Some(PetStatus::Sold), ..ALL }), []);
    }

    #[test]
    fn pages_read_only_their_rows() {
        let (_folder, writer, _reader) = pair();
        let plan = |sql: &str, values: &[&dyn ToSql]| -> String {
            let sql = format!("EXPLAIN QUERY PLAN {sql}");
            writer.connection.query_row(&sql, values, |row| row.get::<_, String>(3)).unwrap()
        };
        let filtered = plan(PAGE_OF_STATUS, params![PetStatus::Sold, 5, 20]);
        assert!(filtered.contains("INDEX pets_by_status (status=? AND rowid>?)"), "{filtered}");
        let plain = plan(PAGE, params![5, 20]);
        assert!(plain.contains("INTEGER PRIMARY KEY (rowid>?)"), "{plain}");
    }

    #[test]
    fn adding_a_row_builds_no_table_in_memory() {
        let (_folder, writer, _reader) = pair();
        let mut program = writer.connection.prepare(&format!("EXPLAIN {INSERT}")).unwrap();
        let values = params!["a", 1, PetStatus::Sold];
        let steps: Vec<String> =
            program.query_map(values, |row| row.get("opcode")).unwrap().flatten().collect();
        assert!(steps.iter().any(|step| step == "IdxInsert"), "{steps:?}");
        assert!(!steps.iter().any(|step| step == "OpenEphemeral"), "{steps:?}");
    }

    #[test]
    fn other_statuses_are_refused_by_the_table_too() {
        let (_folder, writer, _reader) = pair();
        let add = |status: &str| {
            let sql = format!("INSERT INTO pets (name, category_id, status) VALUES ('a', 1, {status})");
            writer.connection.execute(&sql, [])
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
        let (_folder, mut writer, _reader) = pair();
        for name in ["", " ", "a\0b", "'; DROP TABLE pets; --", "\u{1f600}\u{202e}", "e\u{301}"] {
            let inserted = writer.insert_pet(&new_pet(name)).unwrap();
            let id = inserted.id(&writer.commit().unwrap());
            assert_eq!(writer.pet(id, |pet| pet.name.to_owned()), Ok(Some(name.to_owned())));
        }
    }
}
