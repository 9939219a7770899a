//! Alongside Litestream, which a second connection imitates here, and `scripts/test.d/litestream` under load.

use std::path::Path;

use rusqlite::Connection;

use crate::backup::succeed;
use support::harness::{Server, run};

/// Does to a database what Litestream does: makes two tables, and keeps the log with a read transaction.
struct Litestream {
    connection: Connection,
    reader: Connection,
}

impl Litestream {
    fn start(database: &Path) -> Self {
        let [connection, reader] = [(); 2].map(|()| Connection::open(database).unwrap());
        connection
            .pragma_update(None, "wal_autocheckpoint", 0)
            .unwrap();
        let tables =
            "CREATE TABLE IF NOT EXISTS _litestream_seq (id INTEGER PRIMARY KEY, seq INTEGER);
            CREATE TABLE IF NOT EXISTS _litestream_lock (id INTEGER)";
        connection.execute_batch(tables).unwrap();
        let litestream = Self { connection, reader };
        litestream.hold();
        litestream
    }

    fn hold(&self) {
        self.reader
            .execute_batch("BEGIN; SELECT count(1) FROM _litestream_seq")
            .unwrap();
    }

    /// Copies the log with the write lock held, and moves it into the file.
    fn checkpoint(&self, mode: &str) {
        self.connection
            .execute_batch("BEGIN; INSERT INTO _litestream_lock VALUES (1); ROLLBACK")
            .unwrap();
        self.reader.execute_batch("ROLLBACK").unwrap();
        let pragma = format!("PRAGMA wal_checkpoint({mode})");
        self.connection.query_row(&pragma, [], |_| Ok(())).unwrap();
        self.hold();
        let bump = "INSERT INTO _litestream_seq VALUES (1, 1) ON CONFLICT (id) DO UPDATE SET seq = seq + 1";
        self.connection.execute_batch(bump).unwrap();
    }
}

#[track_caller]
fn expect_pets(server: &Server, number: usize) {
    assert_eq!(
        server.get("/v1/pets").json().as_array().unwrap().len(),
        number
    );
}

#[test]
fn service_and_commands_work_beside_it() {
    let server = Server::start();
    server.fill(["first"]);
    let database = server.folder.database();
    let litestream = Litestream::start(&database);
    for (i, mode) in ["PASSIVE", "RESTART", "TRUNCATE"].into_iter().enumerate() {
        server.fill([mode]);
        litestream.checkpoint(mode);
        expect_pets(&server, i + 2);
    }
    let copy = server.folder.path().join("copy.db");
    succeed(&["backup", copy.to_str().unwrap()], &database);
    for file in [&database, &copy] {
        let said = succeed(&["check", file.to_str().unwrap()], &database);
        let also =
            "it also has the table _litestream_lock\nit also has the table _litestream_seq\n";
        assert!(
            said.contains("is sound: 4 pets") && said.ends_with(also),
            "{said}"
        );
    }
    // A crash and a restart beside it, and a checkpoint of its own between them.
    server.fill(["fifth"]);
    let folder = server.kill();
    litestream.checkpoint("PASSIVE");
    let server = Server::start_in(folder, |command| command);
    server.fill(["sixth"]);
    expect_pets(&server, 6);
    let folder = server.kill();
    let restore = || {
        let output = run(&["restore", copy.to_str().unwrap()], &database);
        (
            output.status.success(),
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (is_done, said) = restore();
    assert!(
        !is_done && said.contains("another process uses the database"),
        "{said}"
    );
    drop(litestream);
    let (is_done, said) = restore();
    assert!(is_done, "{said}");
    let server = Server::start_in(folder, |command| command);
    let litestream = Litestream::start(&database);
    server.fill(["fifth again"]);
    expect_pets(&server, 5);
    drop(litestream);
}
