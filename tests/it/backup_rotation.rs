//! `petstore backup --to`: dated copies that are checked, and what a service reports of them.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rusqlite::Connection;

use crate::admin::metric;
use crate::backup::{
    MANY, count, filled, names, partials, refuse, refuse_for_size, start, succeed,
};
use crate::messages;
use support::harness::{Folder, Server, as_nobody, expect_refusal, is_root, output, petstore, run};
use support::wait::wait_until;

/// A dated backup of long ago.
const OLD: &str = "pets-2020-01-01T00-00-00Z.db";

/// Makes a backup into a folder, and returns its path and what was printed.
#[track_caller]
fn back_up(database: &Path, folder: &Folder, flags: &[&str]) -> (PathBuf, String) {
    let words = [&["backup", "--to", text(folder.path())], flags].concat();
    let said = succeed(&words, database);
    let (file, _) = said.split_once(" is complete and sound: ").expect(&said);
    (file.into(), said)
}

fn text(path: &Path) -> &str {
    path.to_str().unwrap()
}

/// Adds older backups of a database.
fn plant(database: &Path, target: &Folder, names: &[&str]) {
    let (made, _) = back_up(database, target, &[]);
    for name in names {
        std::fs::copy(&made, target.path().join(name)).unwrap();
    }
    std::fs::remove_file(made).unwrap();
}

/// The dated backups in a folder, in the order of their time.
fn dated(folder: &Folder) -> Vec<String> {
    names(folder.path())
        .into_iter()
        .filter(|name| name.starts_with("pets-2"))
        .collect()
}

/// The service's report of the last backup: pets, whether it was sound, and the time.
fn reported(server: &Server) -> Option<(i64, i64, i64)> {
    let value = |name: &str| metric(server, &format!("last_backup_{name}"));
    Some((
        value("pets")?,
        value("checked")?,
        value("timestamp_seconds")?,
    ))
}

#[test]
fn dated_backup_is_sound_and_the_service_reports_it() {
    let server = Server::start_with(|command| command.args(["--admin", "0"]));
    server.fill(["Rex", "Tom"]);
    let (target, database) = (Folder::new(), server.folder.database());
    succeed(
        &["backup", text(&target.path().join("by name.db"))],
        &database,
    );
    assert_eq!(
        reported(&server),
        None,
        "a backup with a name of its own does not count"
    );
    let now = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs() as i64
    };
    let before = now();
    let (file, said) = back_up(&database, &target, &[]);
    assert!(
        said.contains("Z.db is complete and sound: 2 pets, "),
        "{said}"
    );
    assert_eq!(count(&file), 2);
    let (pets, checked, at) = reported(&server).unwrap();
    assert_eq!((pets, checked), (2, 1));
    assert!((before..=now()).contains(&at), "{at}");
    let made = UNIX_EPOCH + Duration::from_secs(at.cast_unsigned());
    let name = humantime::format_rfc3339_seconds(made)
        .to_string()
        .replace(':', "-");
    assert_eq!(
        names(target.path()),
        ["by name.db".to_owned(), format!("pets-{name}.db")]
    );
}

#[test]
fn oldest_of_its_own_go_and_no_others() {
    let folder = filled(0);
    let target = Folder::new();
    let others = [
        "pets-2020.db",
        "pets.db",
        "cats-2020-01-01T00-00-00Z.db",
        "pets-2020-01-01T00-00-00Z.db.gz",
    ];
    let own = ["02", "03"].map(|day| format!("pets-2020-01-{day}T00-00-00Z.db"));
    plant(&folder.database(), &target, &[OLD, &own[0], &own[1]]);
    plant(&folder.database(), &target, &others);
    let (_, said) = back_up(&folder.database(), &target, &["--keep", "2"]);
    assert_eq!(
        said.lines()
            .filter(|line| line.starts_with("removed "))
            .count(),
        2,
        "{said}"
    );
    let left = names(target.path());
    assert!(
        others.iter().all(|name| left.contains(&(*name).to_owned())),
        "{left:?}"
    );
    assert_eq!(left.len(), others.len() + 2, "{left:?}");
    assert!(!left.contains(&OLD.to_owned()) && left.contains(&own[1]));
    // Without a number, all stay.
    back_up(&folder.database(), &target, &[]);
    assert_eq!(names(target.path()).len(), left.len() + 1);
}

