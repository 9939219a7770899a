//! Names that no file can have: each gets a message of its own.

use std::process::{Command, Output};

use support::harness::{Folder, add_key, expect_refusal, is_root, output, program, run};

const TOO_LONG: &str = ": File name too long";

#[test]
fn name_that_is_too_long_is_reported_as_that() {
    let folder = Folder::new();
    add_key(&folder.database(), &["ci"]);
    let long = folder.path().join("x".repeat(300));
    let long = long.to_str().unwrap();
    // Short enough itself, but not for the file that becomes it.
    let almost = folder.path().join("x".repeat(250));
    for words in [
        &["backup", long][..],
        &["backup", almost.to_str().unwrap()],
        &["check", long],
        &["restore", long],
        &["import", long],
        &["--listen", "127.0.0.1:0", "--database", long],
    ] {
        expect_refusal(run(words, &folder.database()), 1, TOO_LONG);
    }
}

/// Runs a command without `--database`, on a machine that a script has prepared.
fn on_machine(script: &str, words: &[&str], folder: &Folder) -> Output {
    let mut command = Command::new("unshare");
    // Whoever is not root becomes it in a namespace of users.
    command
        .args(if is_root() { &["-m"][..] } else { &["-rm"] })
        .args(["sh", "-ec"])
        .arg(format!(
            r#"mount -t tmpfs none /var/lib; mount -t tmpfs none /etc; {script} exec "$0" "$@""#
        ))
        .arg(program())
        .args(words)
        .env_remove("PETSTORE_DATABASE")
        .current_dir(folder.path());
    output(&mut command)
}

#[test]
fn missing_database_is_named_with_the_folder_in_which_it_was_looked_for() {
    let folder = Folder::new();
    std::fs::write(folder.path().join("other.db"), "").unwrap();
    let place = std::fs::canonicalize(folder.path()).unwrap();
    let said = format!(
        "there is no database petstore.db in the folder {}; ",
        place.display()
    );
    let installed = "mkdir /var/lib/petstore; touch /var/lib/petstore/petstore.db;";
    let moved = format!(
        "{installed} echo 'PETSTORE_DATABASE=\"{}/other.db\"' >/etc/petstore.env;",
        place.display()
    );
    for (words, typed) in [
        (&["key", "list"][..], "key list"),
        (&["export"], "export"),
        (&["backup", "a copy.db"], "backup 'a copy.db'"),
        (&["check"], "check"),
        (&["pet", "delete", "1"], "pet delete 1"),
        (&["restore", "backup.db"], "restore backup.db"),
    ] {
        let expect = |script: &str, advice: &str| {
            let refused = on_machine(script, words, &folder);
            expect_refusal(refused, 1, &format!("{said}{advice}\n"));
        };
        if words[0] != "restore" {
            expect("", "give the right file with --database");
        }
        let paste = "to use that of the service: petstore --database";
        expect(
            installed,
            &format!("{paste} /var/lib/petstore/petstore.db {typed}"),
        );
        expect(
            &moved,
            &format!("{paste} {}/other.db {typed}", place.display()),
        );
    }
    assert!(!folder.path().join("petstore.db").exists());
}
