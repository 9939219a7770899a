//! The rollback journal that another program leaves when it is stopped within a change. It is kept for the database that
//! it belongs to, and played into none.

use std::fs;
use std::path::Path;

use crate::backup::{count, filled, names, refuse, succeed};
use support::harness::{Folder, Server, run};

/// A database with this many pets and one more, and its journal, of a program that was stopped when it had deleted half
/// of them.
fn stopped(pets: u32) -> Folder {
    let folder = filled(pets);
    let shell = rusqlite::Connection::open(folder.database()).unwrap();
    let change =
        "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN; DELETE FROM pets WHERE id % 2";
    shell.execute_batch(change).unwrap();
    shell.cache_flush().unwrap();
    let stopped = Folder::new();
    for name in ["pets.db", "pets.db-journal"] {
        fs::copy(folder.path().join(name), stopped.path().join(name)).unwrap();
    }
    stopped
}

/// Has SQLite play the journal back, as any program does that opens the database.
fn undone(folder: &Path) -> i64 {
    let shell = rusqlite::Connection::open(folder.join("pets.db")).unwrap();
    let sound = shell.query_row("PRAGMA integrity_check", [], |row| row.get(0));
    assert_eq!(sound, Ok("ok".to_owned()));
    let pets = shell.query_row("SELECT count(*) FROM pets", [], |row| row.get(0));
    pets.unwrap()
}

#[test]
fn journal_is_not_played_into_what_has_its_name() {
    let folder = stopped(400);
    let (database, away) = (folder.database(), folder.path().join("away"));
    let backup = folder.path().join("copy.db");
    succeed(&["backup", backup.to_str().unwrap()], &filled(9).database());
    let journal = folder.path().join("pets.db-journal");
    let before = (fs::read(&database).unwrap(), fs::read(&journal).unwrap());
    let input = folder.path().join("in.ndjson");
    fs::write(&input, "{\"name\":\"Rex\",\"categoryId\":1}\n").unwrap();
    let words = |words: &[&'static str]| words.to_vec();
    let reads = [
        words(&["check"]),
        words(&["export"]),
        words(&["key", "list"]),
        words(&["backup", "new.db"]),
    ];
    let serves = [
        words(&["serve", "--listen", "127.0.0.1:0"]),
        words(&["serve", "--read-only", "--listen", "127.0.0.1:0"]),
    ];
    let writes = [
        vec!["import", "--create", input.to_str().unwrap()],
        words(&["key", "add", "ci", "--create"]),
    ];
    let all = [&reads[..], &serves[..], &writes[..]].concat();
    for command in &all {
        refuse(command, &database, "pets.db-journal undoes a change of ");
    }
    // A backup that was copied over it, as by an operator in haste.
    fs::copy(&backup, &database).unwrap();
    for command in &all {
        refuse(
            command,
            &database,
            "unless one of the two was replaced; first copy both files",
        );
    }
    assert!(fs::read(&database).unwrap() == fs::read(&backup).unwrap());
    fs::write(&away, &before.0).unwrap();
    fs::remove_file(&database).unwrap();
    for command in [&serves[..1], &writes].concat() {
        refuse(&command, &database, "pets.db-journal is there; ");
    }
    for file in [&away, &backup] {
        refuse(
            &["restore", file.to_str().unwrap()],
            &database,
            "pets.db-journal; if it is a backup, first move",
        );
    }
    refuse(
        &["backup", database.to_str().unwrap()],
        &filled(0).database(),
        "pets.db-journal already exists",
    );
    // Nothing was lost by all of these.
    fs::rename(&away, &database).unwrap();
    assert!((fs::read(&database).unwrap(), fs::read(&journal).unwrap()) == before);
    assert_eq!(undone(folder.path()), 401);
    Server::start_in(folder, |command| command);
}

#[test]
fn restore_keeps_the_journal_with_the_old_database() {
    let (folder, source) = (stopped(400), Folder::new());
    let backup = source.path().join("copy.db");
    succeed(&["backup", backup.to_str().unwrap()], &filled(9).database());
    succeed(&["restore", backup.to_str().unwrap()], &folder.database());
    assert_eq!(count(&folder.database()), 10);
    let old: Vec<_> = names(folder.path())
        .into_iter()
        .filter(|name| name.starts_with("pets.db."))
        .collect();
    let [database, journal] = &old[..] else {
        panic!("{old:?}")
    };
    assert_eq!(*journal, format!("{database}-journal"));
    let aside = Folder::new();
    fs::rename(folder.path().join(database), aside.path().join("pets.db")).unwrap();
    fs::rename(
        folder.path().join(journal),
        aside.path().join("pets.db-journal"),
    )
    .unwrap();
    assert_eq!(undone(aside.path()), 401);
}

#[test]
fn database_that_another_program_is_changing_is_not_replaced() {
    let (folder, source) = (filled(400), Folder::new());
    let backup = source.path().join("copy.db");
    succeed(&["backup", backup.to_str().unwrap()], &filled(9).database());
    let shell = rusqlite::Connection::open(folder.database()).unwrap();
    let change =
        "PRAGMA journal_mode = DELETE; PRAGMA cache_size = 1; BEGIN; DELETE FROM pets WHERE id % 2";
    shell.execute_batch(change).unwrap();
    // Before pages of it are in the file, and then.
    for _ in 0..2 {
        refuse(
            &["restore", backup.to_str().unwrap()],
            &folder.database(),
            "; stop the other process, or try again",
        );
        shell.cache_flush().unwrap();
    }
    shell.execute_batch("COMMIT").unwrap();
    assert_eq!(count(&folder.database()), 200);
    assert_eq!(names(folder.path()), ["pets.db"]);
}

#[test]
fn named_pipe_in_place_of_a_journal_is_not_opened() {
    let folder = filled(1);
    let journal = folder.path().join("pets.db-journal");
    let made = std::process::Command::new("mkfifo").arg(&journal).status();
    assert!(made.unwrap().success());
    for words in [
        &["export"][..],
        &["check"],
        &["serve", "--listen", "127.0.0.1:0"],
    ] {
        refuse(
            words,
            &folder.database(),
            "pets.db-journal undoes a change of ",
        );
    }
}

#[test]
fn journal_that_is_done_with_stands_in_nobodys_way() {
    let folder = filled(9);
    let shell = rusqlite::Connection::open(folder.database()).unwrap();
    // PERSIST keeps the journal, with zeros in its header.
    let change = "PRAGMA journal_mode = DELETE; PRAGMA journal_mode = PERSIST; DELETE FROM pets WHERE id = 1";
    shell.execute_batch(change).unwrap();
    drop(shell);
    assert_ne!(
        fs::metadata(folder.path().join("pets.db-journal"))
            .unwrap()
            .len(),
        0
    );
    assert!(run(&["check"], &folder.database()).status.success());
    succeed(
        &["backup", folder.path().join("copy.db").to_str().unwrap()],
        &folder.database(),
    );
    Server::start_in(folder, |command| command);
}
