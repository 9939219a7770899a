//! `petstore backup`: a whole copy of a database in use, or none.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};

use rusqlite::{Connection, OpenFlags};

use crate::check::FOREIGN;
use crate::messages;
use support::harness::{Folder, KEY, Process, Server, expect_refusal, output, petstore, run};
use support::wait::wait_until;

/// Starts a command whose output nobody reads.
pub fn start(words: &[&str], database: &Path) -> Process {
    let mut command = petstore(words);
    command
        .env("PETSTORE_DATABASE", database)
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    Process::spawn(&mut command)
}

/// Runs a command that must succeed, and returns what it printed.
#[track_caller]
pub fn succeed(words: &[&str], database: &Path) -> String {
    let Output {
        status,
        stdout,
        stderr,
    } = run(words, database);
    assert!(
        status.success(),
        "{words:?}: {}",
        String::from_utf8_lossy(&stderr)
    );
    String::from_utf8(stdout).unwrap()
}

/// Runs a command that must be refused with exit code 1 and one plain line.
#[track_caller]
pub fn refuse(words: &[&str], database: &Path, said: &str) {
    expect_refusal(run(words, database), 1, said);
}

/// Runs a command that must be refused because files may not grow, which stands for a full disk.
#[track_caller]
pub fn refuse_for_size(words: &[&str], database: &Path) {
    let mut limited = Command::new("sh");
    limited
        .args([
            "-c",
            "ulimit -f 2000; exec \"$0\" \"$@\"",
            env!("CARGO_BIN_EXE_petstore"),
        ])
        .args(words);
    expect_refusal(
        output(limited.env("PETSTORE_DATABASE", database)),
        1,
        messages::TOO_LARGE,
    );
}

/// The names in a folder, in order.
pub fn names(folder: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(folder).unwrap();
    let mut names: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

pub fn partials(folder: &Path) -> Vec<String> {
    names(folder)
        .into_iter()
        .filter(|name| name.ends_with(".partial"))
        .collect()
}

/// A database of a stopped service with this many pets of 200 bytes each, and one more.
pub fn filled(pets: u32) -> Folder {
    let server = Server::start();
    server.fill(["first"]);
    let folder = server.kill();
    let database = Connection::open(folder.database()).unwrap();
    let sql = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ?1)
        INSERT INTO pets (name, category_id) SELECT hex(randomblob(100)), i FROM n WHERE ?1 > 0";
    database.execute(sql, [pets]).unwrap();
    folder
}

/// Enough that a backup takes some hundred milliseconds.
pub const MANY: u32 = 150_000;

/// The number of pets in a file that needs no other file.
pub fn count(file: &Path) -> i64 {
    let database = Connection::open_with_flags(file, OpenFlags::SQLITE_OPEN_READ_ONLY).unwrap();
    database
        .query_row("SELECT count(*) FROM pets", [], |row| row.get(0))
        .unwrap()
}

fn path(folder: &Folder, name: &str) -> (PathBuf, String) {
    let path = folder.path().join(name);
    let text = path.to_str().unwrap().to_owned();
    (path, text)
}

#[test]
fn backup_on_standard_output_is_a_database() {
    let (source, target) = (filled(3), Folder::new());
    let mut command = petstore(&["backup", "-"]);
    command
        .arg("--database")
        .arg(source.database())
        .env("TMPDIR", target.path());
    let made = output(&mut command);
    let said = String::from_utf8(made.stderr).unwrap();
    assert!(
        said.starts_with("standard output is complete and sound: 4 pets"),
        "{said}"
    );
    assert_eq!(
        names(target.path()),
        [""; 0],
        "nothing is left in the temporary folder"
    );
    std::fs::write(target.database(), made.stdout).unwrap();
    assert_eq!(count(&target.database()), 4);
}