#[test]
fn backups_of_a_lost_database_stay() {
    let mut folder = filled(9);
    let (database, target) = (folder.database(), Folder::new());
    back_up(&database, &target, &[]);
    let (good, _) = back_up(&database, &target, &["--keep", "1"]);
    assert_eq!(dated(&target).len(), 1);
    std::fs::remove_file(&database).unwrap();
    let mut server = Server::start_in(folder, |command| command);
    server.signal("TERM");
    let (_, _, logged) = server.ended();
    let warning = format!(
        "no database {}, although its last backup has 10 pets",
        database.display()
    );
    assert!(
        logged.lines().next().unwrap().contains(&warning),
        "{logged}"
    );
    folder = std::mem::replace(&mut server.folder, Folder::new());
    let words = ["backup", "--to", text(target.path()), "--keep", "1"];
    let made = run(&words, &folder.database());
    let error = String::from_utf8(made.stderr).unwrap();
    let warning = format!(
        "backups from {} on cannot be read, or are of another database: they stay",
        good.display()
    );
    assert!(error.contains(&warning), "{error}");
    run(&words, &folder.database());
    let left = dated(&target);
    assert_eq!(left.len(), 2, "only its own older one goes");
    assert_eq!(
        (count(&good), count(&target.path().join(&left[1]))),
        (10, 0)
    );
}

#[test]
fn nothing_is_removed_if_far_fewer_pets_are_left() {
    let (folder, target) = (filled(9), Folder::new());
    let (good, _) = back_up(&folder.database(), &target, &[]);
    Connection::open(folder.database())
        .unwrap()
        .execute_batch("DELETE FROM pets WHERE id > 4")
        .unwrap();
    back_up(&folder.database(), &target, &["--keep", "1"]);
    assert_eq!((dated(&target).len(), count(&good)), (2, 10));
    // The loss is known now, and the next backup is like the one before.
    back_up(&folder.database(), &target, &["--keep", "1"]);
    assert_eq!((dated(&target).len(), good.exists()), (1, false));
}

#[test]
fn nothing_is_removed_if_the_new_backup_has_faults() {
    let (folder, target) = (filled(9), Folder::new());
    back_up(&folder.database(), &target, &["--keep", "1"]);
    let before = dated(&target);
    Connection::open(folder.database())
        .unwrap()
        .execute_batch("UPDATE pets SET name = CAST(x'ff' AS TEXT)")
        .unwrap();
    let words = ["backup", "--to", text(target.path()), "--keep", "1"];
    let said = succeed(&words, &folder.database());
    assert!(said.contains("complete, but not sound"), "{said}");
    let after = dated(&target);
    assert!(after.len() == 2 && after.contains(&before[0]), "{after:?}");
}

#[test]
fn only_what_shows_whose_it_is_counts_or_goes() {
    let (folder, target) = (filled(9), Folder::new());
    let at = |name: &str| target.path().join(name);
    let day = |day| format!("pets-2020-01-0{day}T00-00-00Z.db");
    plant(
        &folder.database(),
        &target,
        &[OLD, &day(2), &day(3), &day(4), &day(5), &day(6)],
    );
    std::fs::write(at(OLD), "no database").unwrap();
    std::fs::write(at(&day(2)), "").unwrap();
    let newer = Connection::open(at(&day(3))).unwrap();
    newer.execute_batch("PRAGMA user_version = 99").unwrap();
    let unmarked = Connection::open(at(&day(4))).unwrap();
    unmarked
        .execute_batch("DELETE FROM sqlite_sequence WHERE name = 'petstore database'")
        .unwrap();
    let fifo = std::process::Command::new("mkfifo")
        .arg(at(&day(7)))
        .status();
    assert!(fifo.unwrap().success());
    std::fs::create_dir(at(&day(8))).unwrap();
    std::os::unix::fs::symlink(at(&day(6)), at(&day(9))).unwrap();
    let (made, _) = back_up(&folder.database(), &target, &["--keep", "2"]);
    let mut left: Vec<String> = (1..=9).filter(|it| *it != 5).map(day).collect();
    left.push(made.file_name().unwrap().to_str().unwrap().to_owned());
    assert_eq!(dated(&target), left);
}

