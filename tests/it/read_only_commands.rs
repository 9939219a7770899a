//! Commands that only read: under another process's lock, and on a read-only file.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use rusqlite::Connection;

use crate::backup::{filled, names, refuse, succeed};
use crate::messages;
use support::harness::{as_nobody, expect_refusal, output};

const COMMANDS: [&[&str]; 4] = [&["key", "list"], &["export"], &["check"], &["backup"]];

#[test]
fn commands_that_read_need_no_lock_and_leave_nothing() {
    let folder = filled(10);
    let copy = folder.path().join("copy.db");
    let words = |words: &[&'static str]| -> Vec<String> {
        let file = (words == ["backup"]).then(|| copy.to_str().unwrap());
        words
            .iter()
            .copied()
            .chain(file)
            .map(str::to_owned)
            .collect()
    };
    for is_locked in [true, false] {
        let other = Connection::open(folder.database()).unwrap();
        if is_locked {
            other
                .execute_batch("BEGIN IMMEDIATE; DELETE FROM pets")
                .unwrap();
        }
        for command in COMMANDS {
            let words = words(command);
            succeed(
                &words.iter().map(String::as_str).collect::<Vec<_>>(),
                &folder.database(),
            );
            let _ = fs::remove_file(&copy);
        }
        drop(other);
        assert_eq!(names(folder.path()), ["pets.db"], "{is_locked}");
    }
    refuse(
        &["key", "list"],
        &folder.path().join("none.db"),
        messages::DATABASE_MISSING,
    );
}

#[test]
fn commands_that_read_read_what_can_only_be_read() {
    let folder = filled(10);
    fs::set_permissions(folder.database(), fs::Permissions::from_mode(0o444)).unwrap();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o777)).unwrap();
    for words in COMMANDS {
        let mut command = as_nobody(words);
        command.args((words == ["backup"]).then(|| folder.path().join("copy.db")));
        let output = output(command.env("PETSTORE_DATABASE", folder.database()));
        assert!(
            output.status.success(),
            "{words:?}: {}",
            String::from_utf8_lossy(&output.stderr)
        );
        let _ = fs::remove_file(folder.path().join("copy.db"));
        // The owner of the file could not write a log of another user.
        assert_eq!(names(folder.path()), ["pets.db"], "{words:?}");
    }
}

#[test]
fn file_that_this_user_cannot_reach_is_named() {
    let folder = filled(1);
    let file = folder.database();
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o000)).unwrap();
    let refused = output(&mut as_nobody(&["check", file.to_str().unwrap()]));
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o700)).unwrap();
    expect_refusal(
        refused,
        1,
        &format!("cannot read {}: Permission denied", file.display()),
    );
}
