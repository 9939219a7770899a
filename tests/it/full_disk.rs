//! A disk that fills up: a small file system, for which the tests need root (without it, they show nothing), or a limit on
//! the size of files.

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Command;

use support::client::with_body;
use support::harness::{Folder, KEY, Server, add_key, expect_refusal, run};
use support::wait::wait_until;

use crate::backup::{count, succeed};
use crate::database_file::{expect_last_copy, start_logging_in};
use crate::durability::limit_file_size;

/// A file system in memory, with a folder for a database.
struct Disk {
    folder: Option<Folder>,
}

impl Disk {
    /// `None`: this user may not mount.
    fn new(mib: u64) -> Option<Self> {
        Self::with(&format!("size={mib}m"))
    }

    fn with(options: &str) -> Option<Self> {
        let folder = Folder::new();
        let mut mount = Command::new("mount");
        mount
            .args(["-t", "tmpfs", "-o", options, "petstore-test"])
            .arg(folder.path());
        let is_mounted = mount.output().is_ok_and(|output| output.status.success());
        is_mounted.then_some(Self {
            folder: Some(folder),
        })
    }
}

/// Unmounts the folder at the end.
struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("--lazy").arg(&self.0).output();
    }
}

#[test]
fn readiness_reports_a_full_disk_before_anything_is_written() {
    let Some(Disk {
        folder: Some(folder),
    }) = Disk::new(6)
    else {
        return;
    };
    let _mounted = Mounted(folder.path().to_owned());
    let ballast = folder.path().join("ballast");
    let mut server = Server::start_in(folder, |command| command);
    let body = format!(r#"{{"name":"{}","categoryId":1}}"#, "x".repeat(3000));
    server.create(&body).expect(201);
    // It leaves no log.
    server.signal("TERM");
    server.ended();
    let folder = std::mem::replace(&mut server.folder, Folder::new());
    let mut file = File::create(&ballast).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    for words in [
        &["key", "add", "ci"][..],
        &["serve", "--listen", "127.0.0.1:0"],
    ] {
        expect_refusal(run(words, &folder.database()), 1, "the disk is full");
    }
    // What only reads needs no other file, as there is no log.
    let elsewhere = Folder::new();
    let copy = elsewhere.path().join("copy.db");
    let backup = ["backup", copy.to_str().unwrap()];
    for words in [&["key", "list"][..], &["check"], &["export"], &backup] {
        succeed(words, &folder.database());
    }
    assert_eq!(count(&copy), 1);
    let server = Server::start_in(folder, |command| command.arg("--read-only"));
    server.get("/v1/pets/1").expect(200);
    let folder = server.kill();
    // Enough for the index of the log.
    file.set_len(file.metadata().unwrap().len() - 36 * 1024)
        .unwrap();
    drop(file);
    let server = Server::start_in(folder, |command| command);
    server
        .get("/readyz")
        .expect_error(503, "storage_unavailable", "the disk is full");
    server
        .create(&body)
        .expect_error(503, "storage_unavailable", "the disk is full");
    fs::remove_file(ballast).unwrap();
    wait_until("the service to be ready", || {
        server.get("/readyz").status == 200
    });
    server.create(&body).expect(201);
}

#[test]
fn key_that_a_full_disk_refuses_is_not_printed() {
    let Some(Disk {
        folder: Some(folder),
    }) = Disk::new(6)
    else {
        return;
    };
    let _mounted = Mounted(folder.path().to_owned());
    let database = folder.database();
    add_key(&database, &["ci"]);
    let mut file = File::create(folder.path().join("ballast")).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    // Enough for the index of the log.
    file.set_len(file.metadata().unwrap().len() - 36 * 1024)
        .unwrap();
    let refused = run(&["key", "rotate", "ci"], &database);
    assert_eq!(refused.stdout, b"");
    expect_refusal(refused, 1, "the disk is full");
}

#[test]
fn database_that_was_deleted_to_make_room_is_kept_until_there_is_some() {
    let Some(Disk {
        folder: Some(folder),
    }) = Disk::new(6)
    else {
        return;
    };
    let _mounted = Mounted(folder.path().to_owned());
    let elsewhere = Folder::new();
    let mut server = start_logging_in(folder, elsewhere.path());
    let full = server.folder.path().join("ballast");
    let mut file = File::create(full).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    let backups = server.folder.path().join("backups");
    fs::create_dir(&backups).unwrap();
    let words = ["backup", "--to", backups.to_str().unwrap()];
    let partial = backups.join("pets.db.partial");
    expect_refusal(
        run(&words, &server.folder.database()),
        1,
        partial.to_str().unwrap(),
    );
    fs::remove_file(server.folder.database()).unwrap();
    expect_last_copy(&mut server, elsewhere.path());
}

#[test]
fn file_system_without_inodes_is_named() {
    let Some(Disk {
        folder: Some(folder),
    }) = Disk::with("size=6m,nr_inodes=5")
    else {
        return;
    };
    let _mounted = Mounted(folder.path().to_owned());
    let mut server = Server::start_in(folder, |command| command);
    server.signal("TERM");
    server.ended();
    let folder = std::mem::replace(&mut server.folder, Folder::new());
    let mut names = 0..;
    let mut next = || folder.path().join(names.next().unwrap().to_string());
    while File::create_new(next()).is_ok() {}
    let other = folder.path().join("other.db");
    for (words, database) in [
        (&["key", "add", "ci"][..], folder.database()),
        (&["serve", "--listen", "127.0.0.1:0"], folder.database()),
        (&["serve", "--listen", "127.0.0.1:0"], other),
    ] {
        expect_refusal(run(words, &database), 1, "has no inodes left (df -i)");
    }
}

#[test]
fn ready_service_has_room_for_a_create() {
    let Some(Disk {
        folder: Some(folder),
    }) = Disk::new(4)
    else {
        return;
    };
    let _mounted = Mounted(folder.path().to_owned());
    let (ballast, body) = (
        folder.path().join("ballast"),
        format!(r#"{{"name":"{}","categoryId":1}}"#, "x".repeat(60_000)),
    );
    let mut server = Server::start_in(folder, |command| command);
    for (kib, has_room) in [
        (40, false),
        (48, false),
        (64, false),
        (96, false),
        (160, true),
    ] {
        server.signal("TERM");
        server.ended();
        let folder = std::mem::replace(&mut server.folder, Folder::new());
        let mut file = File::create(&ballast).unwrap();
        while file.write_all(&[0; 4096]).is_ok() {}
        file.set_len(file.metadata().unwrap().len() - kib * 1024)
            .unwrap();
        server = Server::start_in(folder, |command| command);
        assert_eq!(server.get("/readyz").status == 200, has_room, "{kib}");
        assert_eq!(server.create(&body).status == 201, has_room, "{kib}");
        fs::remove_file(&ballast).unwrap();
    }
}

#[test]
fn readiness_after_a_start_that_could_not_move_the_log_takes_a_write() {
    let Some(Disk {
        folder: Some(folder),
    }) = Disk::new(6)
    else {
        return;
    };
    let _mounted = Mounted(folder.path().to_owned());
    let ballast = folder.path().join("ballast");
    let server = Server::start_in(folder, |command| command);
    // Fewer frames than a commit moves.
    server
        .create(&format!(
            r#"{{"name":"{}","categoryId":1}}"#,
            "x".repeat(60_000)
        ))
        .expect(201);
    let folder = server.kill();
    let mut file = File::create(&ballast).unwrap();
    while file.write_all(&[0; 4096]).is_ok() {}
    drop(file);
    let server = Server::start_in(folder, |command| command);
    server
        .get("/readyz")
        .expect_error(503, "storage_unavailable", "the disk is full");
    fs::remove_file(ballast).unwrap();
    wait_until("the service to be ready", || {
        server.get("/readyz").status == 200
    });
    server
        .create(r#"{"name":"Rex","categoryId":1}"#)
        .expect(201);
    let logged = server.stop();
    assert!(
        logged.contains("the write-ahead log stays next to the database"),
        "{logged}"
    );
}

#[test]
fn request_that_a_full_disk_refuses_is_not_carried_out() {
    const PETS: i64 = 120;
    let server = Server::start_with(|command| command.args(["--experimental"]));
    let database = server.folder.database();
    let other = rusqlite::Connection::open(&database).unwrap();
    // Changes of many more pages than the cache has.
    let fill = "INSERT INTO pets (name, category_id) WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n \
        WHERE i < ?1) SELECT hex(zeroblob(30000)), i FROM n";
    other.execute(fill, [PETS]).unwrap();
    let (mut refused, mut done) = (0, 0);
    for free in [200_000_i64, 1_000_000, 3_000_000] {
        other
            .execute_batch("UPDATE pets SET status = NULL; PRAGMA wal_checkpoint(TRUNCATE)")
            .unwrap();
        // While it has the lock, requests gather.
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let key = |id: i64| format!("Idempotency-Key: {free}-{id}\r\n");
        let pet = |id: i64| format!(r#"{{"name":"{free}-{id}-","categoryId":1}}"#);
        let mut asked: Vec<_> = (1..=PETS)
            .map(|id| {
                let mut connection = server.connect();
                connection.send(match id % 3 {
                    0 => with_body("POST", "/v1/pets", KEY, &key(id), &pet(id)),
                    _ => with_body(
                        "PATCH",
                        &format!("/v1/pets/{id}"),
                        KEY,
                        "",
                        r#"{"status":"sold"}"#,
                    ),
                });
                // Once the gate answers a later request, it has this one.
                server.get("/v1/pets/1").expect(200);
                connection
            })
            .collect();
        let log = fs::metadata(server.folder.path().join("pets.db-wal"))
            .unwrap()
            .len();
        limit_file_size(server.pid(), &(log + free.unsigned_abs()).to_string());
        other.execute_batch("COMMIT").unwrap();
        let statuses: Vec<u16> = asked
            .iter_mut()
            .map(|connection| connection.reply().status)
            .collect();
        limit_file_size(server.pid(), "unlimited");
        for (id, status) in (1..).zip(statuses) {
            let is_there = match id % 3 {
                0 => "SELECT EXISTS (SELECT 1 FROM pets WHERE name LIKE ?1 || '-' || ?2 || '-%')",
                _ => "SELECT EXISTS (SELECT ?1 FROM pets WHERE id = ?2 AND status = 'sold')",
            };
            let is_there: bool = other
                .query_row(is_there, (free, id), |row| row.get(0))
                .unwrap();
            assert_eq!(is_there, status != 503, "{free}, {id}: {status}");
            if is_there {
                done += 1;
            } else {
                refused += 1;
            }
            if id % 3 == 0 && !is_there {
                // The retry makes the only pet.
                let mut connection = server.connect();
                connection.send(with_body("POST", "/v1/pets", KEY, &key(id), &pet(id)));
                assert_eq!(
                    connection
                        .reply()
                        .expect(201)
                        .header("Idempotency-Replayed"),
                    None
                );
            }
        }
    }
    assert!(
        refused > 50 && done > 0,
        "{refused} refused, {done} carried out"
    );
    let twice = "SELECT count(*) FROM (SELECT 1 FROM pets WHERE name LIKE '%-%' GROUP BY name HAVING count(*) > 1)";
    assert_eq!(other.query_row(twice, [], |row| row.get(0)), Ok(0));
}