#[test]
fn backups_that_only_another_user_may_read_stay() {
    if !is_root() {
        return; // Who is not root cannot make a file of another user.
    }
    let (folder, target) = (filled(0), Folder::new());
    plant(&folder.database(), &target, &[OLD]);
    for (path, mode) in [
        (folder.database(), 0o444),
        (folder.path().into(), 0o777),
        (target.path().into(), 0o777),
    ] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
    let mut command = as_nobody(&["backup", "--to", text(target.path()), "--keep", "1"]);
    let made = output(command.env("PETSTORE_DATABASE", folder.database()));
    let said = String::from_utf8(made.stderr).unwrap();
    assert!(
        made.status.success() && said.contains("cannot be read, or are of another database"),
        "{said}"
    );
    assert_eq!(dated(&target).len(), 2);
    assert!(target.path().join(OLD).exists());
}

#[test]
fn loss_is_noticed_in_each_folder_whoever_may_write_next_to_the_database() {
    let (folder, first, second) = (filled(9), Folder::new(), Folder::new());
    let [(one, _), (other, _)] = [&first, &second].map(|it| back_up(&folder.database(), it, &[]));
    Connection::open(folder.database())
        .unwrap()
        .execute_batch("DELETE FROM pets WHERE id > 4")
        .unwrap();
    // As on a read-only mount, where no note can be written.
    let note = folder.path().join("pets.db.last-backup");
    std::fs::remove_file(&note).unwrap();
    std::fs::create_dir(note).unwrap();
    for target in [&first, &second] {
        let words = ["backup", "--to", text(target.path()), "--keep", "1"];
        let said = String::from_utf8(run(&words, &folder.database()).stderr).unwrap();
        let warning = "the backup has 4 pets, and the one before had 10: no backup was removed";
        assert!(said.contains(warning), "{said}");
    }
    assert_eq!((count(&one), count(&other)), (10, 10));
}

#[test]
fn backup_is_complete_although_an_older_one_cannot_be_removed() {
    if !is_root() {
        return; // Who is not root cannot make a file of another user.
    }
    let (folder, target) = (filled(0), Folder::new());
    plant(&folder.database(), &target, &[OLD]);
    // In such a folder, as in /tmp, only its owner can remove a file.
    for (path, mode) in [
        (target.path().join(OLD), 0o444),
        (folder.database(), 0o444),
        (folder.path().into(), 0o777),
        (target.path().into(), 0o1777),
    ] {
        std::fs::set_permissions(path, PermissionsExt::from_mode(mode)).unwrap();
    }
    let mut command = as_nobody(&["backup", "--to", text(target.path()), "--keep", "1"]);
    let failed = output(command.env("PETSTORE_DATABASE", folder.database()));
    let said = String::from_utf8(failed.stderr).unwrap();
    let old = format!(
        " is complete, but: cannot remove {}: ",
        target.path().join(OLD).display()
    );
    assert!(
        failed.status.code() == Some(1) && said.contains(&old),
        "{said}"
    );
    assert_eq!(dated(&target).len(), 2);
}

