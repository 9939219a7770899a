//! Too many clients, too few descriptors.

use std::os::unix::process::CommandExt;
use std::process::Command;

use crate::client::{Connection, post};
use crate::harness::{KEY, Server};
use crate::wait::wait_until;

#[test]
fn newcomer_takes_the_place_of_the_longest_idle() {
    let server = Server::start_with(|command| command.args(["--max-connections", "3"]));
    let mut inside: Vec<Connection> = (0..3).map(|_| server.connect()).collect();
    inside.iter_mut().for_each(|connection| drop(connection.get("/v1/pets", KEY).expect(200).clone()));
    inside[0].get("/v1/pets", KEY).expect(200);
    server.get("/v1/pets").expect(200);
    inside[1].expect_end();
    inside[0].get("/v1/pets", KEY).expect(200);
    inside[2].get("/v1/pets", KEY).expect(200);
}

#[test]
fn one_connection_too_many_is_503_and_room_comes_back() {
    let server = Server::start_with(|command| command.args(["--max-connections", "3"]));
    // A client whose request is being handled is not closed to make room.
    let other = rusqlite::Connection::open(server.folder.database()).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let mut inside: Vec<Connection> = (0..3).map(|_| server.connect()).collect();
    inside.iter_mut().for_each(|connection| drop(connection.get("/v1/pets", KEY).expect(200).clone()));
    for connection in &mut inside {
        connection.send(post("/v1/pets", KEY, r#"{"name":"x","categoryId":1}"#));
    }
    let mut outside = server.connect();
    let reply = outside.reply();
    reply.expect_error(503, "overloaded", "connections");
    assert_eq!(reply.header("Connection"), Some("close"));
    outside.end_sending();
    outside.expect_end();
    other.execute_batch("COMMIT").unwrap();
    inside.iter_mut().for_each(|connection| drop(connection.reply().expect(201).clone()));
    server.get("/v1/pets").expect(200);
}

#[test]
fn thousand_idle_connections_cost_no_threads() {
    let server = Server::start();
    let threads = || std::fs::read_dir(format!("/proc/{}/task", server.pid())).unwrap().count();
    server.get("/v1/pets").expect(200);
    let before = threads();
    let idle: Vec<Connection> = (0..1000).map(|_| server.connect()).collect();
    server.get("/v1/pets").expect(200);
    assert_eq!(threads(), before);
    drop(idle);
}

/// Starts the server with a limit of open files, which a shell sets.
fn start_with_descriptors(count: u32) -> Server {
    Server::start_with(|command| {
        let program = command.get_program().to_owned();
        let words: Vec<_> = command.get_args().map(|word| word.to_owned()).collect();
        let variables: Vec<_> =
            command.get_envs().filter_map(|(k, v)| Some((k.to_owned(), v?.to_owned()))).collect();
        *command = Command::new("/bin/sh");
        command.arg("-c").arg(format!("ulimit -n {count}; exec \"$0\" \"$@\"")).arg(program).args(words);
        command.env_clear().envs(variables).arg0("sh");
        command
    })
}

#[test]
fn few_descriptors_are_enough_and_never_deafen() {
    let server = start_with_descriptors(80);
    let crowd: Vec<Connection> = (0..200).map(|_| server.connect()).collect();
    drop(crowd);
    // The server notices gradually that they have left.
    wait_until("room after the crowd has left", || server.get("/v1/pets").status != 503);
    server.create(r#"{"name":"x","categoryId":1}"#).expect(201);
    let logged = server.stop();
    assert!(logged.contains(" connections: the process may open only 80 files"), "{logged}");
}

#[test]
fn descriptors_that_run_out_later_are_survived() {
    let server = Server::start();
    let prlimit = |count: &str| {
        let words = ["--pid", &server.pid().to_string(), &format!("--nofile={count}:")];
        assert!(Command::new("prlimit").args(words).status().unwrap().success());
    };
    server.get("/v1/pets").expect(200);
    prlimit("60");
    // The longest idle client makes room, so the newest one gets in.
    let crowd: Vec<Connection> = (0..100).map(|_| server.connect()).collect();
    server.create(r#"{"name":"x","categoryId":1}"#).expect(201);
    drop(crowd);
    let logged = server.stop();
    assert_eq!(logged.matches("cannot accept connections").count(), 1, "{logged}");
}
