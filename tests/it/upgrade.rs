//! Databases that executables of earlier versions of the schema have made, and one of a later version.
//! `scripts/test.d/make-database` has made the files of `tests/it/databases`.

use std::path::Path;

use rusqlite::Connection;

use crate::backup::{names, succeed};
use crate::client::{Reply, request};
use crate::harness::{Folder, Server, expect_refusal, run, schema_version};

/// What every one of them has.
const PETS: &str = r#"[{"id":1,"name":"Rex","categoryId":3,"status":"available"},{"id":2,"name":"","categoryId":-9223372036854775808},{"id":3,"name":"Zoë \u0000 🐈 \"","categoryId":9223372036854775807,"status":"pending"},{"id":4,"name":"Tom","categoryId":0,"status":"sold"}]"#;

/// Copies the database of a version, and the log that a kill has left, into a folder of their own. Returns the
/// key of `ci` too.
fn made(version: usize) -> (Folder, String) {
    let made = |end: &str| {
        let databases = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/databases");
        databases.join(format!("v{version}.{end}"))
    };
    let folder = Folder::new();
    let said = "scripts/test.d/make-database makes one for each version";
    std::fs::copy(made("db"), folder.database()).expect(said);
    if made("db-wal").exists() {
        std::fs::copy(made("db-wal"), folder.path().join("pets.db-wal")).unwrap();
    }
    let keys = std::fs::read_to_string(made("key")).unwrap();
    (folder, keys.lines().next().unwrap().to_owned())
}

/// The names and the content of the files that hold data: a log that is empty, and the index of a log, hold none.
fn content(folder: &Folder) -> Vec<(String, Vec<u8>)> {
    let names = names(folder.path()).into_iter().filter(|name| !name.ends_with("-shm"));
    let files = names.map(|name| (name.clone(), std::fs::read(folder.path().join(name)).unwrap()));
    files.filter(|(_, content)| !content.is_empty()).collect()
}

/// The create of the fourth pet, sent again.
fn create_again(server: &Server, key: &str) -> Reply {
    let body = r#"{"name":"Tom","categoryId":0,"status":"sold"}"#;
    let length = body.len();
    let fields =
        format!("Authorization: Bearer {key}\r\nIdempotency-Key: upgrade-4\r\nContent-Length: {length}\r\n");
    let mut connection = server.connect();
    connection.send(request("POST", "/v1/pets", &fields) + body);
    connection.reply()
}

/// Expects each row of each table of the older database in the newer one. Retries have their own form in each
/// version.
#[track_caller]
fn expect_all_rows(older: &Folder, newer: &Folder) {
    let connection = Connection::open(newer.database()).unwrap();
    connection.execute("ATTACH ?1 AS older", [older.database().to_str().unwrap()]).unwrap();
    let rows = |sql: &str| -> Vec<String> {
        let mut statement = connection.prepare(sql).unwrap();
        let rows = statement.query_map([], |row| row.get(0)).unwrap();
        rows.map(Result::unwrap).collect()
    };
    let tables =
        rows("SELECT name FROM older.sqlite_schema WHERE type = 'table' AND name NOT LIKE '%retries'");
    assert!(tables.len() >= 3, "{tables:?}");
    for table in tables {
        let columns = rows(&format!(
            "SELECT '\"' || name || '\"' FROM pragma_table_info('{table}', 'older') WHERE name <> 'last_used_at'"
        ));
        let columns = columns.join(", ");
        let sql = format!("SELECT {columns} FROM older.{table} EXCEPT SELECT {columns} FROM main.{table}");
        let lost = connection.prepare(&sql).unwrap().exists([]).unwrap();
        assert!(!lost, "rows of {table} are not what they were");
    }
}

