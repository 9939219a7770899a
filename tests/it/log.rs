//! The access log and what stays out of it.

use crate::harness::{KEY, Server};

#[test]
fn access_log_has_one_line_a_request_and_no_secrets() {
    let server = Server::start_with(|command| command.env("RUST_LOG", "info"));
    let mut connection = server.connect();
    connection.send(format!(
        "GET /v1/pets?limit=5&key=hidden HTTP/1.1\r\nHost: h\r\nX-Request-Id: mine\r\nAuthorization: Bearer {KEY}\r\n\r\n"
    ));
    let length = connection.reply().expect(200).body.len();
    connection.send("nonsense\r\n\r\n");
    let id = connection.reply().expect(400).header("X-Request-Id").unwrap().to_owned();
    let logged = server.stop();
    let lines: Vec<&str> = logged.lines().filter(|line| line.contains("petstore::access")).collect();
    assert_eq!(lines.len(), 2, "{logged}");
    assert!(lines[0].contains(&format!(" mine GET /v1/pets 200 {length} bytes ")), "{logged}");
    assert!(lines[1].contains(&format!(" {id} - 400 ")), "{logged}");
    assert!(!logged.contains("hidden") && !logged.contains(KEY), "{logged}");
}

#[test]
fn nothing_is_logged_where_nothing_is_wrong() {
    let server = Server::start();
    server.get("/v1/pets").expect(200);
    server.get("/nowhere").expect(404);
    server.connect().get("/v1/pets", "wrong").expect(401);
    let logged = server.stop();
    let lines: Vec<&str> = logged.lines().collect();
    assert_eq!(lines.len(), 2, "{logged}");
    assert!(lines[0].contains("SIGTERM: ending") && lines[1].contains(" s: SIGTERM"), "{logged}");
}

#[test]
fn cause_of_a_failure_is_logged_with_the_identifier_of_its_request() {
    let server = Server::start();
    let database = rusqlite::Connection::open(server.folder.database()).unwrap();
    database.execute_batch("DROP TABLE pets").unwrap();
    let mut connection = server.connect();
    connection.send(format!(
        "GET /v1/pets HTTP/1.1\r\nHost: h\r\nX-Request-Id: mine\r\nAuthorization: Bearer {KEY}\r\n\r\n"
    ));
    connection.reply().expect_error(500, "internal_error", "X-Request-Id");
    let logged = server.stop();
    assert!(logged.contains("request mine: listPets: no such table: pets"), "{logged}");
}
