//! The record of changes: what has happened to pets. `sqlite/recorder.rs` writes it.

use std::ops::ControlFlow;

use rusqlite::{Row, params};

use super::pets::pet_at;
use super::rows::{integer, text_or_null};
use super::{Reader, StoreError};
use crate::model::{ChangeKind, ChangeQuery, Order, PetChange};

impl Reader {
    /// Passes changes to `visit`, one after the other, until `visit` stops.
    ///
    /// # Errors
    /// If the database cannot be read.
    pub fn visit_changes(
        &self,
        query: &ChangeQuery,
        mut visit: impl FnMut(PetChange) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        let pet = match query.pet {
            Some(_) => "pet = ?6 AND",
            None => "?6 IS NULL AND",
        };
        let order = match query.order {
            Order::Ascending => "ORDER BY id",
            Order::Descending => "ORDER BY id DESC",
        };
        let sql = format!(
            "SELECT id, at, pet, key, old_name, old_category_id, old_status, name, category_id, status FROM changes \
             WHERE {pet} id BETWEEN ?1 AND ?2 AND at >= ?3 AND (?4 IS NULL OR ?4 = iif(old_category_id IS NULL, 'created', \
             iif(category_id IS NULL, 'deleted', 'updated'))) {order} LIMIT ?5"
        );
        let values = params![
            query.ids.0,
            query.ids.1,
            query.since.unwrap_or(i64::MIN),
            query.kind.map(ChangeKind::as_str),
            query.limit,
            query.pet
        ];
        self.rows(&sql, values, &mut |row| Ok(visit(change(row)?)))
    }
}