fn serve_and_compare(version: usize) {
    let (folder, key) = made(version);
    let file = folder.database();
    let before = content(&folder);
    let line = |pets, version| format!("{} is sound: {pets} pets, version {version}\n", file.display());
    assert_eq!(succeed(&["check"], &file), line(4, version));
    if version < schema_version() {
        let said = format!("is of version {version}, and this program reads version {}", schema_version());
        expect_refusal(run(&["serve", "--read-only", "--listen", "127.0.0.1:0"], &file), 1, &said);
    }
    assert!(content(&folder) == before, "version {version}: {:?}", names(folder.path()));

    let server = Server::start_in(folder, |command| command.env_remove("PETSTORE_API_KEY"));
    let mut connection = server.connect();
    assert_eq!(connection.get("/v1/pets", &key).expect(200).body, PETS.as_bytes());
    expect_all_rows(&made(version).0, &server.folder);
    let keys = succeed(&["key", "list"], &file);
    let scopes: &[_] = if version < 2 { &["full", "read-only"] } else { &["full", "read-only", "admin"] };
    for (name, scope) in ["ci", "dashboard", "owner"].iter().zip(scopes) {
        let words = |line: &str| line.split_whitespace().take(2).eq([*name, *scope]);
        assert!(keys.lines().any(words), "{name} {scope}: {keys}");
    }
    let again = create_again(&server, &key);
    let id = again.expect(201).json()["id"].as_i64().unwrap();
    let is_replayed = again.header("Idempotency-Replayed") == Some("true");
    // The id of the deleted pet, 5, is not given again.
    assert_eq!((id, is_replayed), if version < 4 { (6, false) } else { (4, true) });
    #[cfg(feature = "site")]
    if version >= 2 {
        assert_eq!(server.ask("GET", "/kept.txt", "").expect(200).body, b"deployed before\n");
        let domains = succeed(&["domain", "list", "--platform-host", "sites.example.net"], &file);
        assert!(domains.contains("pets.example.com") && !domains.contains("removed"), "{domains}");
    }
    let pets = if version < 4 { 5 } else { 4 };
    assert_eq!(succeed(&["check"], &file), line(pets, schema_version()));
}

#[test]
fn database_of_each_version_is_brought_up_to_date_and_keeps_what_it_has() {
    for version in 1..=schema_version() {
        serve_and_compare(version);
    }
}

#[test]
fn backup_of_each_version_is_restored() {
    for version in 1..=schema_version() {
        let (backup, key) = made(version);
        let folder = Folder::new();
        succeed(&["restore", backup.database().to_str().unwrap()], &folder.database());
        let server = Server::start_in(folder, |command| command.env_remove("PETSTORE_API_KEY"));
        assert_eq!(server.connect().get("/v1/pets", &key).expect(200).body, PETS.as_bytes());
    }
}

#[test]
fn no_command_upgrades_what_a_service_of_an_earlier_version_serves() {
    let known = schema_version();
    let (folder, _) = made(known - 1);
    let before = content(&folder);
    let claim = ["pets.db", "pets.db-wal"].map(|name| {
        let file = std::fs::File::options().append(true).create(true).open(folder.path().join(name)).unwrap();
        file.lock().unwrap();
        file
    });
    let said = format!(
        "is of version {}, and its running service does not know version {known}; restart the service",
        known - 1
    );
    for command in [
        "import",
        "key add new",
        #[cfg(feature = "site")]
        "domain list",
    ] {
        let words: Vec<&str> = command.split(' ').collect();
        expect_refusal(run(&words, &folder.database()), 1, &said);
        assert!(content(&folder) == before, "{command}: {:?}", names(folder.path()));
    }
    drop(claim);
    succeed(&["key", "add", "new"], &folder.database());
}

/// A database as the next version leaves it: with its number, in the log alone if somebody has just written it.
fn later(is_in_log: bool) -> Folder {
    let (source, _) = made(schema_version());
    let later = i64::try_from(schema_version()).unwrap() + 1;
    let connection = Connection::open(source.database()).unwrap();
    connection.pragma_update(None, "user_version", later).unwrap();
    if !is_in_log {
        drop(connection);
        return source;
    }
    let folder = Folder::new();
    for name in ["pets.db", "pets.db-wal"] {
        std::fs::copy(source.path().join(name), folder.path().join(name)).unwrap();
    }
    folder
}

#[test]
fn later_version_is_refused_by_all_commands_and_left_as_it_is() {
    let known = schema_version();
    let said = format!(
        "is of version {}, and this program knows versions up to {known}; use the version",
        known + 1
    );
    let commands = [
        "serve --listen 127.0.0.1:0",
        "serve --listen 127.0.0.1:0 --read-only",
        "backup nowhere.db",
        "check",
        "export",
        "import",
        "key add new",
        "key list",
        "key rotate ci",
        "key revoke ci",
        "pet status 1 sold",
        "pet delete 1",
        #[cfg(feature = "site")]
        "site plan free",
        #[cfg(feature = "site")]
        "domain remove old.example.com",
    ];
    for is_in_log in [false, true] {
        let folder = later(is_in_log);
        let before = content(&folder);
        assert_eq!(before.len(), 1 + usize::from(is_in_log));
        for command in commands {
            let words: Vec<&str> = command.split(' ').collect();
            expect_refusal(run(&words, &folder.database()), 1, &said);
            assert!(content(&folder) == before, "{command}: {:?}", names(folder.path()));
        }
        assert!(!Path::new("nowhere.db").exists());
        // As a backup too.
        let (present, _) = made(known);
        let before = content(&present);
        let backup = folder.database();
        expect_refusal(run(&["restore", backup.to_str().unwrap()], &present.database()), 1, &said);
        assert!(content(&present) == before);
    }
}