#[test]
fn backup_under_load_has_all_that_was_acknowledged_before_it() {
    let server = Server::start_in(filled(MANY), |command| command);
    let (file, name) = path(&server.folder, "copy.db");
    let (newest, is_enough) = (AtomicI64::new(0), AtomicBool::new(false));
    let create_until_enough = || {
        let mut connection = server.connect();
        while !is_enough.load(Ordering::SeqCst) {
            let reply = connection.post("/v1/pets", KEY, r#"{"name":"during","categoryId":1}"#);
            newest.fetch_max(
                reply.expect(201).json()["id"].as_i64().unwrap(),
                Ordering::SeqCst,
            );
        }
    };
    let (before, after) = std::thread::scope(|scope| {
        for _ in 0..8 {
            scope.spawn(create_until_enough);
        }
        wait_until("creates", || newest.load(Ordering::SeqCst) > 0);
        let before = newest.load(Ordering::SeqCst);
        let copied =
            std::panic::catch_unwind(|| succeed(&["backup", &name], &server.folder.database()));
        let after = newest.load(Ordering::SeqCst);
        is_enough.store(true, Ordering::SeqCst);
        assert!(copied.unwrap().contains("is complete"));
        (before, after)
    });
    assert!(after > before, "creates went on");
    // There are no gaps between ids here, so the newest id is the number of pets.
    let kept = count(&file);
    assert!(
        (before..=newest.load(Ordering::SeqCst)).contains(&kept),
        "{before} {kept}"
    );
    assert!(succeed(&["check", &name], Path::new("none")).contains("is sound"));
    assert_eq!(partials(server.folder.path()), [""; 0]);
}

#[test]
fn backup_is_one_private_file_with_all_that_a_database_has() {
    let server = Server::start();
    server.fill(["Rex", "Tom"]);
    let key = succeed(&["key", "add", "ci"], &server.folder.database());
    let target = Folder::new();
    let (file, name) = path(&target, "a copy.db");
    succeed(&["backup", &name], &server.folder.database());
    assert_eq!(names(target.path()), ["a copy.db"]);
    assert_eq!(
        std::fs::metadata(&file).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let copy = Connection::open(&file).unwrap();
    let pragma = |name: &str| {
        copy.pragma_query_value(None, name, |row| row.get::<_, i64>(0))
            .unwrap()
    };
    assert_eq!(
        (pragma("application_id"), pragma("user_version")),
        (0x7065_7473, 1)
    );
    let mode: String = copy
        .pragma_query_value(None, "journal_mode", |row| row.get(0))
        .unwrap();
    assert_eq!(
        (mode.as_str(), count(&file)),
        ("delete", 2),
        "it expects no log beside it"
    );
    drop(copy);
    // A service can serve it as it is.
    let (_, moved) = path(&server.folder, "served.db");
    std::fs::copy(&file, &moved).unwrap();
    let served = Server::start_in(Folder::new(), |command| {
        command.env("PETSTORE_DATABASE", &moved)
    });
    served
        .connect()
        .get("/v1/pets/2", key.trim_end())
        .expect(200);
}

#[test]
fn existing_file_is_never_overwritten() {
    let folder = filled(0);
    let (file, name) = path(&folder, "copy.db");
    std::fs::write(&file, "mine").unwrap();
    refuse(
        &["backup", &name],
        &folder.database(),
        messages::FILE_EXISTS,
    );
    refuse(
        &["backup", folder.database().to_str().unwrap()],
        &folder.database(),
        messages::FILE_EXISTS,
    );
    let (link, link_name) = path(&folder, "link.db");
    std::os::unix::fs::symlink("nowhere", &link).unwrap();
    refuse(
        &["backup", &link_name],
        &folder.database(),
        messages::FILE_EXISTS,
    );
    assert_eq!(std::fs::read(&file).unwrap(), b"mine");
}

#[test]
fn what_others_added_is_carried_along() {
    let source = filled(10);
    Connection::open(source.database())
        .unwrap()
        .execute_batch(FOREIGN)
        .unwrap();
    let server = Server::start_in(source, |command| command);
    let (_, name) = path(&server.folder, "copy.db");
    succeed(&["backup", &name], &server.folder.database());
    let target = Folder::new();
    assert!(succeed(&["restore", &name], &target.database()).contains(": 11 pets\n"));
    let [backup, restored] = [name.as_ref(), &*target.database()]
        .map(|file| succeed(&["check"], file).replace("copy.db", "pets.db"));
    assert!(
        backup.contains("it also has another definition of the table pets\n"),
        "{backup}"
    );
    assert_eq!(
        backup.split_once(" is sound").unwrap().1,
        restored.split_once(" is sound").unwrap().1
    );
    let served = Server::start_in(target, |command| command);
    served
        .create(r#"{"name":"after","categoryId":1}"#)
        .expect(201);
}

#[test]
fn database_that_lacks_an_index_is_not_backed_up() {
    let server = Server::start();
    let database = server.folder.database();
    Connection::open(&database)
        .unwrap()
        .execute_batch("DROP INDEX pets_by_status")
        .unwrap();
    let (file, name) = path(&server.folder, "copy.db");
    refuse(
        &["backup", &name],
        &database,
        "the index pets_by_status is missing; this SQL repairs it: CREATE INDEX",
    );
    assert!(!file.exists() && partials(server.folder.path()).is_empty());
}

/// A backup that was stopped (SIGSTOP) in the middle of its copy.
fn half_way(folder: &Folder, name: &str) -> Process {
    let partial = format!("{name}.partial");
    loop {
        let mut backup = start(&["backup", name], &folder.database());
        let has_grown = || std::fs::metadata(&partial).is_ok_and(|data| data.len() > 0);
        wait_until("the copy to grow", || has_grown() || backup.has_ended());
        // On a slow machine it may already have finished.
        if !backup.has_ended() {
            backup.signal("STOP");
            if has_grown() && !Path::new(name).exists() {
                return backup;
            }
            backup.signal("CONT");
            backup.ended();
        }
        std::fs::remove_file(name).unwrap();
    }
}

/// Lets a stopped backup go on, and waits for its end with exit code 1.
#[track_caller]
fn expect_failure(backup: &mut Process) {
    backup.signal("CONT");
    assert_eq!(backup.ended().code(), Some(1));
}

#[test]
fn file_created_meanwhile_is_not_overwritten() {
    let folder = filled(MANY);
    let (file, name) = path(&folder, "copy.db");
    let mut backup = half_way(&folder, &name);
    std::fs::File::create_new(&file).unwrap();
    expect_failure(&mut backup);
    assert_eq!(std::fs::metadata(&file).unwrap().len(), 0);
    assert_eq!(partials(folder.path()), [""; 0]);
}

#[test]
fn partial_file_of_a_killed_backup_is_removed_by_the_next() {
    let folder = filled(MANY);
    let (file, name) = path(&folder, "copy.db");
    let backup = half_way(&folder, &name);
    refuse(
        &["backup", &name],
        &folder.database(),
        "another process writes ",
    );
    assert_eq!(partials(folder.path()), ["copy.db.partial"]);
    drop(backup);
    assert!(!file.exists());
    succeed(&["backup", &name], &folder.database());
    assert_eq!(
        (count(&file), partials(folder.path())),
        (i64::from(MANY) + 1, Vec::new())
    );
}

#[test]
fn named_pipe_stops_no_backup_and_no_service() {
    let folder = filled(0);
    let database = folder.database();
    let (copy, _) = path(&folder, "copy.db");
    let pipes =
        ["copy.db.partial", "pets.db.last-backup", "pipe"].map(|name| folder.path().join(name));
    assert!(
        Command::new("mkfifo")
            .args(&pipes)
            .status()
            .unwrap()
            .success()
    );
    succeed(&["backup", copy.to_str().unwrap()], &database);
    assert_eq!(count(&copy), 1);
    let to = ["backup", "--to", folder.path().to_str().unwrap()];
    succeed(&to, &database);
    for words in [
        &["check"][..],
        &["key", "list"],
        &["export"],
        &["backup", "other.db"],
        &["serve"],
        &["serve", "--read-only"],
    ] {
        refuse(words, &pipes[2], "is not a ");
    }
    let restore = ["restore", pipes[2].to_str().unwrap()];
    refuse(&restore, &database, "is not a file");
}

#[test]
fn signal_removes_the_partial_file() {
    let folder = filled(MANY);
    let (file, name) = path(&folder, "copy.db");
    for name_of_signal in ["TERM", "INT", "HUP"] {
        let mut backup = half_way(&folder, &name);
        backup.signal(name_of_signal);
        expect_failure(&mut backup);
        assert!(
            !file.exists() && partials(folder.path()).is_empty(),
            "{name_of_signal}"
        );
    }
}

#[test]
fn what_cannot_be_backed_up_is_named() {
    let folder = filled(0);
    let (_, copy) = path(&folder, "copy.db");
    refuse(
        &["backup", &copy],
        &folder.path().join("none.db"),
        messages::DATABASE_MISSING,
    );
    let (_, nowhere) = path(&folder, "nowhere/copy.db");
    refuse(
        &["backup", &nowhere],
        &folder.database(),
        "nowhere does not exist",
    );
    let (text, _) = path(&folder, "text");
    std::fs::write(&text, "not a database, but long enough to be looked at").unwrap();
    refuse(&["backup", &copy], &text, messages::DATABASE_FOREIGN);
    std::fs::write(&text, "").unwrap();
    refuse(&["backup", &copy], &text, "is empty");
    refuse(
        &["backup", ""],
        &folder.database(),
        "not the name of a file",
    );
    refuse(
        &["backup", &"x".repeat(250)],
        &folder.database(),
        "too long",
    );
    assert_eq!(run(&["backup"], &folder.database()).status.code(), Some(2));
    assert!(!folder.path().join("copy.db").exists());
}
