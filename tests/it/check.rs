//! `petstore check`: what is wrong with a database or a copy.

use std::os::unix::fs::FileExt;
use std::path::Path;

use rusqlite::Connection;

use crate::backup::{filled, names, refuse, succeed};
use crate::messages;
use support::harness::{Folder, Server, run};

/// Checks an unsound file, and returns the lines that say why.
#[track_caller]
fn faults(file: &Path) -> String {
    let output = run(&["check", file.to_str().unwrap()], Path::new("none"));
    let (said, error) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert_eq!(output.status.code(), Some(1), "{said}{error}");
    assert!(
        error.lines().count() == 1 && error.contains("is not sound"),
        "{error}"
    );
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
    let (_folder, said) =
        damaged(|file| Connection::open(file).unwrap().execute_batch(sql).unwrap());
    assert!(said.lines().any(|line| line == expected), "{sql}: {said}");
}

#[test]
fn ids_that_come_to_their_end_are_a_warning() {
    let folder = filled(1);
    let other = Connection::open(folder.database()).unwrap();
    let raise = "UPDATE sqlite_sequence SET seq = 9223371036854775807 + ?1 WHERE name = 'pets'";
    for (more, warned) in [
        (0, ""),
        (
            1,
            "petstore: warning: the last id is 9223371036854775808; ids left for new pets: 999999999999\n",
        ),
    ] {
        other.execute(raise, [more]).unwrap();
        let output = run(&["check"], &folder.database());
        assert!(output.status.success(), "{output:?}");
        assert_eq!(String::from_utf8(output.stderr).unwrap(), warned);
    }
}

#[test]
fn sound_files_are_said_to_be_sound_and_left_as_they_are() {
    let server = Server::start();
    server.fill(["Rex", "Tom"]);
    let database = server.folder.database();
    let copy = server.folder.path().join("copy.db");
    let line = |file: &Path| {
        format!(
            "{} is sound: 2 pets (2 unset), version {}\n",
            file.display(),
            1
        )
    };
    // In use, and without naming it.
    assert_eq!(succeed(&["check"], &database), line(&database));
    succeed(&["backup", copy.to_str().unwrap()], &database);
    assert_eq!(
        succeed(&["check", copy.to_str().unwrap()], &database),
        line(&copy)
    );
    // After a kill the log belongs to it.
    let folder = server.kill();
    let before = (names(folder.path()), std::fs::read(&database).unwrap());
    assert_eq!(succeed(&["check"], &database), line(&database));
    assert_eq!(
        (names(folder.path()), std::fs::read(&database).unwrap()),
        before
    );
}

#[test]
fn database_of_a_stopped_service_gets_no_files_beside_it() {
    let source = filled(0);
    // The last to close a database removes its log.
    drop(
        Connection::open(source.database())
            .unwrap()
            .execute_batch("SELECT * FROM pets"),
    );
    let folder = Folder::new();
    let file = folder.path().join("100% of ünïcode?.db");
    std::fs::copy(source.database(), &file).unwrap();
    let before = std::fs::read(&file).unwrap();
    assert_eq!(before[18..20], [2, 2], "it is written with a log");
    assert!(
        succeed(&["check", file.to_str().unwrap()], Path::new("none"))
            .contains("is sound: 1 pet (")
    );
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
    let (folder, said) = damaged(|file| {
        steps
            .iter()
            .for_each(|sql| Connection::open(file).unwrap().execute_batch(sql).unwrap());
    });
    assert!(said.contains("missing from index pets_by_status"), "{said}");
    assert!(
        said.contains("; this SQL repairs it: REINDEX pets_by_status;"),
        "{said}"
    );
    // Whatever SQLite says about the tables of others.
    let theirs = "CREATE TABLE a (price CHECK (price > 0)); PRAGMA ignore_check_constraints = ON;
        INSERT INTO a SELECT -1 FROM pets";
    Connection::open(folder.path().join("copy.db"))
        .unwrap()
        .execute_batch(theirs)
        .unwrap();
    let said = faults(&folder.path().join("copy.db"));
    assert!(said.contains("missing from index pets_by_status"), "{said}");
}

