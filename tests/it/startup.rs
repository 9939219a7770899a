//! Starts that are refused, with one plain line and an exit code.

use std::os::unix::fs::PermissionsExt;
use std::process::Command;

use crate::messages;
use support::harness::{
    Folder, KEY, Process, Server, as_nobody, expect_refusal, is_root, output, petstore, program,
    run, serve,
};

/// A start on a free port.
const SERVE: &[&str] = &["--listen", "127.0.0.1:0"];

#[test]
fn missing_folder_is_refused() {
    let folder = Folder::new();
    expect_refusal(
        run(SERVE, &folder.path().join("nowhere/pets.db")),
        1,
        "nowhere",
    );
    expect_refusal(run(SERVE, folder.path()), 1, "is a folder");
    for url in [":memory:", "sqlite:pets.db", "pets.db?mode=ro", "a.db-wal"] {
        expect_refusal(run(SERVE, url.as_ref()), 2, "must be the path of a file");
    }
    std::os::unix::fs::symlink("nowhere", folder.database()).unwrap();
    expect_refusal(
        run(SERVE, &folder.database()),
        1,
        "a file that does not exist",
    );
}

#[test]
fn database_that_must_be_there_is_not_made() {
    let folder = Folder::new();
    let words = [SERVE, &["--require-database"]].concat();
    // A cluster is always there.
    expect_refusal(
        run(&words, &folder.path().join("pets.db")),
        1,
        messages::DATABASE_MISSING,
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    // Nor does an empty file count as one, or a database without tables.
    let empty = folder.path().join("empty.db");
    std::fs::write(&empty, "").unwrap();
    for words in [
        &words[..],
        &["key", "list"],
        &["key", "add", "ci"],
        &["backup", "copy.db"],
    ] {
        expect_refusal(run(words, &empty), 1, "is empty");
    }
    assert_eq!(std::fs::metadata(&empty).unwrap().len(), 0);
    rusqlite::Connection::open(&empty)
        .unwrap()
        .execute_batch("VACUUM")
        .unwrap();
    expect_refusal(run(&words, &empty), 1, "is empty");
    let (_, _, log) = {
        std::fs::write(&empty, "").unwrap();
        let mut server = Server::start_with(|command| command.env("PETSTORE_DATABASE", &empty));
        server.signal("TERM");
        server.ended()
    };
    assert!(log.contains("new database"), "{log}");
    let folder = Server::start_in(folder, |command| command).kill();
    Server::start_in(folder, |command| command.arg("--require-database"))
        .get("/readyz")
        .expect(200);
}

#[test]
fn database_that_this_user_cannot_see_is_not_called_missing() {
    if !is_root() {
        return; // Who is not root cannot ask as another user.
    }
    let folder = Folder::new();
    std::fs::set_permissions(folder.path(), PermissionsExt::from_mode(0o700)).unwrap();
    let database = folder.path().join("pets.db");
    for words in [
        &["key", "list"][..],
        &["check"],
        &["export"],
        &["serve", "--require-database"],
    ] {
        let mut command = as_nobody(words);
        command.env("PETSTORE_DATABASE", &database);
        expect_refusal(output(&mut command), 1, "Permission denied");
    }
}

#[test]
fn start_that_fails_makes_no_database() {
    let server = Server::start();
    let folder = Folder::new();
    let address = server.address.to_string();
    // The guide has the same words.
    let words = "Address already in use";
    assert!(include_str!("../../src/site/pages/troubleshooting.md").contains(words));
    expect_refusal(run(&["--listen", &address], &folder.database()), 1, words);
    let admin = ["--listen", "127.0.0.1:0", "--admin", &address];
    expect_refusal(run(&admin, &folder.database()), 1, words);
    let mut command = petstore(SERVE);
    command
        .env("TMPDIR", "/nowhere")
        .env("PETSTORE_DATABASE", folder.path().join("none/pets.db"));
    expect_refusal(output(&mut command), 1, "none");
    assert_eq!(
        std::fs::read_dir(folder.path()).unwrap().count(),
        0,
        "no database is made"
    );
}

#[test]
fn failed_start_leaves_no_socket_and_no_key_behind() {
    let server = Server::start();
    let folder = Folder::new();
    let (socket, key) = (
        folder.path().join("http.sock"),
        folder.path().join("first-key"),
    );
    let listen = format!("unix:{}", socket.display());
    let admin = server.address.to_string();
    let words = [
        "--listen",
        &listen,
        "--admin",
        &admin,
        "--first-key-file",
        key.to_str().unwrap(),
    ];
    expect_refusal(run(&words, &folder.database()), 1, "in use");
    for entry in std::fs::read_dir(folder.path()).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        assert!(name.starts_with("pets.db"), "{name} is left");
    }
}

#[test]
fn wrong_words_are_refused() {
    let folder = Folder::new();
    for (words, said) in [
        (&["--listen", "nonsense"][..], "--listen"),
        (&["--wrong"], "--wrong"),
        (&["wrong"], "wrong"),
    ] {
        expect_refusal(run(words, &folder.database()), 2, said);
    }
}

#[test]
fn unusable_api_key_is_refused_and_not_repeated() {
    let folder = Folder::new();
    for key in ["two words", "p\u{e4}ss"] {
        let mut command = petstore(&[]);
        command
            .env("PETSTORE_API_KEY", key)
            .env("PETSTORE_DATABASE", folder.database());
        let output = output(&mut command);
        assert!(!String::from_utf8_lossy(&output.stderr).contains(key));
        expect_refusal(output, 2, "PETSTORE_API_KEY: ");
    }
}

