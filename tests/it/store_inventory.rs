//! `GET /v1/store/inventory`: the numbers are right, even while other programs change the database.

use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use crate::admin::metrics;
use support::client::{Connection, post};
use support::harness::{Folder, KEY, Server, change};
use support::wait::wait_until;

const PATH: &str = "/v1/store/inventory";
fn experimental(command: &mut Command) -> &mut Command {
    command.env("PETSTORE_EXPERIMENTAL", "true")
}

fn start() -> Server {
    Server::start_with(experimental)
}

fn counts(server: &Server) -> Value {
    server.get(PATH).expect(200).json()
}

/// Expects these numbers. On a busy machine a count takes long, and is then used for a while.
#[track_caller]
fn expect(server: &Server, expected: &Value) {
    wait_until("the numbers", || counts(server) == *expected);
}

/// The numbers of available, pending and sold pets, and of those without a status.
fn numbers(numbers: [i64; 4]) -> Value {
    let [available, pending, sold, unset] = numbers;
    let total: i64 = numbers.iter().sum();
    json!({"available": available, "pending": pending, "sold": sold, "unset": unset, "total": total})
}

/// The numbers that SQLite counts.
fn counted(database: &Path) -> Value {
    let connection = rusqlite::Connection::open(database).unwrap();
    let of = |condition: &str| {
        let sql = format!("SELECT count(*) FROM pets WHERE status {condition}");
        connection
            .query_row(&sql, [], |row| row.get::<_, i64>(0))
            .unwrap()
    };
    numbers(["= 'available'", "= 'pending'", "= 'sold'", "IS NULL"].map(of))
}

/// A create, answered with 201.
fn add(connection: &mut Connection, status: &str) {
    let member = if status.is_empty() {
        String::new()
    } else {
        format!(r#","status":"{status}""#)
    };
    let body = format!(r#"{{"name":"Rex","categoryId":1{member}}}"#);
    connection.post("/v1/pets", KEY, &body).expect(201);
}

#[test]
fn created_pets_are_counted() {
    let server = start();
    expect(&server, &numbers([0, 0, 0, 0]));
    let mut connection = server.connect();
    let mut expected = [0; 4];
    for round in 0..40 {
        add(
            &mut connection,
            ["available", "pending", "sold", ""][round % 4],
        );
        expected[round % 4] += 1;
        expect(&server, &numbers(expected));
    }
    let reply = server.get(PATH);
    let tag = reply.header("ETag").unwrap();
    assert_eq!(
        reply.header("Cache-Control"),
        Some("private, no-cache, no-transform")
    );
    assert!(["0", "1"].contains(&reply.header("Age").unwrap()));
    assert_eq!(
        reply.body,
        br#"{"available":10,"pending":10,"sold":10,"unset":10,"total":40}"#
    );
    let fields = format!("Authorization: Bearer {KEY}\r\nIf-None-Match: {tag}\r\n");
    server.ask("GET", PATH, &fields).expect(304);
    connection.get(PATH, "no-key").expect(401);
}

#[test]
fn change_by_another_program_is_counted() {
    let server = start();
    let database = server.folder.database();
    server.fill(["Rex", "Tom", "Ada"]);
    let mut connection = server.connect();
    counts(&server);
    for sql in [
        "UPDATE pets SET status = 'sold' WHERE id = 1",
        "DELETE FROM pets WHERE id = 2",
        "INSERT INTO pets (name, category_id) VALUES ('Kim', 1)",
    ] {
        change(&database, sql);
        expect(&server, &counted(&database));
        add(&mut connection, "sold");
        expect(&server, &counted(&database));
    }
}

#[test]
fn numbers_are_right_after_any_changes_of_many() {
    let server = start();
    let (address, database) = (server.address, server.folder.database());
    for round in 0..3_usize {
        let stop = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for client in 0..3_usize {
                let stop = &stop;
                scope.spawn(move || {
                    let mut connection = Connection::open(address);
                    let mut i = client;
                    while !stop.load(Ordering::SeqCst) {
                        connection.send(post(
                            "/v1/pets",
                            KEY,
                            r#"{"name":"a","categoryId":1,"status":"sold"}"#,
                        ));
                        connection.reply().expect(201);
                        if i % 5 == 0 {
                            let now = connection.get(PATH, KEY).expect(200).json();
                            let parts = ["available", "pending", "sold", "unset"]
                                .map(|of| now[of].as_i64().unwrap());
                            assert!(parts.iter().all(|part| *part >= 0), "{now}");
                            assert_eq!(now["total"], parts.iter().sum::<i64>());
                        }
                        i += 1;
                    }
                });
            }
            // In the second round, only the service writes.
            for seed in 0..if round == 1 { 0 } else { 2 } {
                let (stop, database) = (&stop, &database);
                scope.spawn(move || {
                    let statuses = ["'available'", "'pending'", "'sold'", "NULL"];
                    let mut i = seed;
                    while !stop.load(Ordering::SeqCst) {
                        i = (i * 7919 + 31) % 65_537;
                        let status = statuses[i % 4];
                        change(database, &match i % 3 {
                            0 => format!("PRAGMA busy_timeout = 5000; INSERT INTO pets (name, category_id, status) VALUES ('b', 1, {status})"),
                            1 => format!("PRAGMA busy_timeout = 5000; UPDATE pets SET status = {status} WHERE id % 50 = {}", i % 50),
                            _ => format!("PRAGMA busy_timeout = 5000; DELETE FROM pets WHERE id % 40 = {}", i % 40),
                        });
                        std::thread::sleep(Duration::from_millis(i as u64 % 60));
                    }
                });
            }
            std::thread::sleep(Duration::from_secs(2));
            stop.store(true, Ordering::SeqCst);
        });
        expect(&server, &counted(&database));
    }
}