#[test]
fn truncated_file_is_found() {
    let folder = Folder::new();
    let empty = folder.path().join("empty.db");
    std::fs::write(&empty, "").unwrap();
    refuse(
        &["check", empty.to_str().unwrap()],
        Path::new("none"),
        "is empty: no service has used it yet\n",
    );
    refuse(
        &["restore", empty.to_str().unwrap()],
        &folder.database(),
        "is empty: no service has used it yet; choose another backup\n",
    );
    let (source, file) = (filled(500), folder.path().join("half.db"));
    succeed(&["backup", file.to_str().unwrap()], &source.database());
    let half = std::fs::File::options().write(true).open(&file).unwrap();
    half.set_len(half.metadata().unwrap().len() / 2).unwrap();
    refuse(&["check"], &file, messages::PAGE_MISSING);
}

#[test]
fn another_schema_is_found() {
    let mend = |text: &str, sql: &str| format!("{text}; this SQL repairs it: {sql}");
    let make = "CREATE INDEX pets_by_status ON pets (status) WHERE status IS NOT NULL";
    expect_fault(
        "DROP INDEX pets_by_status",
        &mend(messages::INDEX_MISSING, make),
    );
    expect_fault(
        "DROP INDEX pets_by_status; CREATE INDEX pets_by_status ON pets (name)",
        &mend(
            "the index pets_by_status is defined in another way",
            &format!("DROP INDEX pets_by_status; {make}"),
        ),
    );
    expect_fault(
        "ALTER TABLE pets DROP COLUMN name",
        "the table pets lacks the column name, which may have another name now",
    );
    expect_fault(
        "ALTER TABLE pets RENAME COLUMN status TO state",
        "the table pets lacks the column status, which may have another name now",
    );
    let (_folder, said) = damaged(|file| {
        Connection::open(file)
            .unwrap()
            .execute_batch("DROP TABLE api_keys")
            .unwrap();
    });
    assert!(said.contains(messages::TABLE_MISSING), "{said}");
}

#[test]
fn sql_that_is_printed_mends_the_database() {
    for (sql, mended) in [
        (
            "DROP INDEX pets_by_status",
            "the index pets_by_status is missing",
        ),
        (
            "DROP INDEX primary_domain",
            "the index primary_domain is missing",
        ),
    ] {
        let folder = filled(500);
        let database = folder.database();
        Connection::open(&database)
            .unwrap()
            .execute_batch(sql)
            .unwrap();
        let output = run(&["check"], &database);
        let (said, error) = (
            String::from_utf8(output.stdout).unwrap(),
            String::from_utf8(output.stderr).unwrap(),
        );
        assert!(
            said.contains(mended) && error.contains("repair it with sqlite3"),
            "{sql}: {said}{error}"
        );
        assert!(!error.contains("restore"), "{sql}: {error}");
        for (_, mend) in said
            .lines()
            .filter_map(|line| line.split_once("this SQL repairs it: "))
        {
            Connection::open(&database)
                .unwrap()
                .execute_batch(mend)
                .unwrap();
        }
        assert!(
            succeed(&["check"], &database).contains("is sound: 501 pets"),
            "{sql}"
        );
    }
}

#[test]
fn value_that_its_column_rules_out_fails_the_check_and_stops_no_backup() {
    let server = Server::start();
    server.fill(["Rex", "Tom"]);
    let database = server.folder.database();
    // As a program does that opens the schema, and closes it again.
    let without_strict = |sql: &str| {
        let connection = Connection::open(&database).unwrap();
        let version: i64 = connection
            .pragma_query_value(None, "schema_version", |row| row.get(0))
            .unwrap();
        let set = |from: &str, to: &str, version: i64| {
            format!(
                "PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = replace(sql, '{from}', '{to}') WHERE name = 'pets';
                PRAGMA writable_schema = RESET; PRAGMA schema_version = {version};"
            )
        };
        let [open, close] = [
            set(") STRICT", ") /**/", version + 1),
            set(") /**/", ") STRICT", version + 2),
        ];
        connection
            .execute_batch(&format!("{open} {sql}; {close}"))
            .unwrap();
    };
    for (value, line) in [
        (
            "status = 'lost'",
            "pets: a row breaks CHECK (status = 'available' OR status = 'pending' OR status = 'sold')",
        ),
        (
            "category_id = 'many'",
            "its content contradicts itself: non-INTEGER value in pets.category_id",
        ),
    ] {
        let update =
            format!("PRAGMA ignore_check_constraints = ON; UPDATE pets SET {value} WHERE id = 1");
        without_strict(&update);
        // While the service runs, and in a copy.
        assert_eq!(faults(&database), format!("{line}\n"), "{value}");
        let copy = server.folder.path().join(format!("{}.db", value.len()));
        assert!(
            succeed(&["backup", copy.to_str().unwrap()], &database).contains("not sound"),
            "{value}"
        );
        assert_eq!(faults(&copy), format!("{line}\n"), "{value}");
        assert_eq!(server.get("/v1/pets/2").expect(200).json()["name"], "Tom");
        let mend = "UPDATE pets SET status = 'sold', category_id = 1 WHERE id = 1";
        Connection::open(&database)
            .unwrap()
            .execute_batch(mend)
            .unwrap();
        assert!(
            succeed(&["check"], &database).contains("is sound"),
            "{value}"
        );
    }
}

