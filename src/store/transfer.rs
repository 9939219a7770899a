//! The statements of import and export: all pets out, and many in.

use std::ops::ControlFlow;

use rusqlite::{Row, ToSql, params};

use super::pets::pet;
use super::statements::{LAST_ID, STATEMENTS};
use super::{Reader, StoreError, Writer};
use crate::base::clock::unix_time;
use crate::model::{NewPet, Pet};

/// `sqlite_sequence` has a row for a table only after its first insert (`sqlite.org/autoinc.html`).
const ADD_SEQUENCE: &str = "INSERT INTO sqlite_sequence (name, seq) SELECT 'pets', 0 \
    WHERE NOT EXISTS (SELECT 1 FROM sqlite_sequence WHERE name = 'pets')";
const RAISE_SEQUENCE: &str = "UPDATE sqlite_sequence SET seq = max(seq, ?1) WHERE name = 'pets'";
const PROGRESS: &str = "SELECT line, finished_at, first_id, last_id, keeps_ids FROM imports WHERE input = ?1";
/// New ids are consecutive within a batch; on a cluster, only its transaction knows them. If an import of all begins
/// again, no earlier pet counts.
const SET_PROGRESS: &str = "INSERT INTO imports (input, line, finished_at, first_id, last_id, keeps_ids) \
    VALUES (?1, ?2, ?3, ifnull(?4, (SELECT max(id) FROM pets) + 1 - ?6), ifnull(?5, (SELECT max(id) FROM pets)), ?6 IS NULL) \
    ON CONFLICT (input) DO UPDATE SET line = excluded.line, finished_at = excluded.finished_at, \
        first_id = CASE WHEN excluded.line > line THEN min(first_id, excluded.first_id) ELSE excluded.first_id END, \
        last_id = max(last_id, excluded.last_id), keeps_ids = excluded.keeps_ids";

/// How far the import of an input came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Progress {
    /// Every pet up to this line is in the database.
    pub line: u64,
    /// In Unix time; `None` if pets are missing.
    pub finished_at: Option<i64>,
    /// The least and the greatest id that its pets got.
    pub ids: (i64, i64),
    /// True if the pets keep the ids of the input.
    pub keeps_ids: bool,
}

/// The ids of the pets of a batch.
#[derive(Clone, Copy, Debug)]
pub enum BatchIds {
    /// The pets keep ids between these two.
    Kept { least: i64, greatest: i64 },
    /// This number of pets gets new ids.
    New(usize),
}

impl Reader {
    /// Passes every pet to `visit`, in ascending order of the ids, until `visit` stops. The memory it takes
    /// does not depend on their number.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn visit_every_pet(&self, mut visit: impl FnMut(Pet) -> ControlFlow<()>) -> Result<(), StoreError> {
        // A single statement reads from one snapshot.
        self.rows(&STATEMENTS.every, &[], &mut |row| pet(row, &mut visit))
    }

    /// The greatest id ever assigned; 0 if none was.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn last_id(&self) -> Result<i64, StoreError> {
        self.one(LAST_ID)
    }

    /// Returns the progress of the import whose input has this digest; `None` if there was none.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn progress(&self, input: &[u8]) -> Result<Option<Progress>, StoreError> {
        let read = |row: &Row| {
            Ok(Progress {
                line: row.get::<_, i64>(0)?.cast_unsigned(),
                finished_at: row.get(1)?,
                ids: (row.get(2)?, row.get(3)?),
                keeps_ids: row.get(4)?,
            })
        };
        self.first(PROGRESS, params![input], read)
    }
}

impl Writer {
    /// Adds a pet that keeps its id to the batch.
    ///
    /// # Errors
    /// If the database cannot be written, or has this id already.
    pub fn insert_pet_as(&mut self, id: i64, new: &NewPet) -> Result<(), StoreError> {
        let values = new.values();
        let values: Vec<&dyn ToSql> =
            values.iter().map(|value| value as &dyn ToSql).chain([&id as _]).collect();
        self.change(&STATEMENTS.insert_as, &values).map(drop)
    }

    /// Writes within the batch, whose last pet is on this line, how far the import of an input has come.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn set_progress(
        &mut self,
        input: &[u8],
        line: u64,
        is_done: bool,
        ids: BatchIds,
    ) -> Result<(), StoreError> {
        let finished_at = is_done.then(unix_time);
        let (least, greatest, count) = match ids {
            BatchIds::Kept { least, greatest } => (Some(least), Some(greatest), None),
            BatchIds::New(count) => (None, None, Some(count.cast_signed())),
        };
        self.change(SET_PROGRESS, params![input, line.cast_signed(), finished_at, least, greatest, count])
            .map(drop)
    }

    /// Makes new pets get ids greater than this one.
    ///
    /// # Errors
    /// If the database cannot be written.
    pub fn reserve_ids(&mut self, last: i64) -> Result<(), StoreError> {
        self.change(ADD_SEQUENCE, &[])?;
        self.change(RAISE_SEQUENCE, params![last]).map(|_| ())
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
            assert_eq!(inserted.id(&writer.commit().unwrap()), given);
        }
        writer.insert_pet_as(3, &new_pet("Tom")).unwrap();
        writer.commit().unwrap();
        assert_eq!(writer.last_id(), Ok(12));
    }

    #[test]
    fn last_id_counts_deleted_pets() {
        let (_folder, mut writer, _reader) = pair();
        writer.insert_pet(&new_pet("Rex"), None).unwrap();
        writer.transaction().unwrap().delete_pet(1, None).unwrap();
        writer.commit().unwrap();
        assert_eq!(writer.last_id(), Ok(1));
    }
}
