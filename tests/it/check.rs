//! `petstore check`: what is wrong with a database or a copy.

use std::os::unix::fs::FileExt;
use std::path::Path;

use rusqlite::Connection;

use crate::backup::{filled, names, refuse, succeed};
use crate::harness::{Folder, Server, run, schema_version};
use crate::said;

/// Checks an unsound file, and returns the lines that say why.
#[track_caller]
fn faults(file: &Path) -> String {
    let output = run(&["check", file.to_str().unwrap()], Path::new("none"));
    let (said, error) =
        (String::from_utf8(output.stdout).unwrap(), String::from_utf8(output.stderr).unwrap());
    assert_eq!(output.status.code(), Some(1), "{said}{error}");
    assert!(error.lines().count() == 1 && error.contains("is not sound"), "{error}");
    said
}

/// A damaged copy of a database with some hundred pets.
fn damaged(damage: impl FnOnce(&Path)) -> (Folder, String) {
    let source = filled(500);
    let folder = Folder::new();
    let file = folder.path().join("copy.db");
    succeed(&["backup", file.to_str().unwrap()], &source.database());
    damage(&file);
    let said = faults(&file);
    assert_eq!(names(folder.path()), ["copy.db"]);
    (folder, said)
}

#[track_caller]
fn expect_fault(sql: &str, expected: &str) {
    let (_folder, said) = damaged(|file| Connection::open(file).unwrap().execute_batch(sql).unwrap());
    assert!(said.lines().any(|line| line == expected), "{sql}: {said}");
}

#[test]
fn sound_files_are_said_to_be_sound_and_left_as_they_are() {
    let server = Server::start();
    server.fill(["Rex", "Tom"]);
    let database = server.folder.database();
    let copy = server.folder.path().join("copy.db");
    let line = |file: &Path| format!("{} is sound: 2 pets, version {}\n", file.display(), schema_version());
    // In use, and without naming it.
    assert_eq!(succeed(&["check"], &database), line(&database));
    succeed(&["backup", copy.to_str().unwrap()], &database);
    assert_eq!(succeed(&["check", copy.to_str().unwrap()], &database), line(&copy));
    // After a kill the log belongs to it.
    let folder = server.kill();
    let before = (names(folder.path()), std::fs::read(&database).unwrap());
    assert_eq!(succeed(&["check"], &database), line(&database));
    assert_eq!((names(folder.path()), std::fs::read(&database).unwrap()), before);
}

#[test]
fn database_of_a_stopped_service_gets_no_files_beside_it() {
    let source = filled(0);
    // The last to close a database removes its log.
    drop(Connection::open(source.database()).unwrap().execute_batch("SELECT * FROM pets"));
    let folder = Folder::new();
    let file = folder.path().join("100% of ünïcode?.db");
    std::fs::copy(source.database(), &file).unwrap();
    let before = std::fs::read(&file).unwrap();
    assert_eq!(before[18..20], [2, 2], "it is written with a log");
    assert!(succeed(&["check", file.to_str().unwrap()], Path::new("none")).contains("is sound: 1 pet,"));
    assert_eq!(names(folder.path()), ["100% of ünïcode?.db"]);
    assert_eq!(std::fs::read(&file).unwrap(), before);
}

#[test]
fn damaged_page_is_found() {
    // The tables' pages come last, after that of the schema and those of roots.
    let (_folder, said) = damaged(|file| {
        let file = std::fs::File::options().write(true).open(file).unwrap();
        let length = file.metadata().unwrap().len();
        file.write_all_at(&[0xa5; 4096], length - 4096).unwrap();
    });
    assert!(said.contains("contradicts"), "{said}");
}

#[test]
fn index_that_lacks_a_row_is_found() {
    // The index is hidden while a pet is written.
    let steps = [
        "PRAGMA writable_schema = ON; CREATE TABLE hidden AS SELECT * FROM sqlite_schema WHERE type = 'index';
            DELETE FROM sqlite_schema WHERE name = 'pets_by_status'",
        "INSERT INTO pets (name, category_id, status) VALUES ('Rex', 1, 'sold')",
        "PRAGMA writable_schema = ON;
            INSERT INTO sqlite_schema SELECT * FROM hidden WHERE name = 'pets_by_status'",
        "DROP TABLE hidden",
    ];
    let (_folder, said) = damaged(|file| {
        steps.iter().for_each(|sql| Connection::open(file).unwrap().execute_batch(sql).unwrap());
    });
    assert!(said.contains("missing from index pets_by_status"), "{said}");
}

#[test]
fn truncated_file_is_found() {
    let (folder, said) = damaged(|file| std::fs::write(file, "").unwrap());
    assert_eq!(said, "it is empty: no service has used it yet\n");
    let (source, file) = (filled(500), folder.path().join("half.db"));
    succeed(&["backup", file.to_str().unwrap()], &source.database());
    let half = std::fs::File::options().write(true).open(&file).unwrap();
    half.set_len(half.metadata().unwrap().len() / 2).unwrap();
    refuse(&["check"], &file, said::PAGE_MISSING);
}

#[test]
fn another_schema_is_found() {
    expect_fault("DROP INDEX pets_by_status", said::INDEX_MISSING);
    expect_fault("DROP TABLE api_keys", said::TABLE_MISSING);
    expect_fault(
        "DROP INDEX pets_by_status; CREATE INDEX pets_by_status ON pets (name)",
        &format!(
            "the index pets_by_status is defined in another way than version {} has it",
            schema_version()
        ),
    );
    expect_fault("ALTER TABLE pets ADD COLUMN tag TEXT", "the table pets has a foreign column tag");
    expect_fault("ALTER TABLE pets DROP COLUMN name", "the table pets lacks the column name");
    expect_fault("CREATE VIEW theirs AS SELECT 1", "the view theirs does not belong to it");
}

#[test]
fn ids_that_no_service_gave_are_found() {
    expect_fault("UPDATE sqlite_sequence SET seq = 7", "a pet has the id 501, and the last one given is 7");
    expect_fault("DELETE FROM sqlite_sequence", "a pet has the id 501, and the last one given is 0");
    expect_fault(
        "INSERT INTO pets (id, name, category_id) VALUES (-5, '', 1)",
        "a pet has the id -5, which is not positive",
    );
}

#[test]
fn files_of_others_are_found() {
    expect_fault("PRAGMA application_id = 7", "it is the database of another application");
    expect_fault(
        "PRAGMA user_version = 99",
        &format!(
            "it is of version 99, and this program knows versions up to {}; use a later program",
            schema_version()
        ),
    );
}

#[test]
fn what_cannot_be_checked_is_named() {
    let folder = Folder::new();
    let text = folder.path().join("text");
    std::fs::write(&text, "not a database, but long enough to be looked at").unwrap();
    refuse(&["check", text.to_str().unwrap()], Path::new("none"), said::DATABASE_FOREIGN);
    refuse(&["check"], &folder.path().join("none.db"), said::FILE_MISSING);
    refuse(&["check"], folder.path(), "is not a file");
    assert_eq!(run(&["check", "a", "b"], &text).status.code(), Some(2));
}