#[test]
fn metrics_and_check_have_the_numbers() {
    let server = Server::start_with(|command| experimental(command).args(["--admin", "0"]));
    let database = server.folder.database();
    let admin = server.admin.unwrap();
    let mut connection = server.connect();
    ["sold", "sold", ""]
        .iter()
        .for_each(|status| add(&mut connection, status));
    let shows = |sample: &str| metrics(admin).lines().any(|line| line == sample);
    wait_until("the metrics", || shows(r#"petstore_pets{status="sold"} 2"#));
    assert!(
        shows(r#"petstore_pets{status="available"} 0"#)
            && shows(r#"petstore_pets{status="unset"} 1"#)
    );
    add(&mut connection, "available");
    wait_until("the next count", || {
        shows(r#"petstore_pets{status="available"} 1"#)
    });
    let age = metrics(admin);
    let age = age
        .lines()
        .find_map(|line| line.strip_prefix("petstore_pets_age_seconds "));
    assert!(age.unwrap().parse::<f64>().unwrap() < 60.0);
    change(&database, "UPDATE pets SET status = 'pending'");
    wait_until("the change of another program", || {
        shows(r#"petstore_pets{status="pending"} 4"#)
    });
}

#[test]
fn services_that_only_read_count_too() {
    let server = start();
    let mut connection = server.connect();
    add(&mut connection, "sold");
    let database = server.folder.database();
    let reads = |command: &mut Command| {
        experimental(command)
            .arg("--read-only")
            .env("PETSTORE_DATABASE", &database);
    };
    let reader = Server::start_in(Folder::new(), |command| {
        reads(command);
        command
    });
    expect(&reader, &numbers([0, 0, 1, 0]));
    add(&mut connection, "");
    expect(&reader, &numbers([0, 0, 1, 1]));
    drop(reader);
    // A restart begins with the numbers of the file.
    let server = Server::start_in(server.kill(), experimental);
    expect(&server, &numbers([0, 0, 1, 1]));
}
