//! The rows of an import before they are written: checked, and in nobody's way.

use rusqlite::{Connection, Row, ToSql};

use super::StoreError;
use super::pets::pet;
use super::statements::COLUMNS;
use crate::model::{MemberValue, Pet, PetPatch};

/// The bytes that a page of the database takes for a byte of the rows: in the table, its index and the log, which the
/// next checkpoint writes into the database.
const ROOM: i64 = 3;

/// Nothing of it outlives the process.
const TABLE: &str = "PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
    CREATE TABLE pets (line INTEGER PRIMARY KEY, id INTEGER, name, category_id, status, given INTEGER);
    CREATE UNIQUE INDEX ids ON pets (id) WHERE id IS NOT NULL;
    BEGIN";
const ADD: &str =
    "INSERT OR IGNORE INTO pets (name, category_id, status, id, given) VALUES (?1, ?2, ?3, ?4, ?5)";
/// Begins with the columns of a pet, for [`pet`].
const ALL: &str = "SELECT 0, name, category_id, status, id, given FROM pets ORDER BY line";

/// Rows in a temporary database of their own. SQLite keeps what does not fit in its cache in a file without a name, which
/// is gone when the process ends, even if it is killed (`sqlite.org/inmemorydb.html`).
#[derive(Debug)]
pub struct Staging {
    connection: Connection,
    /// The number of rows.
    pub rows: usize,
}

/// A row of an import.
pub struct StagedRow<'a> {
    /// The id in the input, if it is of use.
    pub id: Option<i64>,
    /// The pet; a member that the input does not have is empty.
    pub pet: Pet<'a>,
    given: u32,
}

impl<'a> StagedRow<'a> {
    /// The change that the row asks for.
    pub fn patch(self) -> PetPatch<'a> {
        PetPatch::of(self.pet, self.given)
    }
}

impl Staging {
    /// Creates a place without rows.
    ///
    /// # Errors
    /// If SQLite has too little memory.
    pub fn new() -> Result<Self, StoreError> {
        let connection = Connection::open("")?;
        connection.execute_batch(TABLE)?;
        Ok(Self {
            connection,
            rows: 0,
        })
    }

    /// Adds a row, and returns true. If another row has its id, adds nothing and returns false.
    ///
    /// # Errors
    /// If the folder for temporary files is full.
    pub fn add(&mut self, id: Option<i64>, patch: &PetPatch) -> Result<bool, StoreError> {
        let given = (0..)
            .zip(patch.values())
            .filter(|(_, value)| value.is_some());
        let given: u32 = given.map(|(member, _)| 1 << member).sum();
        let values = patch
            .values()
            .map(|value| value.unwrap_or(MemberValue::None));
        let mut all: Vec<&dyn ToSql> = values.iter().map(|value| value as _).collect();
        all.extend([&id as &dyn ToSql, &given]);
        let added = self.connection.prepare_cached(ADD)?.execute(&*all)?;
        self.rows += added;
        Ok(added > 0)
    }

    /// The least and the greatest id; `None` if no row has one.
    ///
    /// # Errors
    /// If the rows cannot be read.
    pub fn ids(&self) -> Result<Option<(i64, i64)>, StoreError> {
        let sql = "SELECT min(id), max(id) FROM pets WHERE id IS NOT NULL";
        let read = |row: &Row| Ok(row.get::<_, Option<i64>>(0)?.zip(row.get(1)?));
        Ok(self.connection.query_row(sql, [], read)?)
    }

    /// The bytes that the disk of a database needs for all rows.
    ///
    /// # Errors
    /// If SQLite cannot tell.
    pub fn room(&self) -> Result<u64, StoreError> {
        let sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
        let bytes: i64 = self.connection.query_row(sql, [], |row| row.get(0))?;
        Ok(bytes.saturating_mul(ROOM).unsigned_abs())
    }

    /// Passes the rows to `visit`, in the order of the input, until one fails.
    ///
    /// # Errors
    /// Those of `visit`, or if the rows cannot be read.
    pub fn visit<E: From<StoreError>>(
        &self,
        mut visit: impl FnMut(StagedRow) -> Result<(), E>,
    ) -> Result<(), E> {
        let mut all = self
            .connection
            .prepare_cached(ALL)
            .map_err(StoreError::from)?;
        let mut rows = all.query([]).map_err(StoreError::from)?;
        while let Some(row) = rows.next().map_err(StoreError::from)? {
            visit(staged_row(row).map_err(StoreError::from)?)?;
        }
        Ok(())
    }
}

/// Reads a row of [`ALL`].
fn staged_row<'r>(row: &'r Row) -> rusqlite::Result<StagedRow<'r>> {
    Ok(StagedRow {
        id: row.get(COLUMNS.len() + 1)?,
        pet: pet(row)?,
        given: row.get(COLUMNS.len() + 2)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::NewPet;

    #[test]
    fn rows_come_back_in_their_order_with_what_was_given() {
        let mut staging = Staging::new().unwrap();
        let rename = PetPatch {
            name: Some("b".into()),
            ..PetPatch::default()
        };
        let unset = PetPatch {
            status: Some(None),
            ..PetPatch::default()
        };
        let all = PetPatch::from(NewPet::new("a\0\u{202e}", i64::MIN));
        for (id, patch, is_added) in [
            (Some(7), &rename, true),
            (None, &all, true),
            (Some(7), &unset, false),
            (Some(-3), &unset, true),
            (None, &all, true),
        ] {
            let added = staging.add(id, patch);
            assert_eq!(added, Ok(is_added), "by a statement of staging.rs");
        }
        let mut expected = [(Some(7), rename), (None, all), (Some(-3), unset)].into_iter();
        let same = |row: StagedRow| {
            if let Some((id, patch)) = expected.next() {
                assert_eq!((row.id, row.patch()), (id, patch));
            }
            Ok::<_, StoreError>(())
        };
        staging.visit(same).unwrap();
        assert_eq!(expected.next(), None);
        assert_eq!((staging.rows, staging.ids()), (4, Ok(Some((-3, 7)))));
        assert!(staging.room().unwrap() > 10_000);
    }
}