#[test]
fn killed_backup_leaves_the_others_and_the_next_cleans_up() {
    let folder = filled(MANY);
    let target = Folder::new();
    plant(&folder.database(), &target, &[OLD]);
    let words = ["backup", "--to", text(target.path()), "--keep", "1"];
    // Within the copy, and when it has grown to its end and is checked.
    let whole = std::fs::metadata(folder.database()).unwrap().len();
    for size in [1, whole] {
        let mut backup = start(&words, &folder.database());
        let length = |name: &String| {
            std::fs::metadata(target.path().join(name)).map_or(0, |data| data.len())
        };
        let has_grown = || {
            partials(target.path())
                .iter()
                .any(|name| length(name) >= size)
        };
        wait_until("the copy to grow", || has_grown() || backup.has_ended());
        if backup.has_ended() {
            // Too fast to be killed; the test of the names is the same.
            let made = dated(&target).pop().unwrap();
            std::fs::rename(target.path().join(made), target.path().join(OLD)).unwrap();
        }
        drop(backup);
        assert_eq!(dated(&target), [OLD]);
    }
    back_up(&folder.database(), &target, &["--keep", "1"]);
    assert_eq!(
        (names(target.path()).len(), partials(target.path()).len()),
        (1, 0)
    );
    assert!(!target.path().join(OLD).exists());
}

#[test]
fn backup_without_room_removes_nothing() {
    let folder = filled(20_000);
    let target = Folder::new();
    std::fs::write(target.path().join(OLD), "").unwrap();
    refuse_for_size(
        &["backup", "--to", text(target.path()), "--keep", "1"],
        &folder.database(),
    );
    assert_eq!(names(target.path()), [OLD]);
}

#[test]
fn unsound_copy_is_reported_and_no_backup() {
    let folder = filled(0);
    let target = Folder::new();
    back_up(&folder.database(), &target, &[]);
    let server = Server::start_in(folder, |command| command.args(["--admin", "0"]));
    let (_, checked, at) = reported(&server).unwrap();
    assert_eq!(checked, 1);
    let path = server.folder.database();
    let database = Connection::open(&path).unwrap();
    database.execute_batch("DROP INDEX pets_by_status").unwrap();
    let line = format!(
        "{} itself may be damaged, and no backup was made; petstore check --database {0} shows what is wrong",
        path.display()
    );
    refuse(
        &["backup", "--to", text(target.path()), "--keep", "1"],
        &path,
        &line,
    );
    assert_eq!((dated(&target).len(), names(target.path()).len()), (1, 1));
    assert_eq!(
        reported(&server),
        Some((1, 0, at)),
        "the last sound one is the one before"
    );
    refuse(
        &["backup", text(&target.path().join("by name.db"))],
        &path,
        &line,
    );
    assert_eq!(names(target.path()).len(), 1);
    database
        .execute_batch("CREATE INDEX pets_by_status ON pets (status) WHERE status IS NOT NULL")
        .unwrap();
    back_up(&path, &target, &["--keep", "1"]);
    assert_eq!(
        (reported(&server).unwrap().1, names(target.path()).len()),
        (1, 1)
    );
}

#[test]
fn backup_that_cannot_be_noted_is_a_backup() {
    let folder = filled(0);
    let target = Folder::new();
    std::fs::create_dir(folder.path().join("pets.db.last-backup")).unwrap();
    let done = run(&["backup", "--to", text(target.path())], &folder.database());
    let error = String::from_utf8(done.stderr).unwrap();
    assert!(
        done.status.success() && error.contains("cannot tell the service about this backup"),
        "{error}"
    );
    assert_eq!((dated(&target).len(), names(target.path()).len()), (1, 1));
}

