//! `petstore restore`: puts the backup in place, and keeps what was there.

use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use rusqlite::Connection;

use crate::backup::{
    MANY, count, filled, names, partials, refuse, refuse_for_size, start, succeed,
};
use crate::messages;
use support::harness::{Folder, Server, add_key, expect_refusal, is_root, output, run};
use support::wait::wait_until;

/// A folder with a backup of this many pets and one more.
fn backup_of(pets: u32) -> (Folder, String) {
    let (source, folder) = (filled(pets), Folder::new());
    let name = folder.path().join("copy.db").to_str().unwrap().to_owned();
    succeed(&["backup", &name], &source.database());
    (folder, name)
}

/// The dated files next to a database.
fn kept(folder: &Path) -> Vec<PathBuf> {
    let is_dated = |name: &String| name.starts_with("pets.db.2") && name.contains('Z');
    names(folder)
        .into_iter()
        .filter(is_dated)
        .map(|name| folder.join(name))
        .collect()
}

#[test]
fn restore_puts_the_backup_in_place_and_keeps_what_was_there() {
    let (_backup, name) = backup_of(10);
    let server = Server::start();
    server.fill(["Rex", "Tom"]);
    let database = server.folder.database();
    refuse(
        &["restore", &name],
        &database,
        "another process holds the database",
    );
    // The log of the killed service has the pets.
    let folder = server.kill();
    assert!(names(folder.path()).contains(&"pets.db-wal".to_owned()));
    let said = succeed(&["restore", &name], &database);
    let [old] = &kept(folder.path())[..] else {
        panic!("{:?}", names(folder.path()))
    };
    assert!(
        said.contains(": 11 pets\n") && said.contains(old.to_str().unwrap()),
        "{said}"
    );
    assert_eq!(names(folder.path()).len(), 2, "nothing else is beside them");
    assert_eq!((count(old), count(&database)), (2, 11));
    for file in [old, &database] {
        assert_eq!(
            std::fs::metadata(file).unwrap().permissions().mode() & 0o777,
            0o600
        );
        assert!(succeed(&["check", file.to_str().unwrap()], &database).contains("is sound"));
    }
    let server = Server::start_in(folder, |command| command);
    server
        .create(r#"{"name":"after","categoryId":1}"#)
        .expect(201);
    assert_eq!(server.get("/v1/pets/12").json()["name"], "after");
    // Twice within one second, and back again.
    let folder = server.kill();
    succeed(&["restore", &name], &database);
    let oldest = kept(folder.path())[0].to_str().unwrap().to_owned();
    succeed(&["restore", &oldest], &database);
    assert_eq!((kept(folder.path()).len(), count(&database)), (3, 2));
}

#[test]
fn database_is_not_restored_from_itself() {
    let source = filled(2);
    let database = source.database();
    let link = source.path().join("link.db");
    std::os::unix::fs::symlink(&database, &link).unwrap();
    for name in [&database, &link] {
        refuse(
            &["restore", name.to_str().unwrap()],
            &database,
            "is the database itself",
        );
    }
    assert!(kept(source.path()).is_empty());
}

#[test]
fn keys_and_ids_do_not_go_back_in_time() {
    let server = Server::start();
    server.fill(["Rex"]);
    let database = server.folder.database();
    let copy = server
        .folder
        .path()
        .join("copy")
        .to_str()
        .unwrap()
        .to_owned();
    let (leaked, gone) = (add_key(&database, &["ci"]), add_key(&database, &["gone"]));
    succeed(&["backup", &copy], &database);
    let rotated = succeed(&["key", "rotate", "ci"], &database);
    succeed(&["key", "revoke", "gone"], &database);
    let later = add_key(&database, &["later"]);
    server.fill(["Tom"]);
    let expect = |server: &Server, keys: [(&str, u16); 4]| {
        for (key, status) in keys {
            server
                .connect()
                .get("/v1/pets", key.trim_end())
                .expect(status);
        }
    };

    let folder = server.kill();
    let said = succeed(&["restore", &copy], &database);
    assert!(
        said.contains(": 1 pet\nthe API keys are the same as before\n"),
        "{said}"
    );
    let server = Server::start_in(folder, |command| command);
    expect(
        &server,
        [(&leaked, 401), (&gone, 401), (&rotated, 200), (&later, 200)],
    );
    assert_eq!(
        server
            .create(r#"{"name":"Kim","categoryId":1}"#)
            .expect(201)
            .json()["id"],
        3
    );

    let folder = server.kill();
    let said = succeed(&["restore", "--keys", "from-backup", &copy], &database);
    assert!(
        said.contains("valid API keys, as the backup has them: ci, gone; revoke again"),
        "{said}"
    );
    let server = Server::start_in(folder, |command| command);
    expect(
        &server,
        [(&leaked, 200), (&gone, 200), (&rotated, 401), (&later, 401)],
    );
    assert_eq!(
        server
            .create(r#"{"name":"Kim","categoryId":1}"#)
            .expect(201)
            .json()["id"],
        4
    );
}

#[test]
fn database_without_its_pets_does_not_take_the_keys_of_a_backup_away() {
    let server = Server::start();
    let (database, copy) = (server.folder.database(), server.folder.path().join("copy"));
    let key = add_key(&database, &["ci"]);
    succeed(&["backup", copy.to_str().unwrap()], &database);
    let folder = server.kill();
    for name in ["pets.db", "pets.db-wal"] {
        std::fs::remove_file(folder.path().join(name)).unwrap();
    }
    // As a start makes it where a disk is not mounted.
    add_key(&database, &["first"]);
    let said = succeed(&["restore", copy.to_str().unwrap()], &database);
    assert!(
        said.contains("valid API keys, as the backup has them: ci; revoke again"),
        "{said}"
    );
    Server::start_in(folder, |command| command)
        .connect()
        .get("/v1/pets", &key)
        .expect(200);
}

#[test]
fn current_keys_stay_whatever_the_backup_is_of_or_the_restore_fails() {
    let (other, folder) = (filled(3), filled(0));
    let [with, without] = ["with", "without"].map(|name| other.path().join(name));
    let [with, without] = [&with, &without].map(|path| path.to_str().unwrap());
    succeed(&["backup", without], &other.database());
    add_key(&other.database(), &["stranger"]);
    succeed(&["backup", with], &other.database());
    add_key(&folder.database(), &["shop"]);
    for words in [
        &["restore", "--keys", "current", with][..],
        &["restore", "--keys", "current", without],
        &["restore", without],
    ] {
        let said = succeed(words, &folder.database());
        assert!(
            said.contains("the API keys are the same as before"),
            "{said}"
        );
        let keys = succeed(&["key", "list"], &folder.database());
        assert!(
            keys.contains("shop") && !keys.contains("stranger"),
            "{words:?}: {keys}"
        );
        assert_eq!(count(&folder.database()), 4);
    }
    let said = succeed(&["restore", with], &filled(0).database());
    assert!(said.contains("as the backup has them: stranger"), "{said}");
    // What cannot be obeyed is refused.
    let before = names(folder.path()).len();
    std::fs::write(folder.database(), "damaged").unwrap();
    let words = ["restore", "--keys", "current", with];
    refuse(
        &words,
        &folder.database(),
        "the current API keys cannot be read",
    );
    assert_eq!(names(folder.path()).len(), before);
    let empty = Folder::new();
    refuse(
        &words,
        &empty.database(),
        "the current API keys cannot be read",
    );
    assert_eq!(names(empty.path()), [""; 0]);
}

#[test]
fn domains_that_are_served_again_are_named() {
    let folder = filled(0);
    let (database, copy) = (folder.database(), folder.path().join("copy"));
    let copy = copy.to_str().unwrap();
    let sql = |sql: &str| {
        Connection::open(folder.database())
            .unwrap()
            .execute_batch(sql)
            .unwrap();
    };
    sql(
        "INSERT INTO domains (name, state, since, added_at, is_primary) VALUES \
        ('sold.example', 'active', 1, 1, 0), ('kept.example', 'active', 1, 1, 0); \
        INSERT INTO redirects VALUES ('sold.example', 'kept.example', 301)",
    );
    succeed(&["backup", copy], &database);
    sql("DELETE FROM redirects; DELETE FROM domains WHERE name = 'sold.example'");
    let said = succeed(&["restore", copy], &database);
    let again: Vec<_> = said
        .lines()
        .filter(|line| line.contains("served again"))
        .collect();
    assert_eq!(
        again,
        [
            "served again, as the backup has it: the domain sold.example",
            "served again, as the backup has it: the redirect from sold.example to kept.example",
        ]
    );
    assert!(!succeed(&["restore", copy], &database).contains("served again"));
}

#[test]
fn mode_and_group_of_the_database_survive() {
    let (_backup, name) = backup_of(0);
    let folder = filled(0);
    let database = folder.database();
    std::fs::set_permissions(&database, PermissionsExt::from_mode(0o640)).unwrap();
    if is_root() {
        std::os::unix::fs::chown(&database, None, Some(2345)).unwrap();
    }
    let of = |path: &Path| {
        (
            id_of(path),
            std::fs::metadata(path).unwrap().permissions().mode(),
        )
    };
    let before = of(&database);
    succeed(&["restore", &name], &database);
    assert_eq!(of(&database), before);
}

#[test]
fn database_that_was_moved_away_from_its_log_is_not_restored_without_it() {
    let server = Server::start();
    server.fill(["Rex"]);
    let folder = server.kill();
    let (database, away) = (folder.database(), folder.path().join("away"));
    std::fs::rename(&database, &away).unwrap();
    let said = format!(
        "{} may be the database of {}-wal; if it is a backup,",
        away.display(),
        database.display()
    );
    refuse(&["restore", away.to_str().unwrap()], &database, &said);
    assert!(
        kept(folder.path()).is_empty() && names(folder.path()).contains(&"pets.db-wal".to_owned())
    );
    std::fs::rename(&away, &database).unwrap();
    assert_eq!(count(&database), 1);
    // With its log at hand it is a copy like others.
    std::fs::rename(&database, &away).unwrap();
    std::fs::copy(
        folder.path().join("pets.db-wal"),
        folder.path().join("away-wal"),
    )
    .unwrap();
    succeed(&["restore", away.to_str().unwrap()], &database);
    assert_eq!(count(&database), 1);
}

#[test]
fn restore_where_there_is_no_database_makes_one() {
    let (_backup, name) = backup_of(0);
    let folder = Folder::new();
    let said = succeed(&["restore", &name], &folder.database());
    let none = format!(
        "there was no database at {} before\n",
        folder.database().display()
    );
    assert!(said.ends_with(&none) && !said.contains("kept"), "{said}");
    assert_eq!(
        (names(folder.path()), count(&folder.database())),
        (vec!["pets.db".into()], 1)
    );
    // A log without its database is kept too, and not applied to the new one.
    std::fs::rename(folder.database(), folder.path().join("away")).unwrap();
    std::fs::write(folder.path().join("pets.db-wal"), "log").unwrap();
    let said = succeed(&["restore", &name], &folder.database());
    assert!(!folder.path().join("pets.db-wal").exists());
    let kept = &kept(folder.path())[0];
    assert!(said.contains(kept.to_str().unwrap()), "{said}");
    assert_eq!(std::fs::read(kept).unwrap(), b"log");
}

#[test]
fn database_that_root_restores_belongs_to_the_owner_of_its_folder() {
    let (_backup, name) = backup_of(0);
    let folder = Folder::new();
    let is_root = std::fs::metadata(folder.path()).unwrap().uid() == 0;
    let owner = if is_root {
        (1234, 2345)
    } else {
        id_of(folder.path())
    };
    std::os::unix::fs::chown(folder.path(), Some(owner.0), Some(owner.1)).unwrap();
    succeed(&["restore", &name], &folder.database());
    assert_eq!(id_of(&folder.database()), owner);
    // The old database says whose the next one is.
    if is_root {
        std::os::unix::fs::chown(folder.path(), Some(1), Some(1)).unwrap();
    }
    succeed(&["restore", &name], &folder.database());
    assert_eq!(id_of(&folder.database()), owner);
}

/// The user and the group that a file belongs to.
fn id_of(path: &Path) -> (u32, u32) {
    let file = std::fs::metadata(path).unwrap();
    (file.uid(), file.gid())
}

#[test]
fn damaged_database_is_kept_with_its_log() {
    let (_backup, name) = backup_of(0);
    let server = Server::start();
    server.fill(["Rex", "Tom"]);
    let database = server.folder.database();
    let folder = server.kill();
    let header = |bytes: &[u8]| {
        let file = std::fs::File::options()
            .write(true)
            .open(&database)
            .unwrap();
        file.write_all_at(bytes, 0).unwrap();
    };
    header(b"no SQLite at all");
    let said = succeed(&["restore", &name], &database);
    assert!(!folder.path().join("pets.db-wal").exists());
    assert_eq!(count(&database), 1);
    // Repaired, it has all that was acknowledged.
    let old = &kept(folder.path())[0];
    assert!(
        said.ends_with(&format!("the old database is kept as {}\n", old.display())),
        "{said}"
    );
    let file = std::fs::File::options().write(true).open(old).unwrap();
    file.write_all_at(b"SQLite format 3\0", 0).unwrap();
    let repaired = Connection::open(old).unwrap();
    let names = repaired.query_row("SELECT count(*) FROM pets", [], |row| row.get::<_, i64>(0));
    assert_eq!(names, Ok(2));
}

#[test]
fn unsound_backup_is_refused_and_changes_nothing() {
    let (backup, name) = backup_of(500);
    let folder = filled(0);
    let before = (
        names(folder.path()),
        std::fs::read(folder.database()).unwrap(),
    );
    Connection::open(&name)
        .unwrap()
        .execute_batch("DROP INDEX pets_by_status")
        .unwrap();
    refuse(
        &["restore", &name],
        &folder.database(),
        messages::INDEX_MISSING,
    );
    let file = std::fs::File::options().write(true).open(&name).unwrap();
    file.set_len(8192).unwrap();
    refuse(
        &["restore", &name],
        &folder.database(),
        messages::PAGE_MISSING,
    );
    std::fs::write(&name, "not a database, but long enough to be looked at").unwrap();
    refuse(
        &["restore", &name],
        &folder.database(),
        messages::DATABASE_FOREIGN,
    );
    let missing = backup.path().join("none.db");
    refuse(
        &["restore", missing.to_str().unwrap()],
        &folder.database(),
        messages::FILE_MISSING,
    );
    assert_eq!(
        (
            names(folder.path()),
            std::fs::read(folder.database()).unwrap()
        ),
        before
    );
}

#[test]
fn database_in_use_by_another_program_is_not_replaced() {
    let (_backup, name) = backup_of(0);
    let folder = filled(0);
    let other = Connection::open(folder.database()).unwrap();
    other
        .query_row("SELECT count(*) FROM pets", [], |_| Ok(()))
        .unwrap();
    refuse(
        &["restore", &name],
        &folder.database(),
        "another process uses the database",
    );
    assert_eq!(
        (kept(folder.path()).len(), partials(folder.path()).len()),
        (0, 0)
    );
    drop(other);
    succeed(&["restore", &name], &folder.database());
    // Nor is one that another program made.
    let theirs = folder.path().join("theirs.db");
    Connection::open(&theirs)
        .unwrap()
        .execute_batch("CREATE TABLE theirs (x)")
        .unwrap();
    refuse(&["restore", &name], &theirs, messages::ANOTHER_APPLICATION);
}

#[test]
fn restore_without_room_changes_nothing() {
    let (_backup, name) = backup_of(20_000);
    let folder = filled(0);
    refuse_for_size(&["restore", &name], &folder.database());
    assert_eq!(names(folder.path()), ["pets.db"]);
}

#[test]
fn killed_restore_leaves_the_old_or_the_new_database() {
    let (_backup, name) = backup_of(MANY);
    let (old, new) = (1, i64::from(MANY) + 1);
    let begun: [fn(&Path) -> bool; 4] = [
        |folder| !partials(folder).is_empty(),
        |folder| !kept(folder).is_empty(),
        |folder| kept(folder).len() == 1 && partials(folder).is_empty(),
        |folder| !folder.join("pets.db-wal").exists(),
    ];
    for (i, has_begun) in begun.into_iter().enumerate() {
        let server = Server::start();
        server.fill(["first"]);
        let folder = server.kill();
        let mut restore = start(&["restore", &name], &folder.database());
        wait_until("the restore to come so far", || {
            has_begun(folder.path()) || restore.has_ended()
        });
        drop(restore);
        let said = succeed(&["check"], &folder.database());
        assert!(said.contains("is sound"), "{i}: {said}");
        // A kill while the files are merged leaves a journal, which the next program that may write rolls
        // back.
        Connection::open(folder.database())
            .unwrap()
            .execute_batch("SELECT count(*) FROM pets")
            .unwrap();
        let found = count(&folder.database());
        assert!(found == old || found == new, "{i}: {found}");
        if found == new {
            assert_eq!(
                count(&kept(folder.path())[0]),
                old,
                "{i}: the old one is kept"
            );
        }
        // The next restore works, and cleans up.
        succeed(&["restore", &name], &folder.database());
        assert_eq!(partials(folder.path()), [""; 0], "{i}");
        assert_eq!(count(&folder.database()), new, "{i}");
        assert!(
            kept(folder.path()).iter().any(|file| count(file) == old),
            "{i}: the old one is kept"
        );
    }
}

#[test]
fn database_that_is_made_meanwhile_is_not_replaced() {
    let (_backup, name) = backup_of(MANY);
    for left in [None, Some("pets.db-wal")] {
        let folder = Folder::new();
        left.iter()
            .for_each(|left| std::fs::write(folder.path().join(left), "log").unwrap());
        let mut restore = start(&["restore", &name], &folder.database());
        wait_until("the copy to be begun", || {
            !partials(folder.path()).is_empty()
        });
        std::fs::write(folder.database(), "mine").unwrap();
        assert_eq!(restore.ended().code(), Some(1), "{left:?}");
        assert_eq!(
            std::fs::read(folder.database()).unwrap(),
            b"mine",
            "{left:?}"
        );
    }
}

#[test]
fn log_of_another_database_is_kept_apart() {
    let (_backup, name) = backup_of(0);
    let server = Server::start();
    server.fill(["other"]);
    let crashed = server.kill();
    let log = std::fs::read(crashed.path().join("pets.db-wal")).unwrap();
    std::fs::copy(&name, crashed.database()).unwrap();
    let old = std::fs::read(crashed.database()).unwrap();
    succeed(&["restore", &name], &crashed.database());
    let kept = kept(crashed.path());
    assert!(
        std::fs::read(&kept[0]).unwrap() == old,
        "the log is not moved into it"
    );
    assert!(std::fs::read(&kept[1]).unwrap() == log);
    assert_eq!((kept.len(), count(&crashed.database())), (2, 1));
}

#[test]
fn file_that_is_mounted_by_itself_stays_and_is_reported() {
    if !is_root() {
        return; // Only root can mount it.
    }
    let (_backup, name) = backup_of(0);
    let folder = filled(3);
    // In a mount namespace of its own, which ends with it.
    let mut alone = std::process::Command::new("unshare");
    alone.args([
        "-m",
        "sh",
        "-c",
        r#"mount --bind "$1" "$1" && exec "$0" restore --database "$1" "$2""#,
    ]);
    let refused = output(
        alone
            .arg(env!("CARGO_BIN_EXE_petstore"))
            .arg(folder.database())
            .arg(&name),
    );
    expect_refusal(
        refused,
        1,
        "is mounted alone, so its log would be in another place",
    );
    assert_eq!(
        (kept(folder.path()), partials(folder.path())),
        (vec![], vec![])
    );
    assert_eq!(count(&folder.database()), 4);
}

#[test]
fn what_can_be_read_of_a_damaged_database_is_carried() {
    for (damaged, said, id, is_valid) in [
        (
            "api_keys",
            "the API keys of the old database cannot be read",
            3,
            true,
        ),
        (
            "sqlite_sequence",
            "the highest id of pets in the old database cannot be read, so ids above 2 may",
            3,
            true,
        ),
        ("pets", "", 3, false),
    ] {
        let server = Server::start();
        server.fill(["Rex"]);
        let (database, copy) = (server.folder.database(), server.folder.path().join("copy"));
        let key = add_key(&database, &["ci"]);
        succeed(&["backup", copy.to_str().unwrap()], &database);
        server.fill(["Tom"]);
        succeed(&["key", "revoke", "ci"], &database);
        let folder = server.kill();
        let old = Connection::open(&database).unwrap();
        let page = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
        let page: u32 = old.query_row(page, [damaged], |row| row.get(0)).unwrap();
        drop(old);
        let file = std::fs::File::options()
            .write(true)
            .open(&database)
            .unwrap();
        file.write_all_at(&[0xff; 4096], u64::from(page - 1) * 4096)
            .unwrap();
        let done = run(&["restore", copy.to_str().unwrap()], &database);
        let told = String::from_utf8_lossy(&done.stderr);
        assert!(
            done.status.success() && told.contains(said) && told.is_empty() == said.is_empty(),
            "{told}"
        );
        let server = Server::start_in(folder, |command| command);
        server
            .connect()
            .get("/v1/pets", key.trim_end())
            .expect(if is_valid { 200 } else { 401 });
        assert_eq!(
            server
                .create(r#"{"name":"Kim","categoryId":1}"#)
                .expect(201)
                .json()["id"],
            id,
            "{damaged}"
        );
    }
}

#[test]
fn key_whose_name_is_damaged_is_carried() {
    let server = Server::start();
    let (database, copy) = (server.folder.database(), server.folder.path().join("copy"));
    succeed(&["backup", copy.to_str().unwrap()], &database);
    let key = add_key(&database, &["ci"]);
    let folder = server.kill();
    let old = Connection::open(&database).unwrap();
    old.execute_batch("UPDATE api_keys SET name = CAST(x'4a6f73e9' AS TEXT)")
        .unwrap();
    drop(old);
    succeed(&["restore", copy.to_str().unwrap()], &database);
    let found = Connection::open(&database).unwrap();
    let name = found.query_row("SELECT hex(name) FROM api_keys", [], |row| {
        row.get::<_, String>(0)
    });
    assert_eq!(name.as_deref(), Ok("4A6F73E9"));
    drop((folder, key));
}
