//! The write-ahead log that a crash leaves is used if it belongs to the database, however both files got
//! here.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::backup::{count, names, refuse, succeed};
use crate::database_file::empty_log;
use crate::messages;
use support::harness::{self, Folder, Server};

/// The files of a killed service, whose log has two pets that the database file lacks.
fn crashed() -> Folder {
    let server = Server::start();
    server.fill(["in the file"]);
    let log = server.folder.path().join("pets.db-wal");
    empty_log(&server);
    server.fill(["in the log", "in the log too"]);
    let folder = server.kill();
    assert_ne!(fs::metadata(log).unwrap().len(), 0);
    folder
}

/// Copies a backup of one database over another, next to the log of that one.
fn put_backup(from: &Folder, over: &Folder) {
    let backup = over.path().join("put.db");
    succeed(&["backup", backup.to_str().unwrap()], &from.database());
    fs::copy(&backup, over.database()).unwrap();
    fs::remove_file(&backup).unwrap();
}

#[track_caller]
fn run(program: &str, words: &[&str], folder: &Path) {
    assert!(
        Command::new(program)
            .args(words)
            .current_dir(folder)
            .status()
            .unwrap()
            .success(),
        "{program}"
    );
}

/// Writes as sqlite3 does, and leaves the log as a crash would.
fn write_and_crash(folder: &Path, sql: &str) {
    let other = rusqlite::Connection::open(folder.join("pets.db")).unwrap();
    other
        .set_db_config(
            rusqlite::config::DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE,
            true,
        )
        .unwrap();
    other.execute_batch(sql).unwrap();
}

#[test]
fn crashed_database_starts_after_what_operators_do_with_files() {
    type Do = fn(&Path);
    let ways: [Do; 3] = [
        |folder| {
            // The log first.
            run("cp", &["-a", "pets.db-wal", "copy-wal"], folder);
            run("cp", &["-a", "pets.db", "copy"], folder);
            run("mv", &["copy-wal", "pets.db-wal"], folder);
            run("mv", &["copy", "pets.db"], folder);
        },
        // The last write of sqlite3, and a crash of that as well.
        |folder| write_and_crash(folder, "UPDATE sqlite_sequence SET seq = 1000"),
        |folder| {
            write_and_crash(
                folder,
                "UPDATE pets SET status = 'sold'; PRAGMA wal_checkpoint; VACUUM",
            );
        },
    ];
    for (i, way) in ways.into_iter().enumerate() {
        let folder = crashed();
        way(folder.path());
        let server = Server::start_in(folder, |command| command);
        assert_eq!(
            server.get("/v1/pets").json().as_array().unwrap().len(),
            3,
            "{i}"
        );
    }
}

#[test]
fn advice_about_the_log_of_another_database_costs_nothing() {
    // The database has one pet of three; the log is that of the other one, which is put back or restored.
    for put_back in [true, false] {
        let (one, other) = (crashed(), crashed());
        let own_log = fs::read(one.path().join("pets.db-wal")).unwrap();
        run("cp", &["pets.db", "right.db"], one.path());
        put_backup(&other, &one);
        let refused = harness::run(&["--listen", "127.0.0.1:0"], &one.database());
        let said = String::from_utf8(refused.stderr).unwrap();
        assert!(
            said.contains("first copy both files into another folder"),
            "{said}"
        );
        let copy = Folder::new();
        for name in ["pets.db", "pets.db-wal"] {
            fs::copy(one.path().join(name), copy.path().join(name)).unwrap();
        }
        assert!(
            said.contains(
                "without the -wal or -journal and then with it. Then put back what belongs together"
            ),
            "{said}"
        );
        let spoilt = fs::read(copy.database()).unwrap();
        // The very lines of the guide.
        let guide = include_str!("../../src/site/pages/troubleshooting.md");
        let (_, guide) = guide.split_once("### A log of another database").unwrap();
        let mut counts = Vec::new();
        for line in guide.split("```\n").nth(1).unwrap().lines() {
            let line = line.replace("petstore.db", "pets.db");
            match line.strip_prefix("sqlite3 pets.db '") {
                Some(sql) => {
                    // As the shell, it ends by moving the log into the file.
                    let shell = rusqlite::Connection::open(copy.database()).unwrap();
                    counts.push(
                        shell
                            .query_row(sql.trim_end_matches('\''), [], |row| row.get::<_, i64>(0))
                            .unwrap(),
                    );
                }
                None => run(
                    "sh",
                    &[
                        "-c",
                        &format!("{line} && test -s pets.db-wal.old -o -s pets.db-wal"),
                    ],
                    copy.path(),
                ),
            }
        }
        assert_eq!(counts.len(), 2);
        assert_eq!(counts[0], 3);
        let folder = if put_back {
            run("cp", &["right.db", "pets.db"], one.path());
            one
        } else {
            assert!(
                said.ends_with(&format!(
                    "or restore a backup: petstore restore FILE --database {} keeps both files\n",
                    one.database().display()
                )),
                "{said}"
            );
            let backup = other.path().join("backup.db");
            succeed(&["backup", backup.to_str().unwrap()], &other.database());
            succeed(&["restore", backup.to_str().unwrap()], &one.database());
            let kept = |end: &str| {
                names(one.path())
                    .into_iter()
                    .find(|name| name.ends_with(end))
                    .unwrap()
            };
            assert_eq!(fs::read(one.path().join(kept("Z-wal"))).unwrap(), own_log);
            assert!(fs::read(one.path().join(kept("Z"))).unwrap() == spoilt);
            one
        };
        let server = Server::start_in(folder, |command| command);
        assert_eq!(
            server.get("/v1/pets").json().as_array().unwrap().len(),
            3,
            "{put_back}"
        );
    }
}

