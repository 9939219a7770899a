//! The access log, and what must not be in it.

use std::time::Instant;

use crate::messages;
use support::client::Connection;
use support::harness::{FAILING_PETS, KEY, Server, add_key, change, run};

#[test]
fn access_log_has_one_line_a_request_and_no_secrets() {
    let server = Server::start_with(|command| command.env("RUST_LOG", "info"));
    let length = server.send(format!(
        "GET /v1/pets?limit=5&key=hidden HTTP/1.1\r\nHost: h\r\nX-Request-Id: mine\r\nAuthorization: Bearer {KEY}\r\n\r\n"
    )).expect(200).body.len();
    let id = server
        .send("nonsense\r\n\r\n")
        .expect(400)
        .header("X-Request-Id")
        .unwrap()
        .to_owned();
    let logged = server.stop();
    let lines: Vec<&str> = logged
        .lines()
        .filter(|line| line.contains("petstore::access"))
        .collect();
    assert_eq!(lines.len(), 2, "{logged}");
    assert!(
        lines[0].contains(&format!(" mine GET /v1/pets 200 {length} bytes ")),
        "{logged}"
    );
    assert!(lines[0].ends_with(" ms key=PETSTORE_API_KEY"), "{logged}");
    assert!(
        lines[1].contains(&format!(" {id} - 400 ")) && lines[1].ends_with(" ms code=bad_request"),
        "{logged}"
    );
    assert!(
        !logged.contains("hidden") && !logged.contains(KEY),
        "{logged}"
    );
}

#[test]
fn nothing_is_logged_where_nothing_is_wrong() {
    let server = Server::start();
    server.get("/v1/pets").expect(200);
    server.get("/nowhere").expect(404);
    server.connect().get("/v1/pets", "wrong").expect(401);
    let logged = server.stop();
    let lines: Vec<&str> = logged.lines().collect();
    assert_eq!(lines.len(), 3, "{logged}");
    assert!(
        lines[0].contains("listens on http://127.0.0.1:") && lines[0].contains(": new database /")
    );
    let version = format!("schema version {}, at most ", 1);
    assert!(lines[0].contains(&version), "{logged}");
    assert!(lines[1].contains("SIGTERM: finishing"), "{logged}");
    assert!(lines[2].contains(messages::ENDED_BY_SIGTERM), "{logged}");
}

