use super::super::statements::PAGES;
use super::super::tests::{pair, run};
use super::super::{Cause, Outcome, Writer};
use super::*;
use crate::model::{NewPet, Page, PetStatus};

const ALL: PetQuery = PetQuery::all(Page::ascending(100, None));

pub fn new_pet(name: &str) -> NewPet<'_> {
    NewPet {
        status: Some(PetStatus::Available),
        ..NewPet::new(name, 1)
    }
}

/// The ids and names that a query returns, including the one more if more follow.
fn shown(database: &Reader, query: &PetQuery) -> Vec<(i64, String)> {
    let mut pets = Vec::new();
    let visit = |pet: Pet| {
        pets.push((pet.id, pet.name.into_owned()));
        ControlFlow::Continue(())
    };
    database.visit_pets(query, visit).unwrap();
    pets
}

fn insert_with_id(writer: &Writer, id: i64) {
    run(
        writer,
        &format!("INSERT INTO pets (id, name, category_id) VALUES ({id}, '', 1)"),
    );
}

#[test]
fn ids_ascend_and_are_never_used_again() {
    let (_folder, mut writer, _reader) = pair();
    let first = writer.insert_pet(&new_pet("a"), None).unwrap();
    let second = writer.insert_pet(&new_pet("b"), None).unwrap();
    writer.commit().unwrap();
    assert!(second.id() > first.id());
    run(&writer, "DELETE FROM pets");
    let third = writer.insert_pet(&new_pet("c"), None).unwrap();
    writer.commit().unwrap();
    assert!(third.id() > second.id());
}

#[test]
fn greatest_id_is_the_last() {
    let (_folder, mut writer, _reader) = pair();
    let cause = |inserted: Result<Outcome, StoreError>| match inserted {
        Err(StoreError::Unavailable(cause, _)) => cause,
        other => panic!("{other:?}"),
    };
    run(&writer, "PRAGMA max_page_count = 1");
    assert_eq!(
        cause(writer.insert_pet(&new_pet(&"x".repeat(100_000)), None)),
        Cause::Full
    );
    assert!(writer.commit().is_err());
    run(&writer, "PRAGMA max_page_count = 1000000");
    insert_with_id(&writer, i64::MAX - 1);
    let last = writer.insert_pet(&new_pet("last"), None).unwrap();
    writer.commit().unwrap();
    assert_eq!(last.id(), i64::MAX);
    assert_eq!(
        cause(writer.insert_pet(&new_pet("more"), None)),
        Cause::Full
    );
}

#[test]
fn create_writes_its_row_and_no_mark() {
    let (_folder, mut writer, _reader) = pair();
    let changes = |writer: &Writer| writer.one::<i64>("SELECT total_changes()").unwrap();
    let before = changes(&writer);
    writer.insert_pet(&new_pet("a"), None).unwrap();
    writer.commit().unwrap();
    assert_eq!(changes(&writer) - before, 1);
}

#[test]
fn pet_is_changed_and_deleted_alone() {
    let (_folder, mut writer, reader) = pair();
    for name in ["a", "b"] {
        writer.insert_pet(&new_pet(name), None).unwrap();
    }
    let read = |pet: Pet| (pet.name.into_owned(), pet.category_id, pet.status);
    let mut transaction = writer.transaction().unwrap();
    let patch = PetPatch {
        name: Some("c".into()),
        status: Some(None),
        ..PetPatch::default()
    };
    transaction.update_pet(1, &patch).unwrap();
    transaction
        .update_pet(
            1,
            &PetPatch {
                category_id: Some(i64::MIN),
                ..PetPatch::default()
            },
        )
        .unwrap();
    assert_eq!(
        transaction.pet(1, read).unwrap(),
        Some(("c".to_owned(), i64::MIN, None))
    );
    assert_eq!(transaction.pet(3, read).unwrap(), None);
    transaction.delete_pet(2).unwrap();
    writer.commit().unwrap();
    assert_eq!(shown(&reader, &ALL), [(1, "c".to_owned())]);
}

