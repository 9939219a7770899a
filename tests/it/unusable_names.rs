//! Names that no file can have: each gets a message of its own.

use support::harness::{Folder, add_key, expect_refusal, output, petstore, run};

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

#[test]
fn missing_database_is_named_with_the_folder_in_which_it_was_looked_for() {
    let folder = Folder::new();
    let place = std::fs::canonicalize(folder.path()).unwrap();
    let said = format!(
        "there is no database petstore.db in the folder {}; give the right file with --database",
        place.display()
    );
    for words in
        [&["key", "list"][..], &["export"], &["backup", "copy.db"], &["check"], &["pet", "delete", "1"]]
    {
        let mut command = petstore(words);
        expect_refusal(output(command.current_dir(folder.path())), 1, &said);
    }
}
