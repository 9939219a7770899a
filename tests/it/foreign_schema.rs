//! The ways in which other programs change the schema. What goes on working is left alone; what loses or stops what is
//! written is named, and no advice costs a pet.

use std::fs;
use std::process::Command;

use rusqlite::Connection;
use support::harness::{Folder, Server, add_key, run};

use crate::backup::{filled, refuse, succeed};

/// A table that another program has made anew with the rows of the old one.
fn rebuilt(columns: &str) -> String {
    format!(
        "PRAGMA foreign_keys = OFF; CREATE TABLE new ({columns}); INSERT INTO new (id, name, category_id, status) \
         SELECT id, name, category_id, status FROM pets; DROP TABLE pets; ALTER TABLE new RENAME TO pets; \
         CREATE INDEX pets_by_status ON pets (status) WHERE status IS NOT NULL;"
    )
}

/// The columns of a table of pets that was rebuilt, or the SQL that was run, and what a start and a check say then; empty
/// if it goes on.
const WAYS: &[(&str, &str)] = &[
    // By DBeaver, SQLAlchemy, sqlite-utils and Django: it works as before.
    (
        "id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT NOT NULL, category_id INTEGER NOT NULL, status TEXT",
        "",
    ),
    (
        "id INTEGER PRIMARY KEY AUTOINCREMENT, name VARCHAR(255), category_id BIGINT, status VARCHAR(16)",
        "",
    ),
    (
        "id INTEGER PRIMARY KEY AUTOINCREMENT, name, category_id, status",
        "",
    ),
    (
        "id INTEGER PRIMARY KEY AUTOINCREMENT, name CLOB, category_id DECIMAL(10, 0), status NVARCHAR",
        "",
    ),
    (
        "id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, category_id INT, status TEXT, weight INT, note DEFAULT 'a, b)'",
        "",
    ),
    (
        "id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE, category_id INTEGER, status TEXT",
        "",
    ),
    (
        "id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT CHECK (length(name) > 0), category_id INT, status TEXT",
        "",
    ),
    ("ALTER TABLE pets ADD COLUMN weight INT", ""),
    (
        "ALTER TABLE pets ADD COLUMN theirs TEXT NOT NULL DEFAULT ''; UPDATE pets SET theirs = x'41' || name",
        "",
    ),
    (
        "ALTER TABLE pets RENAME TO animals; ALTER TABLE animals RENAME TO pets",
        "",
    ),
    (
        "CREATE UNIQUE INDEX theirs ON pets (name COLLATE NOCASE, id)",
        "",
    ),
    ("CREATE VIEW theirs AS SELECT gone FROM nowhere", ""),
    (
        "CREATE TABLE log (a); CREATE TRIGGER t AFTER INSERT ON pets BEGIN INSERT INTO log VALUES (NEW.name); END",
        "",
    ),
    (
        "CREATE TRIGGER t BEFORE INSERT ON pets WHEN NEW.name = 'x' BEGIN SELECT RAISE(ABORT, 'no'); END",
        "",
    ),
    (
        "CREATE TRIGGER t AFTER UPDATE ON pets BEGIN SELECT RAISE(ROLLBACK, 'no'); END",
        "",
    ),
    (
        "CREATE TABLE theirs (a TEXT COLLATE NOCASE PRIMARY KEY) WITHOUT ROWID",
        "",
    ),
    (
        "CREATE TABLE theirs (a); CREATE TRIGGER t AFTER INSERT ON theirs BEGIN DELETE FROM gone; END",
        "",
    ),
    ("ALTER TABLE pets RENAME COLUMN name TO NAME", ""),
    (
        "CREATE TRIGGER t AFTER INSERT ON pets BEGIN SELECT count(*) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL \
      SELECT i + 1 FROM n WHERE i < 150000) SELECT i FROM n); END",
        "",
    ),
    // By pandas and others: it loses what is written.
    (
        "id INTEGER, name TEXT, category_id INTEGER, status TEXT",
        "the table pets was rebuilt, and has lost its key",
    ),
    (
        "id BIGINT PRIMARY KEY, name TEXT, category_id BIGINT, status TEXT",
        "pets was rebuilt, and has lost its key",
    ),
    (
        "id INTEGER PRIMARY KEY DESC, name TEXT, category_id INT, status TEXT",
        "pets was rebuilt, and has lost its key",
    ),
    (
        "id INTEGER PRIMARY KEY, name TEXT, category_id INTEGER, status TEXT",
        "has lost AUTOINCREMENT",
    ),
    (
        "id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, category_id TEXT, status TEXT",
        "has lost the types of its columns",
    ),
    (
        "id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, category_id REAL, status TEXT",
        "has lost the types of its columns",
    ),
    (
        "id INTEGER PRIMARY KEY AUTOINCREMENT, name NUMERIC, category_id INT, status TEXT",
        "has lost the types of its columns",
    ),
    (
        "DROP TABLE retries; CREATE TABLE retries (pet INTEGER, key BLOB, fingerprint BLOB, at INTEGER)",
        "the table retries was rebuilt, and has lost its key",
    ),
    (
        "DROP TABLE api_keys; CREATE TABLE api_keys (id INTEGER PRIMARY KEY AUTOINCREMENT, digest BLOB, name TEXT, \
      read_only INTEGER, is_admin INTEGER DEFAULT 0, created_at INTEGER, expires_at INTEGER, last_used_at INTEGER)",
        "the table api_keys was rebuilt, and has lost UNIQUE",
    ),
    (
        "DELETE FROM pets WHERE id > 2; UPDATE sqlite_sequence SET seq = 1 WHERE name = 'pets'",
        "the last id of pets is 1, and 2 was given; this SQL repairs it: ",
    ),
    // A rule of theirs hides nothing, and no SQL is named that cures nothing.
    (
        "id INTEGER PRIMARY KEY, name TEXT CHECK (length(name) <> 3), category_id INT, status TEXT",
        "has lost AUTOINCREMENT",
    ),
    (
        "id INTEGER PRIMARY KEY, name TEXT, category_id INT CHECK (category_id < 9), status TEXT",
        "has lost AUTOINCREMENT",
    ),
    (
        "CREATE TABLE kinds (id INTEGER PRIMARY KEY); INSERT INTO kinds SELECT DISTINCT category_id FROM pets; \
         ALTER TABLE pets RENAME TO old; CREATE TABLE pets (id BIGINT, name TEXT, category_id INT REFERENCES kinds (id), \
         status TEXT); INSERT INTO pets SELECT * FROM old; DROP TABLE old; \
         CREATE INDEX pets_by_status ON pets (status) WHERE status IS NOT NULL",
        "has lost its key",
    ),
    (
        "ALTER TABLE pets RENAME TO old; CREATE TABLE pets (id INTEGER PRIMARY KEY, name TEXT NOT NULL, category_id INT, \
         status TEXT) WITHOUT ROWID; INSERT INTO pets SELECT * FROM old; DROP TABLE old; \
         CREATE INDEX pets_by_status ON pets (status) WHERE status IS NOT NULL",
        "has lost its key: NOT NULL constraint failed: pets.id",
    ),
    (
        "ALTER TABLE pets RENAME TO old; ALTER TABLE old RENAME TO \"Pets\"",
        "the table pets was rebuilt, and is named Pets now",
    ),
    (
        "id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, category_id INT, status TEXT, \
         UNIQUE (name, category_id, status) ON CONFLICT IGNORE",
        "has lost pets of an equal name",
    ),
    // It stops what is written.
    (
        "CREATE TABLE log (a); CREATE TRIGGER t AFTER INSERT ON pets BEGIN INSERT INTO log VALUES (1); END; DROP TABLE log",
        "the trigger t lets writes to the table pets fail (no such table: main.log); this SQL repairs it: DROP TRIGGER \"t\"",
    ),
    (
        "CREATE TRIGGER \"a \"\"b\"\"\" AFTER DELETE ON pets BEGIN SELECT gone(1); END",
        "DROP TRIGGER \"a \"\"b\"\"\"",
    ),
    (
        "CREATE TRIGGER t AFTER UPDATE ON pets BEGIN UPDATE api_keys SET is_admin = 1; END",
        "fail (not authorized)",
    ),
    (
        "CREATE TRIGGER t AFTER INSERT ON pets BEGIN SELECT count(*) FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL \
      SELECT i + 1 FROM n) SELECT i FROM n); END",
        "fail (interrupted)",
    ),
    (
        "CREATE TRIGGER t AFTER DELETE ON pets BEGIN UPDATE sqlite_sequence SET seq = 0; END",
        "fail (not authorized)",
    ),
    (
        "CREATE TRIGGER t BEFORE DELETE ON api_keys BEGIN SELECT RAISE(IGNORE); END",
        "fail (only pets may have triggers)",
    ),
    (
        "CREATE TRIGGER t BEFORE INSERT ON retries WHEN NEW.pet = 77 BEGIN SELECT RAISE(IGNORE); END",
        "only pets may have",
    ),
    (
        "CREATE INDEX t ON api_keys (digest)",
        "fail (an index could lead to another key); this SQL repairs it: DROP INDEX \"t\"",
    ),
    (
        "id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT UNIQUE ON CONFLICT REPLACE, category_id INTEGER, status TEXT",
        "has lost pets of an equal name",
    ),
    (
        "id INTEGER PRIMARY KEY AUTOINCREMENT, name TEXT, category_id INTEGER NOT NULL REFERENCES categories (id), status TEXT",
        "has lost its key: no such table: main.categories",
    ),
    // It is ours.
    (
        "DROP INDEX pets_by_status",
        "the index pets_by_status is missing; this SQL repairs it: CREATE INDEX",
    ),
    (
        "UPDATE pets SET name = CAST(x'61e9' AS TEXT) WHERE id = 2",
        "is not UTF-8",
    ),
];