#[test]
fn access_log_names_the_key_of_each_request() {
    let server = Server::start_with(|command| command.env("RUST_LOG", "petstore::access=info"));
    let database = server.folder.database();
    let [reader, ci] = ["dashboard", "ci"].map(|name| add_key(&database, &[name, "--read-only"]));
    let mut connection = server.connect();
    let reply = connection.get("/v1/pets", &reader);
    assert_eq!(reply.expect(200).header("K"), None);
    connection.post("/v1/pets", &ci, "{}").expect(403);
    connection
        .post("/v1/pets", KEY, r#"{"name":"x","categoryId":1}"#)
        .expect(201);
    connection.get("/v1/pets", "wrong").expect(401);
    connection.get("/healthz", &reader).expect(200);
    let logged = server.stop();
    let lines = logged
        .lines()
        .filter(|line| line.contains("petstore::access"));
    let told: Vec<&str> = lines
        .map(|line| line.rsplit_once(" ms").unwrap().1)
        .collect();
    let expected = [
        " key=dashboard",
        " key=ci code=insufficient_scope",
        " key=PETSTORE_API_KEY created=1",
        " code=unauthorized",
        "",
    ];
    assert_eq!(told, expected, "{logged}");
}

#[test]
fn log_of_json_has_an_object_a_line() {
    let server = Server::start_with(|command| {
        command
            .env("RUST_LOG", "info")
            .args(["--log-format", "json"])
    });
    server.get("/v1/pets?limit=1").expect(200);
    let logged = server.stop();
    let lines: Vec<serde_json::Value> = logged
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert!(
        lines
            .iter()
            .all(|line| line["time"].is_string() && line["message"].is_string()),
        "{logged}"
    );
    assert_eq!(
        (&lines[0]["level"], &lines[0]["target"]),
        (&"info".into(), &"petstore::cli::serve".into())
    );
    let access = lines
        .iter()
        .find(|line| line["target"] == "petstore::access")
        .unwrap();
    assert_eq!(
        (&access["method"], &access["path"]),
        (&"GET".into(), &"/v1/pets".into())
    );
    assert_eq!(
        (&access["status"], &access["bytes"]),
        (&200.into(), &2.into())
    );
    assert_eq!(access["key"], "PETSTORE_API_KEY");
    let is_absent = |name: &str| access.get(name).is_none();
    assert!(
        ["code", "created", "traceparent"]
            .into_iter()
            .all(is_absent),
        "{access}"
    );
    assert!(
        access["client"].is_string()
            && access["request"].is_string()
            && access["milliseconds"].is_number()
    );
}

#[test]
fn json_log_shows_failures_and_what_was_created() {
    let server = Server::start_with(|command| {
        command
            .env("RUST_LOG", "petstore::access=info")
            .args(["--log-format", "json"])
    });
    server.create(r#"{"name":"x","categoryId":1}"#).expect(201);
    server.create(r#"{"name":"x"}"#).expect(400);
    server.send("nonsense\r\n\r\n").expect(400);
    let logged = server.stop();
    let told = |line: &str| {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        ["method", "path", "key", "code", "created"].map(|name| line.get(name).cloned())
    };
    let told: Vec<_> = logged
        .lines()
        .filter(|line| line.contains("petstore::access"))
        .map(told)
        .collect();
    let known = |text: &str| Some(text.into());
    let (method, path, key) = (known("POST"), known("/v1/pets"), known("PETSTORE_API_KEY"));
    assert_eq!(
        told[0],
        [method.clone(), path.clone(), key.clone(), None, known("1")],
        "{logged}"
    );
    assert_eq!(
        told[1],
        [method, path, key, known("missing_member"), None],
        "{logged}"
    );
    assert_eq!(
        told[2],
        [None, None, None, known("bad_request"), None],
        "{logged}"
    );
}

#[test]
fn refused_write_is_logged_with_its_identifier() {
    let server = Server::start();
    let refuse =
        "CREATE TRIGGER full BEFORE INSERT ON pets BEGIN SELECT RAISE(ROLLBACK, 'full'); END";
    change(&server.folder.database(), refuse);
    let reply = server.create(r#"{"name":"x","categoryId":1}"#);
    let id = reply.header("X-Request-Id").unwrap().to_owned();
    // A cluster reports the rule's text alone, so that it is a 500 there.
    assert!([409, 500].contains(&reply.status), "{reply:?}");
    let logged = server.stop();
    assert!(logged.contains(&format!("request {id}: ")), "{logged}");
}

#[test]
fn cause_of_a_failure_is_logged_with_the_identifier_of_its_request() {
    let server = Server::start();
    server.fill(["x"]);
    change(&server.folder.database(), FAILING_PETS);
    server
        .send(format!(
            "GET /v1/pets HTTP/1.1\r\nHost: h\r\nX-Request-Id: mine\r\nAuthorization: Bearer {KEY}\r\n\r\n"
        ))
        .expect_error(500, "internal_error", "X-Request-Id");
    let logged = server.stop();
    assert!(logged.contains("request mine: listPets: "), "{logged}");
}

#[test]
fn storm_of_failures_is_not_logged_in_full() {
    let server = Server::start_with(|command| command.args(["--workers", "1"]));
    change(&server.folder.database(), "DROP TABLE pets");
    let mut connection = server.connect();
    let began = Instant::now();
    for _ in 0..50 {
        connection.get("/v1/pets", KEY).expect(503);
    }
    let seconds = began.elapsed().as_secs_f64().ceil() as usize + 1;
    drop(connection);
    let logged = server.stop();
    let count = logged.matches("listPets: ").count();
    assert!(
        (20..=20 * seconds).contains(&count),
        "{count} in {seconds} s: {logged}"
    );
    assert!(
        count == 50 || logged.contains("more failures within this second are not logged"),
        "{logged}"
    );
}

#[test]
fn access_log_has_the_fingerprint_of_a_refused_key_and_never_the_key() {
    let words = ["--admin", "127.0.0.1:0"];
    let server =
        Server::start_with(|command| command.env("RUST_LOG", "petstore::access=info").args(words));
    let database = server.folder.database();
    let add = |words: &[&str]| add_key(&database, words);
    let (boss, reader, old) = (add(&["boss", "--admin"]), add(&["reader"]), add(&["old"]));
    let expire = "UPDATE api_keys SET expires_at = 1 WHERE name = 'old'";
    change(&database, expire);
    let listed = run(&["key", "list", "--json"], &database);
    let listed: serde_json::Value = serde_json::from_slice(&listed.stdout).unwrap();
    let old_one = listed
        .as_array()
        .unwrap()
        .iter()
        .find(|key| key["name"] == "old")
        .unwrap();
    let fingerprint = old_one["fingerprint"].as_str().unwrap();
    let unknown = format!("petstore_{}", "0".repeat(64));
    // No key, and perhaps a password.
    let password = "correct-horse";
    let mut connection = server.connect();
    for key in [&old, &unknown, password] {
        connection.get("/v1/pets", key).expect(401);
    }
    let mut admin = Connection::open(server.admin.unwrap());
    for (key, status) in [(&boss, 200), (&reader, 403), (&old, 401)] {
        admin.send(format!(
            "GET /settings/api/project HTTP/1.1\r\nHost: 127.0.0.1\r\nAuthorization: Bearer {key}\r\n\r\n"
        ));
        admin.reply().expect(status);
    }
    let logged = server.stop();
    let named: Vec<&str> = logged
        .lines()
        .filter_map(|line| line.split_once(" ms"))
        .map(|(_, n)| n.split(" code=").next().unwrap())
        .collect();
    let expired = format!(" key=expired:{fingerprint}");
    // The first eight digits of `printf %s petstore_000… | sha256sum`.
    let no_such = " key=unknown:6e5cc001";
    assert_eq!(
        named,
        [&expired, no_such, "", " key=boss", " key=reader", &expired],
        "{logged}"
    );
    for secret in [&boss, &reader, &old, &unknown, password] {
        assert!(!logged.contains(secret), "{logged}");
    }
}

#[test]
fn log_has_the_name_that_a_certificate_was_asked_for() {
    let words = ["--admin", "127.0.0.1:0"];
    let server =
        Server::start_with(|command| command.env("RUST_LOG", "petstore::admin=info").args(words));
    let mut admin = Connection::open(server.admin.unwrap());
    for name in ["pets.example.com", "a%0Ab%1B"] {
        admin
            .get(&format!("/internal/tls-allowed?domain={name}"), "")
            .expect(404);
    }
    let logged = server.stop();
    for shown in [
        ": pets.example.com may not have a certificate\n",
        ": a\\nb\\u{1b} may not have a certificate\n",
    ] {
        assert!(logged.contains(shown), "{logged}");
    }
}

#[test]
fn access_log_has_a_well_formed_traceparent() {
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    for (format, expected) in [
        ("text", format!(" ms traceparent={trace}\n")),
        ("json", format!(r#","traceparent":"{trace}"}}"#)),
    ] {
        let server = Server::start_with(|command| {
            command
                .env("RUST_LOG", "petstore::access=info")
                .args(["--log-format", format])
        });
        server
            .ask("GET", "/healthz", &format!("Traceparent: {trace}\r\n"))
            .expect(200);
        server
            .ask(
                "GET",
                "/healthz",
                &format!("traceparent: {}\r\n", trace.to_uppercase()),
            )
            .expect(200);
        let twice = format!("traceparent: {trace}\r\n").repeat(2);
        server.ask("GET", "/healthz", &twice).expect(200);
        let logged = server.stop();
        assert_eq!(logged.matches(&expected).count(), 1, "{logged}");
        assert_eq!(
            logged
                .lines()
                .filter(|line| line.contains("4bf92f35"))
                .count(),
            1,
            "{logged}"
        );
    }
}

#[test]
fn line_of_a_long_target_is_bounded() {
    let server = Server::start_with(|command| command.env("RUST_LOG", "info"));
    for long in ["x".repeat(7000), "%C3%A9".repeat(1000)] {
        server.get(&format!("/{long}")).expect(404);
    }
    let logged = server.stop();
    let lines: Vec<&str> = logged
        .lines()
        .filter(|line| line.contains("petstore::access"))
        .collect();
    assert_eq!(lines.len(), 2, "{logged}");
    assert!(
        lines
            .iter()
            .all(|line| line.contains("… 404 ") && line.len() < 1300),
        "{logged}"
    );
}
