//! The admin address: its counters, and the secrets that it keeps.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;

use support::client::Connection;
use support::harness::{Folder, KEY, Server, add_key, change, run};
use support::wait::wait_until;

/// A server with an admin address, and that address.
fn start() -> (Server, std::net::SocketAddr) {
    let server = Server::start_with(|command| command.args(["--admin", "0"]));
    let admin = server.admin.unwrap();
    (server, admin)
}

pub fn metrics(address: std::net::SocketAddr) -> String {
    let mut connection = Connection::open(address);
    connection.send("GET /metrics HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n");
    let reply = connection.reply();
    assert_eq!(
        reply.header("Content-Type"),
        Some("text/plain; version=0.0.4; charset=utf-8")
    );
    String::from_utf8(reply.expect(200).body.clone()).unwrap()
}

/// The value of a metric; `None` if it is not there.
pub fn metric(server: &Server, name: &str) -> Option<i64> {
    let text = metrics(server.admin.unwrap());
    let value = text
        .lines()
        .find_map(|line| line.strip_prefix(&format!("petstore_{name} ")));
    value.map(|value| value.parse().unwrap())
}

#[test]
fn what_happens_is_counted() {
    let (server, admin) = start();
    server.fill(["Rex", "Tom"]);
    server.get("/v1/pets").expect(200);
    server.connect().get("/v1/pets", "wrong").expect(401);
    server.send("nonsense\r\n\r\n").expect(400);
    let text = metrics(admin);
    for line in [
        "petstore_requests_total{operation=\"createPet\",status=\"201\"} 2",
        "petstore_requests_total{operation=\"listPets\",status=\"200\"} 1",
        "petstore_requests_total{operation=\"none\",status=\"401\"} 1",
        "petstore_refusals_total{code=\"bad_request\"} 1",
        "petstore_failed_writes_total 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    let held = server.connect();
    wait_until("a connection to be counted", || {
        !metrics(admin).contains("petstore_connections 0\n")
    });
    drop(held);
    wait_until("no connection to be counted", || {
        metrics(admin).contains("petstore_connections 0\n")
    });
}

#[test]
fn metrics_of_the_process_are_those_of_the_system() {
    let (server, admin) = start();
    let value = |name: &str| {
        let text = metrics(admin);
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix(&format!("process_{name} ")));
        line.unwrap_or_else(|| panic!("{name}: {text}"))
            .parse::<u64>()
            .unwrap()
    };
    let before = value("open_fds");
    let _held: Vec<Connection> = (0..20).map(|_| server.connect()).collect();
    wait_until("the descriptors of 20 connections", || {
        value("open_fds") >= before + 20
    });
    assert!((1 << 20..1 << 30).contains(&value("resident_memory_bytes")));
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    assert!((now - 60..=now).contains(&value("start_time_seconds")));
}

#[test]
fn admin_address_can_be_a_unix_socket() {
    let folder = Folder::new();
    let path = folder.path().join("admin.sock");
    let words = ["--admin".to_owned(), format!("unix:{}", path.display())];
    let server = Server::start_with(|command| command.args(&words));
    let mut stream = UnixStream::connect(&path).unwrap();
    stream
        .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        .unwrap();
    let mut reply = String::new();
    stream.read_to_string(&mut reply).unwrap();
    assert!(
        reply.starts_with("HTTP/1.1 200 ") && reply.contains("\npetstore_connections "),
        "{reply}"
    );
    server.stop();
    assert!(!path.exists());
}

#[test]
fn what_alerts_look_at_is_there_with_0_from_the_start() {
    let (server, admin) = start();
    let text = metrics(admin);
    for line in [
        "petstore_refusals_total{code=\"overloaded\"} 0",
        "petstore_refusals_total{code=\"outcome_unknown\"} 0",
        "petstore_refusals_total{code=\"read_only\"} 0",
        "petstore_refusals_total{code=\"storage_unavailable\"} 0",
        "petstore_requests_total{operation=\"createPet\",status=\"503\"} 0",
        "petstore_requests_total{operation=\"listPets\",status=\"500\"} 0",
        "petstore_responses_total{status=\"503\"} 0",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}: {text}");
    }
    server.get("/healthz").expect(200);
    server
        .send("OPTIONS /v1/pets HTTP/1.1\r\nHost: h\r\n\r\n")
        .expect(204);
    let counted = metrics(admin);
    assert!(
        counted.contains("petstore_requests_total{operation=\"checkHealth\",status=\"200\"} 1\n"),
        "{counted}"
    );
    let requests = counted
        .lines()
        .filter(|line| line.starts_with("petstore_requests_total{"));
    let (mut sum, mut count) = (0, 0);
    for line in requests {
        assert!(!line.contains("204"), "no operation's: {line}");
        sum += line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
        count += 1;
    }
    let before = text
        .lines()
        .filter(|line| line.starts_with("petstore_requests_total{"))
        .count();
    assert_eq!((sum, count), (1, before + 1), "{counted}");
}

#[test]
fn sizes_and_the_first_expiry_of_a_key_without_a_successor_are_reported() {
    let (server, admin) = start();
    server.fill(["Rex"]);
    for name in ["expired", "first", "last", "rotated"] {
        add_key(&server.folder.database(), &[name]);
    }
    let rotate = ["key", "rotate", "rotated", "--overlap", "7d"];
    assert!(run(&rotate, &server.folder.database()).status.success());
    for (name, expires_at) in [
        ("expired", 5),
        ("first", 4_000_000_000_i64),
        ("last", 4_100_000_000),
    ] {
        let expire = format!("UPDATE api_keys SET expires_at = {expires_at} WHERE name = '{name}'");
        change(&server.folder.database(), &expire);
    }
    let text = metrics(admin);
    assert!(
        text.contains("earliest_key_expiry_timestamp_seconds 4000000000\n"),
        "{text}"
    );
    // The log is empty once the service has rested.
    assert!(
        !text.contains("disk_free_bytes 0\n") && text.contains("{file=\"wal\"} "),
        "{text}"
    );
}