#[test]
fn every_status_is_counted() {
    let (_folder, mut writer, reader) = pair();
    for &status in PetStatus::ALL {
        writer
            .insert_pet(
                &NewPet {
                    status: Some(status),
                    ..new_pet("a")
                },
                None,
            )
            .unwrap();
    }
    writer.commit().unwrap();
    assert_eq!(reader.count_pets().unwrap().unset, 0);
}

#[test]
fn patch_of_nothing_writes_nothing() {
    let (_folder, mut writer, _reader) = pair();
    writer.insert_pet(&new_pet("a"), None).unwrap();
    writer.commit().unwrap();
    writer
        .transaction()
        .unwrap()
        .update_pet(1, &PetPatch::default())
        .unwrap();
    assert_eq!(writer.written(), 0);
}

#[test]
fn every_id_has_its_place_in_the_order() {
    let (_folder, writer, _reader) = pair();
    for id in [i64::MIN, -1, 5, i64::MAX] {
        insert_with_id(&writer, id);
    }
    let ids = |after| -> Vec<i64> {
        shown(&writer, &PetQuery::all(Page { after, ..ALL.page }))
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
    writer.begin().unwrap();
    for name in ["a", "b", "c"] {
        writer.insert_pet(&new_pet(name), None).unwrap();
    }
    writer.commit().unwrap();
    for (limit, expected) in [(1, 2), (2, 3), (3, 3)] {
        let page = Page { limit, ..ALL.page };
        assert_eq!(shown(&writer, &PetQuery::all(page)).len(), expected);
        let filtered = PetQuery {
            status: Some(PetStatus::Available),
            ..PetQuery::all(page)
        };
        assert_eq!(shown(&writer, &filtered).len(), expected);
    }
    assert_eq!(
        shown(
            &writer,
            &PetQuery {
                status: Some(PetStatus::Sold),
                ..ALL
            }
        ),
        []
    );
}

#[test]
fn pages_read_only_their_rows() {
    let (_folder, writer, _reader) = pair();
    let plan = |sql: &str, values: &[&dyn ToSql]| -> String {
        let sql = format!("EXPLAIN QUERY PLAN {sql}");
        writer
            .first(&sql, values, |row| row.get(3))
            .unwrap()
            .unwrap()
    };
    let filtered = plan(PAGES[0][1], params![PetStatus::Sold, 5, 20]);
    assert!(
        filtered.contains("INDEX pets_by_status (status=? AND rowid>?)"),
        "{filtered}"
    );
    let plain = plan(PAGES[0][0], params![5, 20]);
    assert!(plain.contains("INTEGER PRIMARY KEY (rowid>?)"), "{plain}");
    let newest = plan(PAGES[1][1], params![PetStatus::Sold, 5, 20]);
    assert!(
        newest.contains("INDEX pets_by_status (status=? AND rowid<?)"),
        "{newest}"
    );
}

#[test]
fn other_statuses_are_refused_by_the_table_too() {
    let (_folder, mut writer, _reader) = pair();
    let mut add = |status: &str| {
        let sql = format!("INSERT INTO pets (name, category_id, status) VALUES ('a', 1, {status})");
        writer.change(&sql, &[])
    };
    for status in ["NULL", "'available'", "'pending'", "'sold'"] {
        assert_eq!(add(status), Ok(1), "{status}");
    }
    for status in ["''", "'Sold'", "'lost'", "0"] {
        assert!(
            add(status).unwrap_err().to_string().contains("CHECK"),
            "{status}"
        );
    }
}

#[test]
fn names_are_kept_to_the_letter() {
    let (_folder, mut writer, _reader) = pair();
    for name in [
        "",
        " ",
        "a\0b",
        "'; DROP TABLE pets; --",
        "\u{1f600}\u{202e}",
        "e\u{301}",
    ] {
        let inserted = writer.insert_pet(&new_pet(name), None).unwrap();
        writer.commit().unwrap();
        let id = inserted.id();
        assert_eq!(
            writer.pet(id, |pet| pet.name.into_owned()),
            Ok(Some(name.to_owned()))
        );
    }
}
