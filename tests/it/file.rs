//! The database file: when it moves, who may use it, and which files stay next to it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::client::Connection;
use crate::harness::{Folder, KEY, Server, add_key, as_nobody, expect_refusal, output, run};
use crate::wait::wait_until;
use crate::wording;

const REX: &str = r#"{"name":"Rex","categoryId":1}"#;

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Waits until the write-ahead log is empty.
pub fn wait_for_rest(server: &Server) {
    let log = beside(&server.folder.database(), "-wal");
    wait_until("the write-ahead log to be emptied", || fs::metadata(&log).unwrap().len() == 0);
}

#[test]
fn nothing_is_acknowledged_for_a_file_that_is_gone() {
    for (i, leave) in [
        (|path: &Path| fs::remove_file(path).unwrap()) as fn(&Path),
        |path| fs::rename(path, beside(path, ".old")).unwrap(),
        |path| {
            fs::copy(path, beside(path, ".copy")).unwrap();
            fs::rename(beside(path, ".copy"), path).unwrap();
        },
        |path| fs::remove_file(beside(path, "-wal")).unwrap(),
    ]
    .into_iter()
    .enumerate()
    {
        let mut server = Server::start();
        let mut connection = server.connect();
        connection.post("/v1/pets", KEY, REX).expect(201);
        leave(&server.folder.database());
        let refused = connection.post("/v1/pets", KEY, REX);
        refused.expect_error(503, "storage_unavailable", wording::MOVED);
        let (status, _, log) = server.ended();
        assert_eq!(status.code(), Some(1), "{i}: {log}");
        let lines = log.lines().filter(|line| line.contains(wording::MOVED)).count();
        assert_eq!(lines, 2, "{i}: one line in the log, and the reason at the end: {log}");
    }
}

#[test]
fn reads_notice_a_file_that_is_gone() {
    let mut server = Server::start();
    server.fill(["Rex"]);
    fs::remove_file(server.folder.database()).unwrap();
    // A look is valid for a moment.
    wait_until("a read to notice", || {
        let mut connection = Connection::open(server.address);
        connection.send(crate::client::get("/v1/pets", KEY));
        connection.reply_unless_ended().is_none_or(|reply| reply.status == 503)
    });
    assert_eq!(server.ended().0.code(), Some(1));
}

#[test]
fn file_that_is_gone_is_noticed_without_a_request() {
    let mut server = Server::start();
    server.fill(["Rex"]);
    fs::remove_file(server.folder.database()).unwrap();
    let (status, _, log) = server.ended();
    assert_eq!(status.code(), Some(1), "{log}");
}

#[test]
fn database_has_one_service() {
    let server = Server::start();
    let path = server.folder.database();
    let links = ["hard", "soft"].map(|name| server.folder.path().join(name));
    fs::hard_link(&path, &links[0]).unwrap();
    std::os::unix::fs::symlink(&path, &links[1]).unwrap();
    for name in [&path, &links[1]] {
        expect_refusal(run(&["--listen", "127.0.0.1:0"], name), 1, "another process holds");
    }
    let hard = run(&["--listen", "127.0.0.1:0"], &links[0]);
    assert_eq!(hard.status.code(), Some(1));
    // Commands on keys work meanwhile.
    add_key(&path, &["beside"]);
    server.connect().get("/v1/pets", KEY).expect(200);
    // A killed service no longer holds it.
    let folder = server.kill();
    Server::start_in(folder, |command| command);
}

#[test]
fn file_that_can_only_be_read_is_refused() {
    let folder = Server::start().kill();
    fs::set_permissions(folder.database(), fs::Permissions::from_mode(0o444)).unwrap();
    for name in ["pets.db-wal", "pets.db-shm"] {
        let _ = fs::remove_file(folder.path().join(name));
    }
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    let mut command = as_nobody(&["--listen", "127.0.0.1:0"]);
    expect_refusal(output(command.env("PETSTORE_DATABASE", folder.database())), 1, "this user");
}