#[test]
fn backup_is_not_mixed_with_a_log_that_is_left() {
    let server = Server::start();
    server.fill(["first"]);
    let copy = server.folder.path().join("copy.db");
    succeed(
        &["backup", copy.to_str().unwrap()],
        &server.folder.database(),
    );
    server.fill(["second"]);
    let folder = server.kill();
    fs::copy(&copy, folder.database()).unwrap();
    refuse(
        &["--listen", "127.0.0.1:0"],
        &folder.database(),
        messages::LOG_FOREIGN,
    );
    succeed(&["restore", copy.to_str().unwrap()], &folder.database());
    let server = Server::start_in(folder, |command| command);
    assert_eq!(server.get("/v1/pets").json().as_array().unwrap().len(), 1);
}

#[test]
fn copy_that_the_log_continues_loses_nothing() {
    let server = Server::start();
    server.fill(["first"]);
    empty_log(&server);
    let copy = server.folder.path().join("copy.db");
    fs::copy(server.folder.database(), &copy).unwrap();
    server.fill(["second"]);
    let folder = server.kill();
    // The file is in the state in which the log began, so the log is right for it.
    fs::rename(&copy, folder.database()).unwrap();
    let server = Server::start_in(folder, |command| command);
    assert_eq!(server.get("/v1/pets").json().as_array().unwrap().len(), 2);
    let folder = server.kill();
    succeed(&["check"], &folder.database());
    assert_eq!(count(&folder.database()), 2);
}

#[test]
fn log_of_changes_alone_is_told_from_that_of_another_database() {
    let made = || {
        let server = Server::start();
        server.fill(["one", "two"]);
        empty_log(&server);
        server
    };
    let (other, server) = (made().kill(), made());
    succeed(&["pet", "status", "1", "sold"], &server.folder.database());
    let folder = server.kill();
    let log = folder.path().join("pets.db-wal");
    assert_ne!(fs::metadata(log).unwrap().len(), 0);
    fs::copy(other.database(), folder.database()).unwrap();
    for words in [&["--listen", "127.0.0.1:0"][..], &["check"], &["export"]] {
        refuse(words, &folder.database(), messages::LOG_FOREIGN);
    }
}

#[test]
fn commands_refuse_the_log_of_another_database_too() {
    let (one, other) = (crashed(), crashed());
    put_backup(&other, &one);
    let before =
        [one.database(), one.path().join("pets.db-wal")].map(|file| fs::read(file).unwrap());
    let copy = one.path().join("copy.db");
    for words in [
        &["key", "add", "ci"][..],
        #[cfg(feature = "site")]
        &["domain", "list"],
        &["pet", "status", "1", "sold"],
        &["check"],
        &["export"],
        &["backup", copy.to_str().unwrap()],
    ] {
        refuse(words, &one.database(), messages::LOG_FOREIGN);
        let now =
            [one.database(), one.path().join("pets.db-wal")].map(|file| fs::read(file).unwrap());
        assert!(now == before, "{words:?}");
    }
}

#[test]
fn older_copy_of_the_database_is_not_mixed_with_its_log() {
    let server = Server::start();
    server.fill(["old"]);
    empty_log(&server);
    let old = fs::read(server.folder.database()).unwrap();
    // So many pages that some are neither in the copy nor in the log.
    server.fill([&*"x".repeat(60_000); 10]);
    empty_log(&server);
    server.fill(["in the log"]);
    let folder = server.kill();
    assert_ne!(
        fs::metadata(folder.path().join("pets.db-wal"))
            .unwrap()
            .len(),
        0
    );
    fs::write(folder.database(), old).unwrap();
    fs::remove_file(folder.path().join("pets.db-shm")).unwrap();
    for words in [
        &["check"][..],
        &["export"],
        &["--listen", "127.0.0.1:0"],
        &["key", "add", "ci"],
    ] {
        refuse(words, &folder.database(), messages::LOG_FOREIGN);
    }
}