/// The collations and modules of other programs, which this one lacks.
fn foreign(database: &std::path::Path) -> Connection {
    let connection = Connection::open(database).unwrap();
    connection
        .execute_batch("PRAGMA foreign_keys = OFF")
        .unwrap();
    connection
}

#[test]
fn what_others_change_is_kept_or_named_and_no_printed_sql_costs_a_pet() {
    for &(sql, said) in WAYS {
        let sql = if sql.starts_with("id ") {
            rebuilt(sql)
        } else {
            sql.to_owned()
        };
        let folder = filled(3);
        let changed = foreign(&folder.database()).execute_batch(&sql);
        assert_eq!(changed, Ok(()), "{sql}");
        let check = || {
            let output = run(&["check"], &folder.database());
            String::from_utf8([output.stdout, output.stderr].concat()).unwrap()
        };
        let export = || succeed(&["export"], &folder.database());
        let before = export();
        assert!(before.lines().count() >= 2, "{sql}: {before}");
        let found = check();
        if said.is_empty() {
            assert!(found.contains("is sound"), "{sql}: {found}");
            succeed(
                &["backup", folder.path().join("copy.db").to_str().unwrap()],
                &folder.database(),
            );
            let server = Server::start_in(folder, |command| command);
            server.fill(["Rex"]);
            server.get("/readyz").expect(200);
            continue;
        }
        assert!(found.contains(said), "{sql}: {found}");
        if !said.contains("UTF-8") {
            refuse(
                &["serve", "--listen", "127.0.0.1:0"],
                &folder.database(),
                said,
            );
        }
        for line in found.lines() {
            if let Some((_, repair)) = line.split_once("this SQL repairs it: ") {
                foreign(&folder.database()).execute_batch(repair).unwrap();
            }
        }
        assert_eq!(export(), before, "{sql}");
        if found.contains("this SQL repairs it") {
            assert!(check().contains("is sound"), "{sql}: {}", check());
            Server::start_in(folder, |command| command).fill(["Rex"]);
            continue;
        }
        // The other cure.
        let (moved, file) = (Folder::new(), folder.path().join("pets.ndjson"));
        fs::write(&file, &before).unwrap();
        succeed(
            &["import", "--keep-ids", "--create", file.to_str().unwrap()],
            &moved.database(),
        );
        assert_eq!(succeed(&["export"], &moved.database()), before, "{sql}");
    }
}

