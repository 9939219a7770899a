//! `serve --read-only`: alongside the service that writes, on a copy, and on a file that can only be read.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use rusqlite::Connection as Sqlite;

use crate::admin::metric;
use crate::backup::{filled, names, succeed};
use crate::messages;
use support::client::Connection;
use support::harness::{
    Folder, KEY, Process, Server, add_key, as_nobody, expect_refusal, output, petstore, run,
};

const TOM: &str = r#"{"name":"Tom","categoryId":1}"#;

/// A service that only reads a database.
fn reader_of(database: &Path) -> Server {
    reader_with(database, &[])
}

fn reader_with(database: &Path, flags: &[&str]) -> Server {
    Server::start_with(|command| {
        command
            .arg("--read-only")
            .args(flags)
            .env("PETSTORE_DATABASE", database)
            .env("RUST_LOG", "warn")
    })
}

/// How many pets a service lists.
fn count(server: &Server) -> usize {
    server.connect().get_all("/v1/pets?limit=100", KEY).len()
}

#[test]
fn two_readers_see_at_once_what_the_writer_commits() {
    let writer = Server::start();
    let database = writer.folder.database();
    let readers = [reader_of(&database), reader_of(&database)];
    for pets in 1..=20 {
        writer.create(TOM).expect(201);
        readers
            .iter()
            .for_each(|reader| assert_eq!(count(reader), pets));
    }
    for reader in &readers {
        let refused = reader.create(TOM);
        refused.expect_error(
            503,
            "read_only",
            "Send requests that change something to the service that writes",
        );
        assert_eq!(refused.header("Retry-After"), None);
        reader.connect().post("/v1/pets", "wrong", TOM).expect(401);
        reader.connect().post("/v1/nowhere", KEY, TOM).expect(404);
        let ready = reader.ask("GET", "/readyz", "");
        assert_eq!(
            ready.expect(200).body,
            br#"{"status":"ready","readOnly":true}"#
        );
        assert_eq!(
            reader.ask("GET", "/healthz", "").expect(200).body,
            br#"{"status":"ok"}"#
        );
    }
    // Readers do not keep the log from being emptied. They go on without the writer, and see what the next one writes.
    crate::database_file::empty_log(&writer);
    let folder = writer.kill();
    assert_eq!(count(&readers[0]), 20);
    let mut writer = Server::start_in(folder, |command| command);
    writer.create(TOM).expect(201);
    assert_eq!(count(&readers[1]), 21);
    writer.signal("TERM");
    writer.ended();
    assert_eq!(count(&readers[0]), 21);
}

#[test]
fn change_of_a_key_counts_at_once() {
    let writer = Server::start();
    let database = writer.folder.database();
    let reader = reader_of(&database);
    let key = add_key(&database, &["ci"]);
    for _ in 0..2 {
        reader.connect().get("/v1/pets", &key).expect(200);
    }
    succeed(&["key", "revoke", "ci"], &database);
    reader.connect().get("/v1/pets", &key).expect(401);
}

#[test]
fn refusal_names_the_address_of_the_service_that_writes() {
    let folder = filled(1);
    let reader = reader_with(
        &folder.database(),
        &["--base-url", "https://pets.example/v1"],
    );
    let refused = reader.create(TOM);
    refused.expect_error(
        503,
        "read_only",
        "Send requests that change something to https://pets.example/v1.",
    );
}

#[test]
fn reader_makes_no_first_key() {
    let (folder, other) = (filled(1), Folder::new());
    let key = other.path().join("first-key");
    let reader = Server::start_in(folder, |command| {
        command
            .arg("--read-only")
            .env_remove("PETSTORE_API_KEY")
            .env("PETSTORE_FIRST_KEY_FILE", &key)
    });
    reader.get("/v1/pets").expect(401);
    let database = reader.folder.database();
    assert_eq!(succeed(&["key", "list", "--json"], &database), "[]\n");
    assert!(!key.exists());
}

/// Starts a service that only reads, as a user who is not root.
fn reader_as_nobody(database: &Path) -> Process {
    let mut command = as_nobody(&["serve", "--read-only", "--listen", "127.0.0.1:0"]);
    Process::start(
        command
            .env("PETSTORE_DATABASE", database)
            .env("PETSTORE_API_KEY", KEY),
    )
}