#[test]
fn index_that_is_dropped_comes_with_the_sql_that_makes_it() {
    let folder = Server::start().kill();
    let sql = |sql: &str| rusqlite::Connection::open(folder.database()).unwrap().execute_batch(sql).unwrap();
    sql("DROP INDEX pets_by_status");
    for words in [&["--listen", "127.0.0.1:0"][..], &["key", "add", "ci"]] {
        let refused = run(words, &folder.database());
        let line = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{line}");
        assert!(!line.contains("restore") && line.contains(wording::INDEX_MISSING), "{line}");
    }
    let line = String::from_utf8(run(&["key", "add", "ci"], &folder.database()).stderr).unwrap();
    let (_, mend) = line.split_once("this SQL repairs it: ").unwrap();
    sql(mend.split_once("; repair it with sqlite3").unwrap().0);
    Server::start_in(folder, |command| command);
}

#[test]
fn pet_that_a_foreign_trigger_drops_is_not_acknowledged() {
    let mut folder = Server::start().kill();
    for action in ["IGNORE", "ABORT, 'no'", "ROLLBACK, 'no'"] {
        let sql = format!(
            "DROP TRIGGER IF EXISTS theirs; DELETE FROM pets; CREATE TRIGGER theirs BEFORE INSERT ON pets
                WHEN NEW.name = 'Rex' BEGIN SELECT RAISE({action}); END"
        );
        rusqlite::Connection::open(folder.database()).unwrap().execute_batch(&sql).unwrap();
        let server = Server::start_in(folder, |command| command);
        server.create(REX).expect_error(500, "internal_error", "");
        server.fill(["Tom"]);
        assert_eq!(server.get("/v1/pets").json().as_array().unwrap().len(), 1, "{action}");
        folder = server.kill();
    }
    let said = run(&["check"], &folder.database());
    assert!(String::from_utf8(said.stdout).unwrap().contains("it also has the trigger theirs\n"));
}

#[test]
fn table_that_is_dropped_is_said_to_be_missing() {
    let server = Server::start();
    let other = rusqlite::Connection::open(server.folder.database()).unwrap();
    other.execute_batch("ALTER TABLE pets RENAME TO animals").unwrap();
    let mut connection = server.connect();
    for target in ["/v1/pets", "/readyz"] {
        connection.get(target, KEY).expect_error(503, "storage_unavailable", "lacks a table");
    }
    connection.get("/healthz", "").expect(200);
    other.execute_batch("ALTER TABLE animals RENAME TO pets").unwrap();
    connection.get("/readyz", "").expect(200);
}

#[test]
fn copy_of_a_database_at_rest_is_whole() {
    let server = Server::start();
    server.fill(["Rex", "Tom"]);
    wait_for_rest(&server);
    let copy = Folder::new();
    fs::copy(server.folder.database(), copy.database()).unwrap();
    let copied = rusqlite::Connection::open(copy.database()).unwrap();
    let count: i64 = copied.query_row("SELECT count(*) FROM pets", [], |row| row.get(0)).unwrap();
    assert_eq!(count, 2);
}

#[test]
fn log_that_a_long_reader_made_grow_is_given_back() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.post("/v1/pets", KEY, REX).expect(201);
    let reader = rusqlite::Connection::open(server.folder.database()).unwrap();
    reader.execute_batch("BEGIN; SELECT count(*) FROM pets").unwrap();
    let log = beside(&server.folder.database(), "-wal");
    let large = format!(r#"{{"name":"{}","categoryId":1}}"#, "x".repeat(60_000));
    while fs::metadata(&log).unwrap().len() < 20 * 1024 * 1024 {
        connection.post("/v1/pets", KEY, &large).expect(201);
    }
    reader.execute_batch("COMMIT").unwrap();
    connection.post("/v1/pets", KEY, REX).expect(201);
    wait_for_rest(&server);
}