/// Runs SQL with Python's SQLite, which has modules that petstore lacks.
fn python(folder: &Folder, sql: &str) {
    let run = "import sqlite3, sys; sqlite3.connect(sys.argv[1]).executescript(sys.argv[2])";
    let mut python = Command::new("python3");
    python.args(["-c", run]).arg(folder.database()).arg(sql);
    let done = python.output().unwrap();
    assert!(done.status.success(), "{done:?}");
}

#[test]
fn what_petstore_lacks_for_an_object_of_others_stops_no_backup() {
    let search = "CREATE VIRTUAL TABLE pets_fts USING fts5 (name, content='pets', content_rowid='id');
        CREATE TRIGGER pets_ai AFTER INSERT ON pets BEGIN INSERT INTO pets_fts (rowid, name) VALUES (NEW.id, NEW.name); END;";
    let collated = |table: &str| {
        format!(
            "CREATE TABLE theirs (name); CREATE INDEX theirs_name ON {table} (name COLLATE NOCASE); PRAGMA writable_schema = ON;
            UPDATE sqlite_schema SET sql = replace(sql, 'NOCASE', 'GERMAN') WHERE name = 'theirs_name'"
        )
    };
    for (sql, said, repair) in [
        (
            search,
            "; no such module: fts5)",
            "DROP TRIGGER \"pets_ai\"",
        ),
        (
            &collated("pets"),
            "fail (no such collation sequence: GERMAN)",
            "DROP INDEX \"theirs_name\"",
        ),
        (
            &collated("theirs"),
            "the table theirs, which was not checked: no such collation sequence: GERMAN",
            "",
        ),
    ] {
        let folder = filled(3);
        python(&folder, sql);
        let output = run(&["check"], &folder.database());
        let found = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(found.contains(said) && found.contains(repair), "{found}");
        let copy = folder.path().join("copy.db");
        succeed(&["backup", copy.to_str().unwrap()], &folder.database());
        succeed(&["restore", copy.to_str().unwrap()], &folder.database());
        if !repair.is_empty() {
            refuse(
                &["serve", "--listen", "127.0.0.1:0"],
                &folder.database(),
                said,
            );
            // An index that cannot be read is removed without a look at its rows.
            python(&folder, repair);
        }
        Server::start_in(folder, |command| command).fill(["Rex"]);
    }
}