fn may(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn file_that_can_only_be_read_is_served_until_somebody_writes_it() {
    let folder = filled(10);
    may(&folder.database(), 0o444);
    may(folder.path(), 0o555);
    let mut process = reader_as_nobody(&folder.database());
    let line = process.take_first_line();
    let address = line
        .trim_end()
        .strip_prefix("petstore listening on http://")
        .expect(&line);
    let mut connection = Connection::open(address.parse().unwrap());
    assert_eq!(connection.get_all("/v1/pets", KEY).len(), 11);
    connection
        .post("/v1/pets", KEY, TOM)
        .expect_error(503, "read_only", "is read-only");
    assert_eq!(names(folder.path()), ["pets.db"]);
    // The user of this test may write it, and does.
    may(folder.path(), 0o755);
    may(&folder.database(), 0o644);
    Sqlite::open(folder.database())
        .unwrap()
        .execute("DELETE FROM pets WHERE id = 1", [])
        .unwrap();
    let ended = process.output();
    assert_eq!(ended.status.code(), Some(1));
    let said = String::from_utf8(ended.stderr).unwrap();
    assert!(said.contains(messages::MOVED), "{said}");
}

#[test]
fn log_that_cannot_be_read_here_is_not_left_out() {
    let (written, folder) = (filled(0), Folder::new());
    let other = Sqlite::open(written.database()).unwrap();
    other
        .execute("INSERT INTO pets (name, category_id) VALUES ('Tom', 1)", [])
        .unwrap();
    for name in ["pets.db", "pets.db-wal"] {
        fs::copy(written.path().join(name), folder.path().join(name)).unwrap();
    }
    for name in ["pets.db", "pets.db-wal"] {
        may(&folder.path().join(name), 0o444);
    }
    may(folder.path(), 0o555);
    expect_refusal(
        reader_as_nobody(&folder.database()).output(),
        1,
        "cannot be opened",
    );
    may(folder.path(), 0o755);
}

#[test]
fn copy_follows_what_is_written_into_it() {
    let folder = filled(10);
    let before = fs::read(folder.database()).unwrap();
    let mut reader = reader_of(&folder.database());
    assert_eq!(count(&reader), 11);
    assert_eq!(fs::read(folder.database()).unwrap(), before);
    // As sqlite3_rsync does: one transaction, by another program.
    Sqlite::open(folder.database())
        .unwrap()
        .execute("DELETE FROM pets WHERE id > 5", [])
        .unwrap();
    assert_eq!(count(&reader), 5);
    assert!(!reader.has_ended());
}

#[test]
fn copy_that_is_replaced_ends_the_service_and_the_next_serves_the_new_one() {
    let folder = filled(10);
    let mut reader = reader_of(&folder.database());
    let copy = folder.path().join("copy.db");
    succeed(&["backup", copy.to_str().unwrap()], &folder.database());
    succeed(&["pet", "delete", "1", "2", "3"], &copy);
    fs::rename(copy, folder.database()).unwrap();
    let (status, _, logged) = reader.ended();
    assert_eq!(status.code(), Some(1));
    assert!(logged.contains(messages::MOVED), "{logged}");
    assert_eq!(count(&reader_of(&folder.database())), 8);
}

#[test]
fn later_version_is_refused() {
    let folder = filled(0);
    Sqlite::open(folder.database())
        .unwrap()
        .execute_batch("PRAGMA user_version = 99")
        .unwrap();
    let start = run(
        &["serve", "--read-only", "--listen", "127.0.0.1:0"],
        &folder.database(),
    );
    expect_refusal(start, 1, "is of version 99");
}

#[test]
fn database_that_is_not_there_is_not_made() {
    let folder = Folder::new();
    let start = run(
        &["serve", "--read-only", "--listen", "127.0.0.1:0"],
        &folder.database(),
    );
    expect_refusal(start, 1, messages::DATABASE_MISSING);
    assert_eq!(names(folder.path()), [""; 0]);
    for other in [&["--ephemeral"][..], &["--first-key-file", "key"]] {
        expect_refusal(
            output(petstore(&["--read-only"]).args(other)),
            2,
            "cannot be combined",
        );
    }
}

#[test]
fn metrics_show_that_it_only_reads() {
    let folder = filled(10);
    let reader = reader_with(&folder.database(), &["--admin", "0"]);
    let metric = |name: &str| metric(&reader, name).unwrap();
    assert_eq!(metric("read_only"), 1);
    reader
        .create(TOM)
        .expect_error(503, "read_only", "is read-only");
    assert_eq!(metric("refusals_total{code=\"read_only\"}"), 1);
    assert_eq!(metric("refusals_total{code=\"storage_unavailable\"}"), 0);
    let mut admin = Connection::open(reader.admin.unwrap());
    let key = add_key(&folder.database(), &["boss", "--admin"]);
    if cfg!(feature = "site") {
        let asked = format!("Host: 127.0.0.1\r\nAuthorization: Bearer {}\r\n", &key);
        admin.send(format!("GET /settings/api/project HTTP/1.1\r\n{asked}\r\n"));
        admin
            .reply()
            .expect_error(503, "read_only", "the service that writes");
    }
}
