//! The database file: when it moves, who may use it, and which files stay next to it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use crate::client::Connection;
use crate::harness::{Folder, KEY, Server, as_nobody, expect_refusal, output, run};
use crate::said;
use crate::wait::wait_until;

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
        |path| fs::remove_file(beside(path, "-shm")).unwrap(),
    ]
    .into_iter()
    .enumerate()
    {
        let mut server = Server::start();
        let mut connection = server.connect();
        connection.post("/v1/pets", KEY, REX).expect(201);
        leave(&server.folder.database());
        let refused = connection.post("/v1/pets", KEY, REX);
        refused.expect_error(503, "storage_unavailable", said::MOVED);
        let (status, _, log) = server.ended();
        assert_eq!(status.code(), Some(1), "{i}: {log}");
        let lines = log.lines().filter(|line| line.contains(said::MOVED)).count();
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
fn database_that_comes_into_the_place_of_another_has_no_service_while_that_one_runs() {
    let mut server = Server::start();
    server.fill(["old"]);
    wait_for_rest(&server);
    let path = server.folder.database();
    let copy = beside(&path, ".copy");
    fs::copy(&path, &copy).unwrap();
    // Stopped, so that it notices nothing.
    server.signal("STOP");
    fs::rename(&copy, &path).unwrap();
    expect_refusal(run(&["--listen", "127.0.0.1:0"], &path), 1, "holds the log of");
    refuse_all(&path, "holds the log of");
    server.signal("CONT");
    let (status, _, log) = server.ended();
    assert_eq!(status.code(), Some(1), "{log}");
    Server::start_in(server.folder, |command| command).connect().get("/v1/pets/1", KEY).expect(200);
}

/// Expects that commands refuse this file. At the same time, as each looks for a second.
#[track_caller]
fn refuse_all(file: &Path, said: &str) {
    let [name, copy] = [file.to_owned(), beside(file, ".new")].map(|path| path.to_str().unwrap().to_owned());
    let restored = beside(file, ".restored");
    let on_file: [&[&str]; 7] = [
        &["export"],
        &["check"],
        &["check", &name],
        &["backup", &copy],
        &["key", "list"],
        &["key", "add", "lost"],
        &["pet", "delete", "1"],
    ];
    std::thread::scope(|scope| {
        for words in on_file {
            scope.spawn(|| expect_refusal(run(words, file), 1, said));
        }
        expect_refusal(run(&["restore", &name], &restored), 1, said);
    });
    assert!(!Path::new(&copy).exists() && !restored.exists());
}

#[test]
fn database_in_use_under_another_name_is_refused() {
    let mut server = Server::start();
    server.fill(["in the file"]);
    wait_for_rest(&server);
    server.fill(["in the log"]);
    let path = server.folder.database();
    let [hard, soft, away] = ["hard", "soft", "away"].map(|name| server.folder.path().join(name));
    fs::hard_link(&path, &hard).unwrap();
    std::os::unix::fs::symlink(&path, &soft).unwrap();
    refuse_all(&hard, "uses another name");
    // Through a symbolic link, SQLite finds the log.
    assert_eq!(run(&["export"], &soft).stdout.iter().filter(|byte| **byte == b'\n').count(), 2);
    // Stopped, so that it notices nothing.
    server.signal("STOP");
    fs::rename(&path, &away).unwrap();
    refuse_all(&away, "uses another name");
    fs::rename(&away, &path).unwrap();
    server.signal("CONT");
    server.get("/v1/pets/2").expect(200);
    // Stopped, it has one file, which is whole under each of its names.
    server.signal("TERM");
    server.ended();
    for path in [hard, soft, path] {
        let found = run(&["check"], &path).stdout;
        assert!(String::from_utf8(found).unwrap().contains(": 2 pets, "), "{}", path.display());
    }
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
    assert!(run(&["key", "add", "beside"], &path).status.success());
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
fn changed_schema_is_refused() {
    for (change, said) in [
        ("DROP TABLE pets", "the table pets is missing"),
        ("ALTER TABLE pets RENAME COLUMN status TO state", "the table pets lacks the column status"),
        ("DROP TABLE api_keys", said::TABLE_MISSING),
    ] {
        let folder = Server::start().kill();
        rusqlite::Connection::open(folder.database()).unwrap().execute_batch(change).unwrap();
        expect_refusal(run(&["--listen", "127.0.0.1:0"], &folder.database()), 1, said);
    }
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
        assert!(!line.contains("restore") && line.contains(said::INDEX_MISSING), "{line}");
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
    let log = Server::start_in(folder, |command| command).stop();
    let warning = "it also has the trigger theirs on pets (it can change or refuse what petstore writes)";
    assert!(log.contains(warning), "{log}");
}

#[test]
fn damaged_header_of_a_log_is_one_warning_and_the_log_is_kept() {
    let server = Server::start();
    server.fill(["Rex"]);
    wait_for_rest(&server);
    server.fill(["Tom"]);
    let folder = server.kill();
    let log = beside(&folder.database(), "-wal");
    let mut bytes = fs::read(&log).unwrap();
    bytes[0] ^= 1;
    fs::write(&log, &bytes).unwrap();
    let server = Server::start_in(folder, |command| command);
    assert_eq!(server.get("/v1/pets").json().as_array().unwrap().len(), 1);
    assert_eq!(fs::read(beside(&log, ".damaged")).unwrap(), bytes);
    let logged = server.stop();
    let warnings =
        logged.lines().filter(|line| line.contains("WARN") && line.contains("pets.db-wal is damaged"));
    assert_eq!(warnings.count(), 1, "{logged}");
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

/// Runs SQL as another program does.
fn sql(database: &Path, sql: &str) {
    rusqlite::Connection::open(database).unwrap().execute_batch(sql).unwrap();
}

/// A killed service's database, with a pet in the file and the log's header damaged, and the bytes of the log.
fn with_damaged_log() -> (Folder, Vec<u8>) {
    let server = Server::start();
    server.fill(["Rex"]);
    wait_for_rest(&server);
    server.fill(["Tom"]);
    let folder = server.kill();
    let log = beside(&folder.database(), "-wal");
    let mut bytes = fs::read(&log).unwrap();
    bytes[..24].fill(0xa5);
    fs::write(&log, &bytes).unwrap();
    (folder, bytes)
}

#[test]
fn no_command_that_writes_destroys_a_damaged_log() {
    let commands: [&[&str]; 6] = [
        &["domain", "list"],
        &["site", "plan", "pro"],
        &["key", "add", "k"],
        &["pet", "status", "1", "sold"],
        &["import", "/dev/null"],
        &["restore", "backup.db"],
    ];
    for words in commands {
        let (folder, bytes) = with_damaged_log();
        let backup = folder.path().join("backup.db");
        fs::copy(folder.database(), &backup).unwrap();
        let words: Vec<&str> = words
            .iter()
            .map(|word| if *word == "backup.db" { backup.to_str().unwrap() } else { word })
            .collect();
        let said = String::from_utf8(run(&words, &folder.database()).stderr).unwrap();
        assert!(said.contains("pets.db-wal.damaged is a copy of it"), "{words:?}: {said}");
        let log = beside(&folder.database(), "-wal");
        assert_eq!(fs::read(beside(&log, ".damaged")).unwrap(), bytes, "{words:?}");
    }
}

#[test]
fn backup_beside_a_damaged_log_removes_nothing_and_readers_warn() {
    let (folder, bytes) = with_damaged_log();
    let target = Folder::new();
    let old: Vec<PathBuf> =
        (1..4).map(|day| target.path().join(format!("pets-2020-01-0{day}T00-00-00Z.db"))).collect();
    old.iter().for_each(|file| fs::write(file, "").unwrap());
    let to = target.path().to_str().unwrap();
    let said = run(&["backup", "--to", to, "--keep", "2"], &folder.database());
    expect_refusal(said, 1, "is not sound, so no backup is made: the header of ");
    assert_eq!(fs::read_dir(target.path()).unwrap().count(), 3);
    let note = fs::read_to_string(beside(&folder.database(), ".last-backup")).unwrap();
    assert!(note.contains("\"is_sound\":false"), "{note}");
    let copy = target.path().join("copy.db");
    for words in [&["backup", copy.to_str().unwrap()][..], &["export"], &["key", "list"]] {
        let said = String::from_utf8(run(words, &folder.database()).stderr).unwrap();
        assert!(
            said.contains("warning: the header of ") && said.contains(" is damaged"),
            "{words:?}: {said}"
        );
    }
    assert_eq!(fs::read(beside(&folder.database(), "-wal")).unwrap(), bytes);
    // A start keeps it, and backups work again.
    let server = Server::start_in(folder, |command| command);
    let said = run(&["backup", "--to", to], &server.folder.database());
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}

#[test]
fn index_that_needs_what_petstore_lacks_is_named_with_the_sql_that_mends_it() {
    for (expression, lack) in [("name COLLATE uint", "collation uint"), ("sha3(name)", "function sha3")] {
        let line = format!("the index ci needs the {lack}; this SQL repairs it: DROP INDEX ci");
        let server = Server::start();
        server.fill(["Rex"]);
        let database = server.folder.database();
        // As the sqlite3 shell writes it, which has both.
        sql(
            &database,
            &format!(
                "CREATE INDEX ci ON pets (name); PRAGMA writable_schema = ON;
                UPDATE sqlite_schema SET sql = 'CREATE INDEX ci ON pets ({expression})' WHERE name = 'ci';
                CREATE TABLE bump (x); DROP TABLE bump"
            ),
        );
        let unusable = "has an index of another program that petstore cannot use";
        server.create(REX).expect_error(503, "storage_unavailable", unusable);
        server.connect().get("/readyz", "").expect_error(503, "storage_unavailable", unusable);
        // Backups work, and name it.
        let target = Folder::new();
        let copy = target.path().join("copy.db");
        for words in
            [&["backup", copy.to_str().unwrap()][..], &["backup", "--to", target.path().to_str().unwrap()]]
        {
            let made = run(words, &database);
            let said = String::from_utf8(made.stderr).unwrap();
            assert!(made.status.success() && said.contains(&line), "{words:?}: {said}");
        }
        for file in [&database, &copy] {
            let checked = run(&["check"], file);
            let said = String::from_utf8(checked.stdout).unwrap();
            assert_eq!((checked.status.code(), said.trim_end()), (Some(1), line.as_str()));
        }
        let pets = target.path().join("pets.ndjson");
        fs::write(&pets, REX).unwrap();
        let imported = run(&["import", pets.to_str().unwrap()], &database);
        expect_refusal(
            imported,
            1,
            &format!("{line}; nothing was written; repair it with sqlite3, and try again"),
        );
        // The start warns.
        let folder = server.kill();
        let server = Server::start_in(folder, |command| command);
        server.create(REX).expect_error(503, "storage_unavailable", unusable);
        sql(&database, "DROP INDEX ci");
        server.fill(["Tom"]);
        server.connect().get("/readyz", "").expect(200);
        let log = server.stop();
        for told in ["is not as petstore made it: ", "createPet: "] {
            assert!(log.contains(&format!("{told}{line}")), "{log}");
        }
    }
}

#[test]
fn log_line_of_a_create_names_the_trigger_that_refused_it() {
    let server = Server::start();
    sql(
        &server.folder.database(),
        "CREATE TRIGGER t BEFORE INSERT ON pets BEGIN SELECT RAISE(ABORT, 'no'); END",
    );
    server.create(REX).expect_error(500, "internal_error", "");
    let log = server.stop();
    assert!(log.contains("createPet: no (a trigger on pets refuses it: t)"), "{log}");
}
