//! Another process locks the database for longer than a create waits.

use rusqlite::Connection;

use crate::admin::metric;
use crate::messages;
use support::client::{Connection as Client, post};
use support::harness::{KEY, Server};

const REX: &str = r#"{"name":"Rex","categoryId":1}"#;

#[test]
fn creates_that_never_get_the_lock_are_refused_and_counted_and_the_service_ends() {
    let mut server = Server::start_with(|command| command.args(["--admin", "127.0.0.1:0"]));
    let other = Connection::open(server.folder.database()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut clients: Vec<Client> = (0..4).map(|_| server.connect()).collect();
    for client in &mut clients {
        client.send(post("/v1/pets", KEY, REX));
    }
    server.get("/healthz").expect(200);
    // The lock of an import, for instance: the disk takes writes.
    server.get("/readyz").expect(200);
    for client in &mut clients {
        client
            .reply()
            .expect_error(503, "storage_unavailable", messages::LOCKED);
    }
    assert_eq!(metric(&server, "failed_writes_total"), Some(4));
    assert_eq!(
        metric(&server, "refusals_total{code=\"storage_unavailable\"}"),
        Some(4)
    );
    // One more waits for the lock when the service gets SIGTERM.
    clients[0].send(post("/v1/pets", KEY, REX));
    server.signal("TERM");
    clients[0]
        .reply()
        .expect_error(503, "storage_unavailable", messages::LOCKED);
    drop(clients);
    let (status, _, log) = server.ended();
    assert!(status.success(), "{log}");
    assert!(
        log.contains("another process did not release its lock on the database in time"),
        "{log}"
    );
    drop(other);
}