#[test]
fn locked_database_is_backed_up() {
    let server = Server::start();
    server.fill(["Rex"]);
    let other = Connection::open(server.folder.database()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let target = Folder::new();
    assert_eq!(
        count(&back_up(&server.folder.database(), &target, &[]).0),
        1
    );
}

#[test]
fn wrong_words_are_refused() {
    let folder = filled(0);
    for (words, named) in [
        (&["backup"][..], "a FILE, or --to FOLDER"),
        (&["backup", "--keep", "3"], "--keep needs --to"),
        (&["backup", "copy.db", "--keep", "3"], "--keep needs --to"),
        (&["backup", "copy.db", "--to", "folder"], "not both"),
        (&["backup", "--to", ""], "--to must be a folder"),
        (&["backup", "--to", "folder", "--keep", "0"], "at least 1"),
        (&["backup", "--to", "folder", "--keep", "two"], "at least 1"),
        (&["check", "--restored"], "needs a FILE"),
    ] {
        expect_refusal(run(words, &folder.database()), 2, named);
    }
    refuse(
        &["backup", "--to", "/no/such/folder"],
        &folder.database(),
        "there is no folder ",
    );
    refuse(
        &["backup", "--to", text(folder.path())],
        &folder.path().join("none.db"),
        messages::DATABASE_MISSING,
    );
    assert_eq!(names(folder.path()), ["pets.db"]);
}

/// Tries out a backup, with a folder for temporary files of its own, in which nothing may be left.
#[track_caller]
fn drill(file: &Path) -> std::process::Output {
    let temporary = Folder::new();
    let done =
        output(petstore(&["check", "--restored", text(file)]).env("TMPDIR", temporary.path()));
    assert_eq!(names(temporary.path()), [""; 0]);
    done
}

#[test]
fn drill_restores_and_serves_a_backup() {
    let folder = filled(250);
    let target = Folder::new();
    let (file, _) = back_up(&folder.database(), &target, &[]);
    let before = std::fs::read(&file).unwrap();
    let done = drill(&file);
    let said = String::from_utf8(done.stdout).unwrap();
    assert!(done.status.success(), "{said}");
    assert!(said.contains(" is sound: 251 pets ("), "{said}");
    assert!(
        said.contains(" can be restored: a service runs on it, with 251 pets\n"),
        "{said}"
    );
    assert_eq!(std::fs::read(&file).unwrap(), before);
    assert_eq!(names(target.path()).len(), 1);
}

#[test]
fn drill_refuses_what_cannot_be_restored() {
    let folder = filled(250);
    let target = Folder::new();
    let (file, _) = back_up(&folder.database(), &target, &[]);
    Connection::open(&file)
        .unwrap()
        .execute_batch("DROP INDEX pets_by_status")
        .unwrap();
    let done = drill(&file);
    let [said, error] = [done.stdout, done.stderr].map(|text| String::from_utf8(text).unwrap());
    assert_eq!(done.status.code(), Some(1), "{said}{error}");
    assert!(
        said.contains(messages::INDEX_MISSING) && error.contains("is not sound"),
        "{said}{error}"
    );
    std::fs::File::options()
        .write(true)
        .open(&file)
        .unwrap()
        .set_len(8192)
        .unwrap();
    expect_refusal(drill(&file), 1, "is not sound");
    expect_refusal(
        drill(&target.path().join("none.db")),
        1,
        messages::FILE_MISSING,
    );
}

#[test]
fn backups_of_a_time_to_come_neither_count_nor_go() {
    let server = Server::start_with(|command| command.args(["--admin", "0"]));
    let (target, database) = (Folder::new(), server.folder.database());
    for name in [
        "pets-2056-01-01T00-00-00Z.db",
        "pets-2056-01-02T00-00-00Z.db",
    ] {
        std::fs::write(target.path().join(name), "").unwrap();
    }
    let (first, _) = back_up(&database, &target, &["--keep", "2"]);
    let words = ["backup", "--to", text(target.path()), "--keep", "2"];
    let said = String::from_utf8(run(&words, &database).stderr).unwrap();
    let warning =
        "-2056-01-01T00-00-00Z.db on are dated later than now: they stay and do not count";
    assert!(
        said.lines().count() == 1 && said.contains(warning),
        "{said}"
    );
    assert!(first.exists());
    back_up(&database, &target, &["--keep", "2"]);
    assert!(!first.exists());
    assert_eq!(dated(&target).len(), 4);
    // Nor is a backup from then a fact.
    let note = r#"{"unix_time":2713910400,"pets":0,"is_sound":true}"#;
    std::fs::write(database.with_added_extension("last-backup"), note).unwrap();
    assert_eq!(reported(&server), Some((0, 1, 0)));
}