#[test]
fn help_and_version_are_printed() {
    let help = output(&mut petstore(&["--help"]));
    assert_eq!(output(&mut petstore(&["help"])).stdout, help.stdout);
    assert!(
        help.status.success()
            && String::from_utf8(help.stdout)
                .unwrap()
                .contains("--max-connections")
    );
    let version = output(&mut petstore(&["--version"]));
    assert_eq!(
        String::from_utf8(version.stdout).unwrap(),
        concat!("petstore ", env!("CARGO_PKG_VERSION"), "\n")
    );
}

#[test]
fn database_is_for_its_owner_only() {
    let server = Server::start();
    server.fill(["Rex"]);
    for name in ["pets.db", "pets.db-wal", "pets.db-shm"] {
        let mode = std::fs::metadata(server.folder.path().join(name))
            .unwrap()
            .permissions()
            .mode();
        assert_eq!(mode & 0o777, 0o600, "{name}");
    }
}

#[test]
fn database_that_lacks_a_column_is_refused_and_stays_as_it_is() {
    let folder = Folder::new();
    let made = rusqlite::Connection::open(folder.database()).unwrap();
    let lacking = include_str!("../../schema.sql").replace("name         TEXT    NOT NULL,", "");
    made.execute_batch(&lacking).unwrap();
    made.execute_batch("PRAGMA application_id = 0x70657473; PRAGMA user_version = 1")
        .unwrap();
    drop(made);
    let before = std::fs::read(folder.database()).unwrap();
    expect_refusal(run(SERVE, &folder.database()), 1, "lacks the column name");
    assert_eq!(std::fs::read(folder.database()).unwrap(), before);
}

#[test]
fn database_with_another_mark_is_refused_and_stays_as_it_is() {
    let folder = Folder::new();
    let made = rusqlite::Connection::open(folder.database()).unwrap();
    made.execute_batch(include_str!("../../schema.sql"))
        .unwrap();
    made.execute_batch("PRAGMA application_id = 0x50455453; PRAGMA user_version = 1")
        .unwrap();
    drop(made);
    let before = std::fs::read(folder.database()).unwrap();
    expect_refusal(
        run(SERVE, &folder.database()),
        1,
        "is the database of another application",
    );
    assert_eq!(std::fs::read(folder.database()).unwrap(), before);
}

/// The names in a folder.
fn names(folder: &Folder) -> Vec<String> {
    let entries = std::fs::read_dir(folder.path()).unwrap();
    entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect()
}

#[test]
fn killed_service_leaves_nothing_in_tmpdir() {
    let temporary = Folder::new();
    let start = |folder| {
        Server::start_in(folder, |command| {
            command
                .args(["--admin", "0"])
                .env("TMPDIR", temporary.path())
        })
    };
    let server = start(Folder::new());
    server.get("/v1/pets").expect(200);
    assert_eq!(names(&temporary), [""; 0]);
    let folder = server.kill();
    assert_eq!(names(&temporary), [""; 0]);
    // At any moment of the start, too, but for one: a socket to which another can connect has a name until it is
    // unlinked, and the process may be killed between the two calls. That is rare.
    for step in 0..30 {
        let mut process = Process::start(serve(&folder).env("TMPDIR", temporary.path()));
        std::thread::sleep(std::time::Duration::from_millis(step));
        process.signal(if step % 2 == 0 { "KILL" } else { "TERM" });
        process.ended();
    }
    let left = names(&temporary);
    assert!(
        left.len() <= 3 && left.iter().all(|name| name.starts_with("petstore-lane-")),
        "{left:?}"
    );
    start(folder).get("/v1/pets").expect(200);
}

#[test]
fn service_runs_where_tmpdir_cannot_be_used() {
    let long = Folder::new();
    let mut deep = long.path().to_owned();
    (0..20).for_each(|_| deep.push("0123456789"));
    std::fs::create_dir_all(&deep).unwrap();
    for tmpdir in ["/nowhere", "/proc/self", deep.to_str().unwrap()] {
        let server = Server::start_with(|command| command.env("TMPDIR", tmpdir));
        server.create(r#"{"name":"x","categoryId":1}"#).expect(201);
        let mut left = names(&server.folder);
        left.retain(|name| !name.starts_with("pets.db"));
        assert_eq!(left, [""; 0], "{tmpdir}");
    }
}

#[test]
fn thread_that_cannot_be_started_is_reported_in_one_line() {
    let folder = Folder::new();
    // A user whom no other test has, or this one.
    let user = if is_root() { "65432" } else { "" };
    for threads in 1..13 {
        let limit = format!("--nproc={threads}");
        let mut command = Command::new("prlimit");
        command.arg(limit);
        if !user.is_empty() {
            command.args(["setpriv", &format!("--reuid={user}"), "--clear-groups"]);
        }
        let database = folder.path().join(format!("{threads}.db"));
        std::fs::set_permissions(folder.path(), std::fs::Permissions::from_mode(0o777)).unwrap();
        command
            .arg(program())
            .args(SERVE)
            .arg("--database")
            .arg(database);
        command
            .env("TMPDIR", std::env::temp_dir())
            .env("PETSTORE_API_KEY", KEY);
        let process = Process::start(&mut command);
        let said = String::from_utf8(process.output().stderr).unwrap();
        let told = said
            .lines()
            .filter(|line| line.contains("cannot start a thread"))
            .count();
        assert!(told == 1 && !said.contains("panicked"), "{threads}: {said}");
    }
}