/// Reads a row of the record.
fn change<'r>(row: &'r Row) -> rusqlite::Result<PetChange<'r>> {
    let number = |column| Ok::<_, rusqlite::Error>(integer(row, column)?.unwrap_or_default());
    let (id, at, pet_id) = (number(0)?, number(1)?, number(2)?);
    let pet = |column| {
        let category_id = integer(row, column + 1)?;
        let pet = category_id.map(|_| pet_at(row, pet_id, column));
        pet.transpose()
    };
    let (before, pet) = (pet(4)?, pet(7)?);
    let kind = match (&before, &pet) {
        (None, _) => ChangeKind::Created,
        (_, None) => ChangeKind::Deleted,
        _ => ChangeKind::Updated,
    };
    let key = text_or_null(row, 3)?.map(Into::into);
    Ok(PetChange {
        id,
        at,
        kind,
        pet_id,
        before,
        pet,
        key,
    })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::model::{Caller, IdempotencyKey, NewPet, PetPatch, PetStatus};
    use crate::store::tests::{pair, run};
    use crate::store::{Outcome, Writer};

    const DAY: Duration = Duration::from_secs(24 * 3600);

    fn rex() -> NewPet<'static> {
        NewPet::new("Rex", 1)
    }

    /// The ids and the pets of all changes.
    fn all(reader: &Reader) -> Vec<(i64, i64)> {
        let mut found = Vec::new();
        let query = ChangeQuery {
            ids: (i64::MIN, i64::MAX),
            order: Order::Ascending,
            limit: u32::MAX,
            pet: None,
            kind: None,
            since: None,
        };
        let note = |change: PetChange| {
            found.push((change.id, change.pet_id));
            ControlFlow::Continue(())
        };
        reader.visit_changes(&query, note).unwrap();
        found
    }

    fn keep(writer: &mut Writer, keep: Option<Duration>) {
        writer.keep_changes(keep).unwrap();
        writer.commit().unwrap();
    }

    #[test]
    fn batch_that_is_undone_leaves_no_change_and_no_gap() {
        let (_folder, mut writer, reader) = pair();
        keep(&mut writer, Some(DAY));
        let batch = |writer: &mut Writer, pets: usize| {
            writer.begin().unwrap();
            for _ in 0..pets {
                writer.insert_pet(&rex(), None).unwrap();
            }
        };
        batch(&mut writer, 2);
        writer.commit().unwrap();
        batch(&mut writer, 3);
        writer.undo();
        batch(&mut writer, 1);
        assert!(writer.transaction().unwrap().delete_pet(9).is_err());
        writer.undo();
        batch(&mut writer, 1);
        writer.commit().unwrap();
        assert_eq!(all(&reader), [(1, 1), (2, 2), (3, 3)]);
    }

    #[test]
    fn setting_of_another_connection_counts_from_the_next_batch_on() {
        let (folder, mut writer, reader) = pair();
        let mut other = Writer::open(&folder.database()).unwrap();
        let add = |writer: &mut Writer| {
            writer.begin().unwrap();
            writer.insert_pet(&rex(), None).unwrap();
            writer.commit().unwrap();
            all(&reader).len()
        };
        assert_eq!(add(&mut writer), 0);
        keep(&mut other, Some(DAY));
        assert_eq!(add(&mut writer), 1);
        assert_eq!(add(&mut other), 2);
        assert_eq!(add(&mut writer), 3, "after the id of the other");
        keep(&mut other, None);
        assert_eq!(add(&mut writer), 3);
        assert_eq!(add(&mut other), 3);
    }

    #[test]
    fn create_that_is_sent_again_is_found_although_changes_are_recorded() {
        let (_folder, mut writer, reader) = pair();
        keep(&mut writer, Some(DAY));
        let key = |text: &str| IdempotencyKey::new(Caller::extra(), text.as_bytes());
        let mut create = |text: &str| writer.insert_pet(&rex(), Some(&key(text))).unwrap();
        for text in ["a", "b"] {
            assert!(matches!(create(text), Outcome::Made(_)));
        }
        for (text, id) in [("a", 1), ("b", 2)] {
            assert_eq!(create(text), Outcome::Replayed(id));
        }
        let mut transaction = writer.transaction().unwrap();
        let sold = PetPatch::new().status(PetStatus::Sold);
        transaction.update_pet(1, &sold).unwrap();
        let again = writer.insert_pet(&rex(), Some(&key("c"))).unwrap();
        assert_eq!(again, Outcome::Made(3));
        let again = writer.insert_pet(&rex(), Some(&key("c"))).unwrap();
        assert_eq!(again, Outcome::Replayed(3));
        writer.commit().unwrap();
        assert_eq!(all(&reader), [(1, 1), (2, 2), (3, 1), (4, 3)]);
    }

    #[test]
    fn change_that_changes_nothing_is_none() {
        let (_folder, mut writer, reader) = pair();
        keep(&mut writer, Some(DAY));
        writer.insert_pet(&rex(), None).unwrap();
        let same = PetPatch::new().name("Rex").status(None);
        for patch in [&same, &PetPatch::new(), &same.clone().category_id(2)] {
            let mut transaction = writer.transaction().unwrap();
            transaction.update_pet(1, patch).unwrap();
        }
        writer.commit().unwrap();
        // A probe of the disk writes pets and takes them back.
        writer.probe().unwrap();
        assert_eq!(all(&reader), [(1, 1), (2, 1)]);
    }

    #[test]
    fn values_of_other_programs_can_be_read() {
        let (_folder, mut writer, reader) = pair();
        keep(&mut writer, Some(DAY));
        let rows = "INSERT INTO changes (id, at, pet, category_id, name, status, key)
            VALUES (1, -9, 7, 1, CAST(x'ff' AS TEXT), 'lost', CAST(x'fe' AS TEXT)), (2, 9223372036854775807, 7, NULL, NULL, NULL, NULL)";
        run(&writer, rows);
        assert_eq!(all(&reader), [(1, 7), (2, 7)]);
    }

    #[test]
    fn only_what_is_recorded_changes_pets() {
        let root = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("src/store");
        let mut found = Vec::new();
        for folder in [root.clone(), root.join("sqlite")] {
            for file in std::fs::read_dir(folder).unwrap() {
                let path = file.unwrap().path();
                let Ok(source) = std::fs::read_to_string(&path) else {
                    continue;
                };
                let name = path.to_str().unwrap();
                let is_test = name.ends_with("tests.rs") || !name.ends_with(".rs");
                let code = source.split("mod tests {").next().filter(|_| !is_test);
                for line in code.unwrap_or_default().lines() {
                    let writes = ["INTO pets ", "UPDATE pets ", "DELETE FROM pets "];
                    if writes.iter().any(|write| line.contains(write)) {
                        found.push(line.trim().to_owned());
                    }
                }
            }
        }
        // INSERT, INSERT_AS, UPDATE and REWRITE in statements.rs, DELETE and the table of rows to import.
        assert_eq!(found.len(), 6, "does it record its changes? {found:#?}");
    }
}
