//! The database file: moved or replaced, used by others, and the files next to it.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::backup::{count, filled, names, succeed};
use crate::messages;
use support::client::Connection;
use support::harness::{
    Folder, KEY, Server, add_key, after, as_nobody, expect_refusal, output, petstore, run,
};
use support::wait::wait_until;

const REX: &str = r#"{"name":"Rex","categoryId":1}"#;

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// Empties the write-ahead log, as the service does after an hour without writes.
pub fn empty_log(server: &Server) {
    let other = rusqlite::Connection::open(server.folder.database()).unwrap();
    let checkpoint = || {
        other.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| {
            row.get::<_, i32>(0)
        })
    };
    wait_until("the write-ahead log to be emptied", || {
        checkpoint().is_ok_and(|is_busy| is_busy == 0)
    });
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
        refused.expect_error(503, "storage_unavailable", messages::MOVED);
        let (status, _, log) = server.ended();
        assert_eq!(status.code(), Some(1), "{i}: {log}");
        let lines = log
            .lines()
            .filter(|line| line.contains(messages::MOVED))
            .count();
        assert_eq!(
            lines, 2,
            "{i}: one line in the log, and the reason at the end: {log}"
        );
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
        connection.send(support::client::get("/v1/pets", KEY));
        connection
            .reply_unless_ended()
            .is_none_or(|reply| reply.status == 503)
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
fn pets_of_a_file_that_is_gone_are_saved_next_to_its_name() {
    for leave in [
        (|path: &Path| fs::remove_file(path).unwrap()) as fn(&Path),
        |path| {
            ["", "-wal", "-shm"]
                .iter()
                .for_each(|end| fs::remove_file(beside(path, end)).unwrap());
        },
        |path| {
            fs::copy(path, beside(path, ".copy")).unwrap();
            fs::rename(beside(path, ".copy"), path).unwrap();
        },
    ] {
        // With an admin address, a second connection writes.
        let mut server = Server::start_with(|command| command.args(["--admin", "127.0.0.1:0"]));
        server.fill(["in the file"]);
        empty_log(&server);
        server.fill(["in the log"]);
        leave(&server.folder.database());
        let (status, _, log) = server.ended();
        assert_eq!(status.code(), Some(1), "{log}");
        assert_eq!(log.matches("or its log is gone").count(), 1, "{log}");
        let is_saved = |name: &String| name.starts_with("pets.db.rescued-");
        let saved = server.folder.path().join(
            names(server.folder.path())
                .into_iter()
                .find(is_saved)
                .unwrap(),
        );
        assert!(
            log.contains(&format!("all that it held is in {}", saved.display())),
            "{log}"
        );
        assert_eq!(
            fs::metadata(&saved).unwrap().permissions().mode() & 0o777,
            0o600
        );
        succeed(
            &["restore", saved.to_str().unwrap()],
            &server.folder.database(),
        );
        assert_eq!(count(&server.folder.database()), 2);
        let log = Server::start_in(server.folder, |command| command).stop();
        assert!(
            log.contains(&format!("{} has what a service held", saved.display())),
            "{log}"
        );
    }
}

#[test]
fn file_that_was_moved_is_not_saved_again() {
    let mut server = Server::start();
    server.fill(["Rex"]);
    fs::rename(
        server.folder.database(),
        server.folder.path().join("moved.db"),
    )
    .unwrap();
    let (_, _, log) = server.ended();
    assert!(!log.contains("rescued-"), "{log}");
}

/// Starts a service on a folder, with another folder for its temporary files and its log.
pub fn start_logging_in(folder: Folder, other: &Path) -> Server {
    let log = other.join("log");
    let server = Server::start_in(folder, |command| {
        after(
            command.env("TMPDIR", other),
            &format!("exec 2>'{}'", log.display()),
        )
    });
    server.fill(["in the file"]);
    empty_log(&server);
    server.fill(["in the log"]);
    server
}

