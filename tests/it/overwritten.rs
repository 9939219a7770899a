//! A database file that another program than SQLite writes over under a running service.

use std::fs;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::backup::{filled, refuse, succeed};
use crate::client::{Connection, post};
use crate::harness::{Folder, KEY, Server};
use crate::wait::wait_until;

const REX: &str = r#"{"name":"Rex","categoryId":1}"#;

/// Creates animals until the service ends. None may be taken after one was refused.
fn create(address: SocketAddr, taken: &AtomicUsize) {
    let mut is_refused = false;
    let mut connection = Connection::open(address);
    while connection.is_taken(post("/v1/pets", KEY, REX)) {
        let Some(reply) = connection.reply_unless_ended() else { return };
        if reply.status == 201 {
            assert!(!is_refused, "a create is taken after one was refused");
            taken.fetch_add(1, Ordering::SeqCst);
        } else {
            reply.expect_error(503, "storage_unavailable", "is damaged");
            is_refused = true;
        }
        if reply.header("Connection") == Some("close") {
            return;
        }
    }
}

/// Has a service take creates while its database is written over, and returns what is left.
fn write_over(write: impl FnOnce(&Path)) -> Folder {
    let mut server = Server::start_in(filled(2000), |command| command);
    let (address, database) = (server.address, server.folder.database());
    let taken = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| create(address, &taken));
        }
        wait_until("creates", || taken.load(Ordering::SeqCst) > 50);
        write(&database);
        let (status, _, log) = server.ended();
        assert_eq!(status.code(), Some(1), "{log}");
        let lines = log.lines().filter(|line| line.contains("is damaged")).count();
        assert_eq!(lines, 2, "one line in the log, and the reason at the end: {log}");
        server
    })
    .folder
}

#[test]
fn emptied_file_takes_no_creates_and_keeps_its_log() {
    let folder = write_over(|path| fs::File::options().write(true).open(path).unwrap().set_len(0).unwrap());
    refuse(&["--listen", "127.0.0.1:0"], &folder.database(), "is not the log of");
    assert_ne!(fs::metadata(folder.path().join("pets.db-wal")).unwrap().len(), 0);
}

#[test]
fn copy_of_another_database_over_the_file_takes_no_creates() {
    let other = filled(100);
    let copy = other.path().join("copy.db");
    succeed(&["backup", copy.to_str().unwrap()], &other.database());
    let folder = write_over(|path| assert_ne!(fs::copy(&copy, path).unwrap(), 0));
    refuse(&["--listen", "127.0.0.1:0"], &folder.database(), "is not the log of");
}

#[test]
fn older_copy_over_the_file_of_a_service_at_rest_is_noticed() {
    let mut server = Server::start();
    let database = server.folder.database();
    let log = server.folder.path().join("pets.db-wal");
    let copy = server.folder.path().join("copy.db");
    for name in ["old", "new"] {
        server.fill([name]);
        wait_until("the write-ahead log to be emptied", || fs::metadata(&log).unwrap().len() == 0);
        if name == "old" {
            fs::copy(&database, &copy).unwrap();
        }
    }
    fs::copy(&copy, &database).unwrap();
    let (status, _, said) = server.ended();
    assert_eq!(status.code(), Some(1), "{said}");
    assert!(said.contains("was written over by another program"), "{said}");
    // The log holds nothing, so that the copy is served as it is.
    Server::start_in(server.folder, |command| command).connect().get("/v1/pets/1", KEY).expect(200);
}

#[test]
fn work_of_others_on_the_database_is_not_taken_for_damage() {
    let server = Server::start_in(filled(2000), |command| command);
    let (address, database) = (server.address, server.folder.database());
    let (taken, exported) = (AtomicUsize::new(0), server.folder.path().join("pets.ndjson"));
    std::thread::scope(|scope| {
        scope.spawn(|| create(address, &taken));
        wait_until("a create", || taken.load(Ordering::SeqCst) > 0);
        fs::write(&exported, succeed(&["export"], &database)).unwrap();
        for (i, words) in [
            &["key", "add", "ci"][..],
            &["import", exported.to_str().unwrap()],
            &["pet", "delete", "5"],
            &["key", "revoke", "ci"],
            &["check"],
        ]
        .into_iter()
        .enumerate()
        {
            succeed(words, &database);
            let copy = server.folder.path().join(format!("copy-{i}"));
            succeed(&["backup", copy.to_str().unwrap()], &database);
            let other = rusqlite::Connection::open(&database).unwrap();
            other.busy_timeout(crate::wait::PATIENCE).unwrap();
            other
                .execute_batch("VACUUM; PRAGMA wal_checkpoint(RESTART); UPDATE pets SET status = 'sold'")
                .unwrap();
            let before = taken.load(Ordering::SeqCst);
            wait_until("creates to go on", || taken.load(Ordering::SeqCst) > before + 20);
        }
        server.stop();
    });
}
