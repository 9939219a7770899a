//! Other programs that work on the database of a running service.

use std::fs;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::backup::{filled, succeed};
use support::client::{Connection, post};
use support::harness::{KEY, Server, change};
use support::wait::wait_until;

const REX: &str = r#"{"name":"Rex","categoryId":1}"#;

/// Creates pets until the service ends.
fn create(address: SocketAddr, taken: &AtomicUsize) {
    let mut connection = Connection::open(address);
    while connection.is_taken(post("/v1/pets", KEY, REX)) {
        let Some(reply) = connection.reply_unless_ended() else {
            return;
        };
        reply.expect(201);
        taken.fetch_add(1, Ordering::SeqCst);
        if reply.header("Connection") == Some("close") {
            return;
        }
    }
}

#[test]
fn trigger_on_pets_is_named_at_the_start() {
    let server = Server::start();
    let triggers = "CREATE TABLE log (id); CREATE TRIGGER quiet AFTER INSERT ON log BEGIN SELECT 1; END;
        CREATE TRIGGER \"of\nCRM\" AFTER INSERT ON PETS BEGIN UPDATE pets SET name = upper(name); END";
    change(&server.folder.database(), triggers);
    let server = Server::start_in(server.kill(), |command| command);
    assert_eq!(server.create(REX).expect(201).json()["name"], "Rex");
    assert_eq!(server.get("/v1/pets/1").json()["name"], "REX");
    let logged = server.stop();
    let named = r"the trigger of\nCRM can change the pets that clients send";
    assert!(
        logged.contains(named) && !logged.contains("quiet"),
        "{logged}"
    );
}

#[test]
fn work_of_others_on_the_database_disturbs_no_create() {
    let server = Server::start_in(filled(2000), |command| command);
    let (address, database) = (server.address, server.folder.database());
    let (taken, exported) = (
        AtomicUsize::new(0),
        server.folder.path().join("pets.ndjson"),
    );
    std::thread::scope(|scope| {
        scope.spawn(|| create(address, &taken));
        wait_until("a create", || taken.load(Ordering::SeqCst) > 0);
        fs::write(&exported, succeed(&["export"], &database)).unwrap();
        for (i, words) in [
            &["key", "add", "ci"][..],
            &["import", "--new-ids", exported.to_str().unwrap()],
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
            other.busy_timeout(support::wait::PATIENCE).unwrap();
            other
                .execute_batch(
                    "VACUUM; PRAGMA wal_checkpoint(RESTART); UPDATE pets SET status = 'sold'",
                )
                .unwrap();
            let before = taken.load(Ordering::SeqCst);
            wait_until("creates to go on", || {
                taken.load(Ordering::SeqCst) > before + 20
            });
        }
        server.stop();
    });
}