#[test]
fn alert_on_a_key_that_expires_ends_with_what_it_advises() {
    let (server, _) = start();
    add_key(&server.folder.database(), &["ci"]);
    let soon = 4_000_000_000_i64;
    change(
        &server.folder.database(),
        &format!("UPDATE api_keys SET expires_at = {soon}"),
    );
    let expiry = || metric(&server, "earliest_key_expiry_timestamp_seconds").unwrap();
    assert_eq!(expiry(), soon);
    // Its successor expires later, and then never.
    for (date, expected) in [("2100-01-01", 4_102_444_800), ("never", 0)] {
        let rotate = ["key", "rotate", "ci", "--overlap", "7d", "--expires", date];
        assert!(run(&rotate, &server.folder.database()).status.success());
        assert_eq!(expiry(), expected, "{date}");
    }
    // It goes on for a week after a key without a successor has expired, and ends when that is revoked.
    add_key(&server.folder.database(), &["old"]);
    for (days, is_shown) in [(8, false), (6, true)] {
        let expired = "UPDATE api_keys SET expires_at = unixepoch()";
        change(
            &server.folder.database(),
            &format!("{expired} - {days} * 86400 WHERE name = 'old'"),
        );
        assert_eq!(expiry() > 0, is_shown, "{days} days");
    }
    assert!(
        run(&["key", "revoke", "old"], &server.folder.database())
            .status
            .success()
    );
    assert_eq!(expiry(), 0);
}

#[test]
fn metrics_are_not_served_to_the_page_of_another_site() {
    let (_server, admin) = start();
    let ask = |host: &str| {
        let mut connection = Connection::open(admin);
        connection.send(format!("GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        connection.reply()
    };
    for host in [
        "127.0.0.1:9090",
        "[::1]:9090",
        "localhost:9090",
        "petstore:9090",
    ] {
        ask(host).expect(200);
    }
    ask("evil.example:9090").expect_error(
        421,
        "misdirected_request",
        "--admin-host (PETSTORE_ADMIN_HOST)",
    );
}

#[test]
fn name_that_the_operator_allows_is_served() {
    let server = Server::start_with(|command| {
        command.args([
            "--admin",
            "0",
            "--admin-host",
            "Petstore.monitoring.svc, db.example.",
        ])
    });
    let ask = |target: &str, host: &str| {
        let mut connection = Connection::open(server.admin.unwrap());
        connection.send(format!("GET {target} HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        connection.reply()
    };
    for host in [
        "petstore.monitoring.svc:9090",
        "PETSTORE.monitoring.svc.",
        "db.example",
    ] {
        ask("/metrics", host).expect(200);
        #[cfg(feature = "site")]
        ask("/settings/api/project", host).expect(401);
    }
    for host in [
        "monitoring.svc",
        "x.petstore.monitoring.svc",
        "db.example.evil.example",
    ] {
        ask("/metrics", host).expect(421);
        #[cfg(feature = "site")]
        ask("/settings/api/project", host).expect_error(421, "misdirected_request", "--admin-host");
    }
}

#[cfg(feature = "site")]
#[test]
fn browser_is_led_to_the_settings_and_a_program_is_not() {
    let (mut server, admin) = start();
    let get = |target: &str, accept: &str| {
        let mut connection = Connection::open(admin);
        connection.send(format!(
            "GET {target} HTTP/1.1\r\nHost: {admin}\r\nAccept: {accept}\r\n\r\n"
        ));
        connection.reply()
    };
    let pages = "text/html,application/xhtml+xml;q=0.9,*/*;q=0.8";
    let settings = get("/", pages)
        .expect(302)
        .header("Location")
        .unwrap()
        .to_owned();
    assert_eq!(settings, "/settings/domains");
    get(&settings, pages).expect(200);
    get("/", "*/*").expect_error(404, "not_found", "path");
    get("/else", pages).expect_error(404, "not_found", "path");
    server.signal("TERM");
    let (_, printed, _) = server.ended();
    assert!(
        printed.contains(&format!("petstore settings on http://{admin}{settings}\n")),
        "{printed}"
    );
}

#[test]
fn each_address_serves_its_own() {
    let (mut server, admin) = start();
    let mut connection = Connection::open(admin);
    connection
        .get("/v1/animals", KEY)
        .expect_error(404, "not_found", "path");
    connection
        .post("/metrics", KEY, "{}")
        .expect_error(405, "method_not_allowed", "method");
    connection
        .send("BREW /metrics HTTP/1.1\r\nHost: h\r\n\r\nOPTIONS * HTTP/1.1\r\nHost: h\r\n\r\n");
    connection.reply().expect(501);
    connection.reply().expect(204);
    connection.send("nonsense\r\n\r\n");
    connection
        .reply()
        .expect_error(400, "bad_request", "request");
    server
        .connect()
        .get("/metrics", "")
        .expect_error(404, "not_found", "path");
    drop(connection);
    server.signal("TERM");
    assert_eq!(server.ended().0.code(), Some(0), "it ends with the service");
}