/// Things that Litestream and people with a graphical program leave.
pub const FOREIGN: &str = "
    CREATE TABLE _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER);
    CREATE TABLE _litestream_lock (id INTEGER);
    CREATE INDEX by_name ON pets (name);
    ALTER TABLE pets ADD COLUMN \"their own\" TEXT;
    CREATE VIEW sold AS SELECT * FROM pets WHERE status = 'sold';
    CREATE TABLE children (pet INTEGER REFERENCES pets (nowhere))";

#[test]
fn what_others_added_is_listed_apart() {
    let folder = filled(10);
    Connection::open(folder.database())
        .unwrap()
        .execute_batch(FOREIGN)
        .unwrap();
    let said = succeed(&["check"], &folder.database());
    let lines: Vec<&str> = said.lines().collect();
    assert!(lines[0].contains("is sound: 11 pets"), "{said}");
    let also = [
        "another definition of the table pets",
        "the table _litestream_lock",
        "the table _litestream_seq",
        "the index by_name",
        "the table children",
        "the view sold",
    ];
    assert_eq!(lines[1..], also.map(|what| format!("it also has {what}")));
    let strict = run(&["check", "--strict"], &folder.database());
    assert_eq!(String::from_utf8(strict.stdout).unwrap(), said);
    assert_eq!(strict.status.code(), Some(1));
    let error = String::from_utf8(strict.stderr).unwrap();
    assert!(
        error.ends_with("pets.db\n") && error.contains("other programs have added"),
        "{error}"
    );
    // And with nothing of others, it is as without the flag.
    assert!(succeed(&["check", "--strict"], &filled(0).database()).contains("is sound"));
}

#[test]
fn files_of_others_are_refused_without_the_advice_to_restore() {
    let later = format!(
        "is of version 99, and this program knows versions up to {}",
        1
    );
    for (sql, expected) in [
        ("PRAGMA user_version = 99", later.as_str()),
        (
            "PRAGMA application_id = 7",
            "is the database of another application",
        ),
    ] {
        let source = filled(0);
        Connection::open(source.database())
            .unwrap()
            .execute_batch(sql)
            .unwrap();
        let other = Folder::new();
        for words in [
            &["check"][..],
            &["check", source.database().to_str().unwrap()],
        ] {
            refuse(words, &source.database(), expected);
            let output = run(words, &source.database());
            assert!(
                !String::from_utf8(output.stderr)
                    .unwrap()
                    .contains("restore"),
                "{words:?}"
            );
        }
        refuse(
            &["restore", source.database().to_str().unwrap()],
            &other.database(),
            expected,
        );
        assert_eq!(names(other.path()), [""; 0]);
    }
}

#[test]
fn what_cannot_be_checked_is_named() {
    let folder = Folder::new();
    let text = folder.path().join("text");
    std::fs::write(&text, "not a database, but long enough to be looked at").unwrap();
    refuse(
        &["check", text.to_str().unwrap()],
        Path::new("none"),
        messages::DATABASE_FOREIGN,
    );
    refuse(
        &["check"],
        &folder.path().join("none.db"),
        messages::DATABASE_MISSING,
    );
    refuse(&["check", "none.db"], &text, messages::FILE_MISSING);
    refuse(&["check"], folder.path(), "is not a file");
    assert_eq!(run(&["check", "a", "b"], &text).status.code(), Some(2));
}