/// The service has lost its database and found no place for it: copies its pets out as its log, in `elsewhere`, says.
pub fn expect_last_copy(server: &mut Server, elsewhere: &Path) {
    let log = || fs::read_to_string(elsewhere.join("log")).unwrap();
    wait_until("the command that copies the database", || {
        log().contains("restore rescued.db: cp /proc/")
    });
    for _ in 0..2 {
        server
            .get("/v1/pets")
            .expect_error(503, "storage_unavailable", messages::MOVED);
        server
            .create(REX)
            .expect_error(503, "storage_unavailable", messages::MOVED);
    }
    server.signal("TERM");
    wait_until("the service to stop", || log().contains("finishing"));
    let log = log();
    let line = log
        .lines()
        .find_map(|line| line.split_once("restore rescued.db: "));
    let copied = Command::new("sh")
        .args(["-c", line.unwrap().1])
        .current_dir(elsewhere)
        .status();
    assert!(copied.unwrap().success() && !server.has_ended());
    let target = elsewhere.join("pets.db");
    let copy = elsewhere.join("rescued.db");
    succeed(&["restore", copy.to_str().unwrap()], &target);
    assert_eq!(count(&target), 2);
    wait_until("a second signal to end it", || {
        server.has_ended() || {
            server.signal("TERM");
            false
        }
    });
}

#[test]
fn service_whose_database_no_place_takes_keeps_it_until_a_second_signal() {
    let other = Folder::new();
    let mut server = start_logging_in(Folder::new(), other.path());
    fs::remove_dir_all(server.folder.path()).unwrap();
    expect_last_copy(&mut server, other.path());
    // The temporary folder may end with the process.
    let saved = names(other.path());
    let saved = saved
        .iter()
        .find(|name| name.starts_with("pets.db.rescued-"));
    assert_eq!(count(&other.path().join(saved.unwrap())), 2);
}

#[test]
fn database_is_saved_whatever_its_name_and_what_other_programs_have_added() {
    use std::os::unix::ffi::OsStringExt;
    let folder = Folder::new();
    let inner = folder
        .path()
        .join(std::ffi::OsString::from_vec(b"\xff".to_vec()));
    fs::create_dir(&inner).unwrap();
    let database = inner.join("pets.db");
    let mut server = Server::start_in(folder, |command| {
        command
            .current_dir(&inner)
            .env("PETSTORE_DATABASE", "pets.db")
    });
    server.fill(["Rex"]);
    let other = rusqlite::Connection::open(&database).unwrap();
    other
        .execute_batch(
            "CREATE TABLE t (a); CREATE INDEX i ON t (a COLLATE nocase); PRAGMA writable_schema = ON; \
             UPDATE sqlite_schema SET sql = replace(sql, 'nocase', 'theirs') WHERE name = 'i'",
        )
        .unwrap();
    drop(other);
    fs::remove_file(&database).unwrap();
    let (status, _, log) = server.ended();
    assert!(
        status.code() == Some(1) && log.contains("all that it held is in "),
        "{log}"
    );
}

#[test]
fn file_that_was_copied_over_the_database_is_noticed_and_not_mixed_with_its_log() {
    let other = filled(0);
    let backup = other.path().join("backup.db");
    succeed(&["backup", backup.to_str().unwrap()], &other.database());
    // A copy at rest has the mode of a log, and a backup has not.
    for over in [other.database(), backup] {
        let mut server = Server::start_in(filled(1000), |command| command);
        empty_log(&server);
        server.fill(["in the log"]);
        fs::copy(&over, server.folder.database()).unwrap();
        let (status, _, log) = server.ended();
        assert_eq!(status.code(), Some(1), "{log}");
        assert!(log.contains("another file was copied over"), "{log}");
        assert!(!log.contains("rescued"), "{log}");
        let database = server.folder.database();
        let files =
            || [database.clone(), beside(&database, "-wal")].map(|file| fs::read(file).unwrap());
        let before = files();
        for words in [
            &["--listen", "127.0.0.1:0"][..],
            &["check"],
            &["export"],
            &["key", "add", "ci"],
        ] {
            expect_refusal(run(words, &database), 1, messages::LOG_FOREIGN);
        }
        assert!(files() == before);
    }
}

