//! A crash loses nothing that was acknowledged. Killing the process shows this for a crash of the program. For a crash of the machine it rests on SQLite's `synchronous=FULL`; the tests check that setting.

use std::collections::{BTreeMap, HashMap};
use std::net::SocketAddr;
use std::sync::Mutex;

use support::client::{Connection, post};
use support::harness::{KEY, Server, change, run};
use support::wait::wait_until;

/// Creates pets until the server is gone; remembers each that was acknowledged.
fn create_until_killed(
    address: SocketAddr,
    thread: usize,
    acknowledged: &Mutex<BTreeMap<i64, String>>,
) {
    let mut connection = Connection::open(address);
    for i in 0.. {
        let name = format!("{thread}-{i}");
        connection.try_send(post(
            "/v1/pets",
            KEY,
            &format!(r#"{{"name":"{name}","categoryId":{i}}}"#),
        ));
        let Some(reply) = connection.whole_reply() else {
            return;
        };
        let id = reply.expect(201).json()["id"].as_i64().unwrap();
        acknowledged.lock().unwrap().insert(id, name);
    }
}

#[test]
fn acknowledged_pets_survive_a_kill() {
    let mut server = Server::start();
    let acknowledged = Mutex::new(BTreeMap::new());
    for round in 1..=3 {
        let folder = std::thread::scope(|scope| {
            // Moved in here, so that a failed assertion ends the server and the threads.
            let server = server;
            let address = server.address;
            for thread in 0..16 {
                let acknowledged = &acknowledged;
                scope.spawn(move || {
                    create_until_killed(address, round * 100 + thread, acknowledged);
                });
            }
            let enough = || acknowledged.lock().unwrap().len() >= round * 500;
            wait_until("500 more pets to be acknowledged", enough);
            server.kill()
        });
        server = Server::start_in(folder, |command| command);
        let checked = run(&["check"], &server.folder.database());
        assert!(checked.status.success(), "{checked:?}");
        let exported = run(&["export"], &server.folder.database());
        assert!(exported.status.success(), "{exported:?}");
        let pets = String::from_utf8(exported.stdout).unwrap();
        let pets = pets
            .lines()
            .map(|line| serde_json::from_str::<serde_json::Value>(line).unwrap());
        let kept: HashMap<i64, String> = pets
            .map(|pet| {
                (
                    pet["id"].as_i64().unwrap(),
                    pet["name"].as_str().unwrap().to_owned(),
                )
            })
            .collect();
        for (id, name) in acknowledged.lock().unwrap().iter() {
            assert_eq!(kept.get(id), Some(name), "pet {id}");
        }
    }
}

#[test]
fn full_disk_is_503_and_passes() {
    let server = Server::start();
    server.fill(["before"]);
    let mut connection = server.connect();
    let large = "x".repeat(60_000);
    let large = format!(r#"{{"name":"{large}","categoryId":1}}"#);
    let mut acknowledged = 1;
    // A limit on the size of files stands for a full disk.
    limit_file_size(server.pid(), "200000");
    for body in [&large, r#"{"name":"x","categoryId":1}"#] {
        let mut refused = connection.post("/v1/pets", KEY, body);
        while refused.status == 201 {
            acknowledged += 1;
            assert!(acknowledged < 1000, "the full disk takes everything");
            refused = connection.post("/v1/pets", KEY, body);
        }
        refused.expect_error(503, "storage_unavailable", "database");
    }
    connection.get("/v1/pets/1", KEY).expect(200);
    // Readiness fails as soon as creates fail; liveness does not.
    connection
        .get("/readyz", "")
        .expect_error(503, "storage_unavailable", "database");
    connection.get("/healthz", "").expect(200);
    limit_file_size(server.pid(), "unlimited");
    connection
        .post("/v1/pets", KEY, r#"{"name":"after","categoryId":1}"#)
        .expect(201);
    connection.get("/readyz", "").expect(200);
    let database = rusqlite::Connection::open(server.folder.database()).unwrap();
    let kept: i64 = database
        .query_row("SELECT count(*) FROM pets", [], |row| row.get(0))
        .unwrap();
    assert_eq!(
        kept,
        acknowledged + 1,
        "what was acknowledged is there, and nothing else"
    );
}

pub fn limit_file_size(pid: u32, size: &str) {
    let words = ["--pid", &pid.to_string(), &format!("--fsize={size}:")];
    let status = std::process::Command::new("prlimit")
        .args(words)
        .status()
        .unwrap();
    assert!(status.success());
}

#[test]
fn database_that_takes_writes_again_is_found_out() {
    let server = Server::start();
    server.fill(["before"]);
    let mut connection = server.connect();
    limit_file_size(server.pid(), "4096");
    connection
        .post("/v1/pets", KEY, r#"{"name":"x","categoryId":1}"#)
        .expect(503);
    connection.get("/readyz", "").expect(503);
    limit_file_size(server.pid(), "unlimited");
    wait_until("/readyz to see that the disk takes writes again", || {
        connection.get("/readyz", "").status == 200
    });
}

#[test]
fn lock_of_another_process_is_waited_for() {
    let server = Server::start();
    let other = rusqlite::Connection::open(server.folder.database()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut connection = server.connect();
    connection.send(post("/v1/pets", KEY, r#"{"name":"x","categoryId":1}"#));
    // Reads go on meanwhile.
    Connection::open(server.address)
        .get("/v1/pets", KEY)
        .expect(200);
    other.execute_batch("COMMIT").unwrap();
    connection.reply().expect(201);
}

#[test]
fn change_by_another_process_is_seen() {
    let server = Server::start();
    server.fill(["Rex"]);
    assert!(
        String::from_utf8(server.get("/v1/pets").body)
            .unwrap()
            .contains("Rex")
    );
    change(&server.folder.database(), "UPDATE pets SET name = 'Tom'");
    assert!(
        String::from_utf8(server.get("/v1/pets").body)
            .unwrap()
            .contains("Tom")
    );
}

#[test]
fn check_names_a_host_of_a_cluster_that_does_not_answer() {
    let server = Server::start();
    let address = server.folder.database().to_str().unwrap().to_owned();
    // Only a cluster has hosts.
    if !address.starts_with("rqlite:") {
        return;
    }
    let address = address.replacen(',', ",127.255.255.254,", 1);
    let output = run(&["check"], address.as_ref());
    let (said, error) = (
        String::from_utf8(output.stdout).unwrap(),
        String::from_utf8(output.stderr).unwrap(),
    );
    assert!(
        said.starts_with("127.255.255.254:4001 cannot be compared with the leader: "),
        "{said}"
    );
    assert_eq!(error, format!("petstore: {address} is not sound\n"));
    assert_eq!(output.status.code(), Some(1));
}