#[test]
fn backup_from_elsewhere_brings_no_key_of_its_author() {
    let digest = "x'5891b5b522d5df086d0ff0b110fbd9d21bb4fc7163af34d08286a2e846f6be03'";
    let plant = format!(
        "INSERT INTO api_keys (digest, name, read_only, is_admin, created_at) VALUES ({digest}, 'mine', 0, 1, 0)"
    );
    let mut ways = vec![
        "AFTER DELETE ON api_keys",
        "AFTER INSERT ON api_keys WHEN NEW.name <> 'mine'",
        "AFTER INSERT ON pets",
        "AFTER UPDATE ON pets",
        "AFTER INSERT ON retries",
    ]
    .into_iter()
    .map(|when| format!("CREATE TRIGGER theirs {when} BEGIN {plant}; END"))
    .collect::<Vec<_>>();
    ways.push(format!(
        "CREATE VIEW v AS SELECT 1 AS a; CREATE TRIGGER v1 INSTEAD OF INSERT ON v BEGIN {plant}; END;
         CREATE TRIGGER theirs AFTER INSERT ON pets BEGIN INSERT INTO v VALUES (1); END"
    ));
    for way in ways {
        let (folder, source) = (filled(1), filled(1));
        let key = add_key(&folder.database(), &["ours"]);
        fs::copy(folder.database(), source.path().join("copy.db")).unwrap();
        let copy = source.path().join("copy.db");
        foreign(&copy).execute_batch(&way).unwrap();
        succeed(&["restore", copy.to_str().unwrap()], &folder.database());
        assert!(
            !succeed(&["key", "list"], &folder.database()).contains("mine"),
            "{way}"
        );
        // Only SQL that removes it lets the service start.
        let repair = "DROP TRIGGER \"theirs\"";
        refuse(
            &["serve", "--listen", "127.0.0.1:0"],
            &folder.database(),
            repair,
        );
        foreign(&folder.database()).execute_batch(repair).unwrap();
        let server = Server::start_in(folder, |command| command);
        server.connect().get("/v1/pets", key.trim_end()).expect(200);
        // One that comes later stops the writes, and plants nothing.
        let again = way
            .replace("VIEW v ", "VIEW v2 ")
            .replace("TRIGGER v1", "TRIGGER v2")
            .replace(" v ", " v2 ");
        foreign(&server.folder.database())
            .execute_batch(&again)
            .unwrap();
        let _ = server.create(r#"{"name":"Rex","categoryId":1}"#);
        assert!(
            !succeed(&["key", "list"], &server.folder.database()).contains("mine"),
            "{way}"
        );
    }
}