#[test]
fn second_name_of_a_database_in_use_is_refused() {
    let mut server = Server::start();
    server.fill(["Rex"]);
    let hard = server.folder.path().join("hard.db");
    fs::hard_link(server.folder.database(), &hard).unwrap();
    let copy = server.folder.path().join("copy.db");
    for words in [
        &["check"][..],
        &["export"],
        &["backup", copy.to_str().unwrap()],
        &["key", "add", "ci"],
        &["--read-only", "--listen", "127.0.0.1:0"],
    ] {
        expect_refusal(run(words, &hard), 1, "under another name");
        assert!(!copy.exists());
    }
    succeed(&["check"], &server.folder.database());
    server.signal("TERM");
    server.ended();
    succeed(&["check"], &hard);
}

/// Mounts something at a path until this is dropped. `None`: this user may not.
struct Mounted(PathBuf);

impl Mounted {
    fn new(words: &[&str], at: &Path) -> Option<Self> {
        let mounted = Command::new("mount").args(words).arg(at).output();
        mounted
            .is_ok_and(|output| output.status.success())
            .then(|| Self(at.to_owned()))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

#[test]
fn file_that_is_mounted_without_its_folder_is_refused() {
    let mut server = Server::start();
    server.fill(["Rex"]);
    let (database, container) = (server.folder.database(), Folder::new());
    fs::write(container.database(), "").unwrap();
    let Some(_mounted) = Mounted::new(
        &["--bind", database.to_str().unwrap()],
        &container.database(),
    ) else {
        return;
    };
    let listen = ["--listen", "127.0.0.1:0"];
    // As a service that only read has left it.
    fs::write(beside(&container.database(), "-shm"), "").unwrap();
    expect_refusal(
        run(&["check"], &container.database()),
        1,
        "under another name",
    );
    server.signal("TERM");
    server.ended();
    for words in [&listen[..], &["key", "add", "ci"]] {
        expect_refusal(
            run(words, &container.database()),
            1,
            "mount the whole folder",
        );
    }
    // Who only reads it while nobody has it needs no log.
    succeed(&["check"], &container.database());
}

#[test]
fn folder_that_is_mounted_elsewhere_is_one_database() {
    let (here, there) = (Folder::new(), Folder::new());
    let Some(_mounted) = Mounted::new(&["--bind", here.path().to_str().unwrap()], there.path())
    else {
        return;
    };
    let server = Server::start_in(there, |command| command);
    server.fill(["Rex"]);
    for database in [here.database(), server.folder.database()] {
        assert!(succeed(&["check"], &database).contains("1 pet"));
    }
    server.stop();
}

#[test]
fn file_system_that_can_only_be_read_is_reported_as_that() {
    let log = filled(1);
    fs::write(
        beside(&log.database(), "-wal"),
        fs::read(log.database()).unwrap(),
    )
    .unwrap();
    let folder = filled(1);
    for (folder, words, said) in [
        (
            &folder,
            &["--listen", "127.0.0.1:0"][..],
            "mounted read-only",
        ),
        (&folder, &["key", "add", "ci"], "mounted read-only"),
        (&folder, &["backup", "copy.db"], "Read-only file system"),
        (&log, &["check"], "copy it and that file"),
    ] {
        let place = folder.path().to_str().unwrap();
        let Some(_mounted) = Mounted::new(&["--bind", "-o", "ro", place], folder.path()) else {
            return;
        };
        let mut command = petstore(words);
        command
            .current_dir(folder.path())
            .env("PETSTORE_DATABASE", folder.database());
        let refused = output(&mut command);
        let line = String::from_utf8(refused.stderr.clone()).unwrap();
        assert!(
            line.contains("ReadWritePaths=") && !line.contains("as a user"),
            "{line}"
        );
        expect_refusal(refused, 1, said);
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
        expect_refusal(
            run(&["--listen", "127.0.0.1:0"], name),
            1,
            "another process holds",
        );
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
    expect_refusal(
        output(command.env("PETSTORE_DATABASE", folder.database())),
        1,
        ", mode 0444; run petstore as",
    );
}

#[test]
fn index_that_is_dropped_comes_with_the_sql_that_makes_it() {
    let folder = Server::start().kill();
    let sql = |sql: &str| {
        rusqlite::Connection::open(folder.database())
            .unwrap()
            .execute_batch(sql)
            .unwrap();
    };
    sql("DROP INDEX pets_by_status");
    for words in [&["--listen", "127.0.0.1:0"][..], &["key", "add", "ci"]] {
        let refused = run(words, &folder.database());
        let line = String::from_utf8(refused.stderr).unwrap();
        assert_eq!(refused.status.code(), Some(1), "{line}");
        assert!(
            !line.contains("restore") && line.contains(messages::INDEX_MISSING),
            "{line}"
        );
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
        rusqlite::Connection::open(folder.database())
            .unwrap()
            .execute_batch(&sql)
            .unwrap();
        let server = Server::start_in(folder, |command| command);
        server.create(REX).expect_error(409, "rejected", "");
        // The disk has nothing against it.
        server.get("/readyz").expect(200);
        server.fill(["Tom"]);
        assert_eq!(
            server.get("/v1/pets").json().as_array().unwrap().len(),
            1,
            "{action}"
        );
        folder = server.kill();
    }
    let said = run(&["check"], &folder.database());
    assert!(
        String::from_utf8(said.stdout)
            .unwrap()
            .contains("it also has the trigger theirs\n")
    );
}

#[test]
fn table_that_is_dropped_is_said_to_be_missing() {
    let server = Server::start();
    let other = rusqlite::Connection::open(server.folder.database()).unwrap();
    other
        .execute_batch("ALTER TABLE pets RENAME TO animals")
        .unwrap();
    let mut connection = server.connect();
    for target in ["/v1/pets", "/readyz"] {
        connection.get(target, KEY).expect_error(
            503,
            "storage_unavailable",
            "another program has changed",
        );
    }
    connection.get("/healthz", "").expect(200);
    other
        .execute_batch("ALTER TABLE animals RENAME TO pets")
        .unwrap();
    connection.get("/readyz", "").expect(200);
}

#[test]
fn copy_of_a_database_at_rest_is_whole() {
    let server = Server::start();
    server.fill(["Rex", "Tom"]);
    empty_log(&server);
    let copy = Folder::new();
    fs::copy(server.folder.database(), copy.database()).unwrap();
    let copied = rusqlite::Connection::open(copy.database()).unwrap();
    let count: i64 = copied
        .query_row("SELECT count(*) FROM pets", [], |row| row.get(0))
        .unwrap();
    assert_eq!(count, 2);
}

#[test]
fn log_that_a_long_reader_made_grow_is_given_back() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.post("/v1/pets", KEY, REX).expect(201);
    let reader = rusqlite::Connection::open(server.folder.database()).unwrap();
    reader
        .execute_batch("BEGIN; SELECT count(*) FROM pets")
        .unwrap();
    let log = beside(&server.folder.database(), "-wal");
    let large = format!(r#"{{"name":"{}","categoryId":1}}"#, "x".repeat(60_000));
    while fs::metadata(&log).unwrap().len() < 20 * 1024 * 1024 {
        connection.post("/v1/pets", KEY, &large).expect(201);
    }
    reader.execute_batch("COMMIT").unwrap();
    connection.post("/v1/pets", KEY, REX).expect(201);
    wait_until("the log to be cut", || {
        fs::metadata(&log).unwrap().len() <= 16 * 1024 * 1024
    });
}
