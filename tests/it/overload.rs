//! Too many clients, too few descriptors.

use std::process::Command;

use crate::admin::metrics;
use support::client::{Connection, get, post};
use support::harness::{KEY, Server, after};
use support::wait::wait_until;

#[test]
fn newcomer_takes_the_place_of_the_longest_idle() {
    let server = Server::start_with(|command| command.args(["--max-connections", "3"]));
    let mut inside: Vec<Connection> = (0..3).map(|_| server.connect()).collect();
    inside
        .iter_mut()
        .for_each(|connection| drop(connection.get("/v1/pets", KEY).expect(200).clone()));
    inside[0].get("/v1/pets", KEY).expect(200);
    server.get("/v1/pets").expect(200);
    inside[1].expect_end();
    inside[0].get("/v1/pets", KEY).expect(200);
    inside[2].get("/v1/pets", KEY).expect(200);
}

/// More requests of one client than run out of patience during a test: each waits 5 s for the lock of another process.
const PIPELINED: usize = 12;

/// Sends the requests of clients that are not closed to make room, because one request of each is always being handled
/// while another process holds the lock of the database.
fn stay_busy(clients: &mut [Connection]) {
    let creates = post("/v1/pets", KEY, r#"{"name":"x","categoryId":1}"#).repeat(PIPELINED);
    clients
        .iter_mut()
        .for_each(|client| client.send([get("/healthz", ""), creates.clone()].concat()));
    // The creates came with the first request, so the gate has read them once that is answered.
    clients
        .iter_mut()
        .for_each(|client| drop(client.reply().expect(200).clone()));
}

/// Expects the responses. On a busy machine the first ones may have waited for the lock in vain.
#[track_caller]
fn expect_created(client: &mut Connection) {
    let mut replies = (0..PIPELINED)
        .map(|_| client.reply())
        .skip_while(|reply| reply.status == 503);
    assert!(replies.next().is_some_and(|reply| reply.status == 201));
    replies.for_each(|reply| drop(reply.expect(201).clone()));
}

#[test]
fn one_connection_too_many_is_503_and_room_comes_back() {
    let server = Server::start_with(|command| command.args(["--max-connections", "3"]));
    // A client whose request is being handled is not closed to make room.
    let other = rusqlite::Connection::open(server.folder.database()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut inside: Vec<Connection> = (0..3).map(|_| server.connect()).collect();
    inside
        .iter_mut()
        .for_each(|connection| drop(connection.get("/v1/pets", KEY).expect(200).clone()));
    stay_busy(&mut inside);
    let mut outside = server.connect();
    let reply = outside.reply();
    reply.expect_error(503, "overloaded", "connections");
    assert_eq!(reply.header("Connection"), Some("close"));
    outside.end_sending();
    outside.expect_end();
    other.execute_batch("COMMIT").unwrap();
    inside.iter_mut().for_each(expect_created);
    server.get("/v1/pets").expect(200);
}

#[test]
fn thousand_idle_connections_cost_no_threads() {
    let server = Server::start();
    let threads = || {
        std::fs::read_dir(format!("/proc/{}/task", server.pid()))
            .unwrap()
            .count()
    };
    server.get("/v1/pets").expect(200);
    let before = threads();
    let idle: Vec<Connection> = (0..1000).map(|_| server.connect()).collect();
    server.get("/v1/pets").expect(200);
    assert_eq!(threads(), before);
    drop(idle);
}

/// Starts the server with a limit of open files, which a shell sets, and with one thread that reads.
fn start_with_descriptors(count: u32, words: &[&str]) -> Server {
    Server::start_with(|command| {
        command.args(["--workers", "1"]).args(words);
        after(command, &format!("ulimit -n {count}"))
    })
}

#[test]
fn few_descriptors_are_enough_and_never_deafen() {
    let server = start_with_descriptors(80, &[]);
    let crowd: Vec<Connection> = (0..200).map(|_| server.connect()).collect();
    drop(crowd);
    // The server notices gradually that they have left.
    wait_until("room after the crowd has left", || {
        server.get("/v1/pets").status != 503
    });
    server.create(r#"{"name":"x","categoryId":1}"#).expect(201);
    let logged = server.stop();
    assert!(
        logged.contains(" connections: the process can open only 80 files"),
        "{logged}"
    );
}

/// The connections that the server promises in its log.
fn promised(logged: &str) -> usize {
    let (_, rest) = logged.split_once("accepts at most ").expect(logged);
    rest.split(' ').next().unwrap().parse().unwrap()
}

/// Everything that takes descriptors at once: as many busy clients as are promised, more that want to be refused, and a
/// crowd at the admin address.
#[track_caller]
fn promise_is_kept(count: u32, words: &[&str]) {
    let most = promised(&start_with_descriptors(count, words).stop());
    let server = start_with_descriptors(count, words);
    let at_admin: Vec<Connection> = server
        .admin
        .iter()
        .flat_map(|admin| (0..most).map(|_| Connection::open(*admin)))
        .collect();
    // A client whose request is being handled is not closed to make room.
    let other = rusqlite::Connection::open(server.folder.database()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut inside: Vec<Connection> = (0..most).map(|_| server.connect()).collect();
    stay_busy(&mut inside);
    server
        .connect()
        .reply()
        .expect_error(503, "overloaded", "connections");
    other.execute_batch("COMMIT").unwrap();
    inside.iter_mut().for_each(expect_created);
    // They are idle now, and the longest idle one makes room.
    let crowd: Vec<Connection> = (0..80).map(|_| server.connect()).collect();
    server.get("/healthz").expect(200);
    drop((at_admin, crowd, inside));
    let logged = server.stop();
    assert!(!logged.contains("cannot accept connections"), "{logged}");
}

#[test]
fn promised_connections_are_served_and_one_more_gets_its_503() {
    promise_is_kept(64, &[]);
}

#[test]
fn platform_takes_no_descriptors_from_clients() {
    promise_is_kept(
        112,
        &[
            "--platform-host",
            "sites.test",
            "--base-url",
            "http://h/v1",
            "--admin",
            "127.0.0.1:0",
        ],
    );
}

#[test]
fn memory_for_clients_is_bounded_by_its_setting() {
    let server = Server::start_with(|command| {
        command.args(["--client-memory", "4MiB", "--admin", "127.0.0.1:0"])
    });
    let unfinished = [post("/v1/pets", "none", ""), "x".repeat(60_000)].concat();
    let unfinished = unfinished.replace("Content-Length: 0", "Content-Length: 60001");
    let mut crowd: Vec<Connection> = (0..100).map(|_| server.connect()).collect();
    crowd
        .iter_mut()
        .for_each(|connection| connection.try_send(&unfinished));
    // Some give way, and small clients are served.
    let none = "petstore_refusals_total{code=\"overloaded\"} 0\n";
    wait_until("a client to give way", || {
        !metrics(server.admin.unwrap()).contains(none)
    });
    server.get("/v1/pets").expect(200);
    drop(crowd);
    let logged = server.stop();
    assert!(logged.contains(" connections with 4 MiB, "), "{logged}");
}

#[test]
fn descriptors_that_run_out_later_are_survived() {
    let server = Server::start();
    let prlimit = |count: &str| {
        let words = [
            "--pid",
            &server.pid().to_string(),
            &format!("--nofile={count}:"),
        ];
        assert!(
            Command::new("prlimit")
                .args(words)
                .status()
                .unwrap()
                .success()
        );
    };
    server.get("/v1/pets").expect(200);
    prlimit("60");
    // The longest idle client makes room, so the newest one gets in.
    let crowd: Vec<Connection> = (0..100).map(|_| server.connect()).collect();
    server.create(r#"{"name":"x","categoryId":1}"#).expect(201);
    drop(crowd);
    let logged = server.stop();
    assert_eq!(
        logged.matches("cannot accept connections").count(),
        1,
        "{logged}"
    );
}
