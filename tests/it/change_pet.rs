//! `PATCH` and `DELETE` of a pet, with and without `If-Match` (RFC 5789, RFC 7396, RFC 9110, section 13.1.1).

use std::sync::Barrier;

use support::client::{Reply, with_body};
use support::harness::{KEY, Server, add_key, change};

const REX: &str = r#"{"name":"Rex","categoryId":3,"status":"available"}"#;

/// A service with the experimental operations and one pet.
fn server() -> Server {
    let server = Server::start_with(|command| command.arg("--experimental"));
    server.create(REX).expect(201);
    server
}

fn ask(server: &Server, method: &str, target: &str, fields: &str, body: &str) -> Reply {
    let mut connection = server.connect();
    connection.send(with_body(method, target, KEY, fields, body));
    connection.reply_to(method)
}

fn patch(server: &Server, target: &str, fields: &str, body: &str) -> Reply {
    ask(server, "PATCH", target, fields, body)
}

fn tag(reply: &Reply) -> String {
    reply.expect(200).header("ETag").expect("a tag").to_owned()
}

#[test]
fn members_that_are_given_change_and_the_others_stay() {
    let server = server();
    for (body, pet) in [
        (
            r#"{"status":"sold"}"#,
            r#"{"id":1,"name":"Rex","categoryId":3,"status":"sold"}"#,
        ),
        (
            r#"{"status":null,"x":[]}"#,
            r#"{"id":1,"name":"Rex","categoryId":3}"#,
        ),
        (
            r#"{"name":"","id":9}"#,
            r#"{"id":1,"name":"","categoryId":3}"#,
        ),
        (
            r#"{"categoryId":-5e0}"#,
            r#"{"id":1,"name":"","categoryId":-5}"#,
        ),
        ("{}", r#"{"id":1,"name":"","categoryId":-5}"#),
    ] {
        for fields in [
            "Content-Type: application/merge-patch+json\r\n",
            "Content-Type: application/json\r\n",
        ] {
            let reply = patch(&server, "/v1/pets/1", fields, body);
            assert_eq!(String::from_utf8_lossy(&reply.expect(200).body), pet);
            let got = server.get("/v1/pets/1");
            assert_eq!(
                (&got.body, got.header("ETag")),
                (&reply.body, reply.header("ETag"))
            );
            assert_eq!(reply.header("Deprecation"), None);
        }
    }
    assert_eq!(server.get("/v1/pets?status=available").body, b"[]");
}

#[test]
fn wrong_changes_are_refused_and_change_nothing() {
    let server = server();
    let before = server.get("/v1/pets/1").body;
    for (body, code, named) in [
        ("", "invalid_json", "'name', 'categoryId' or 'status'"),
        ("null", "invalid_json", "one JSON object"),
        (
            r#"{"name":null}"#,
            "invalid_member",
            "'name' must be a string, not null",
        ),
        (r#"{"categoryId":null}"#, "invalid_member", "'categoryId'"),
        (
            r#"{"status":"gone"}"#,
            "invalid_member",
            "'available', 'pending' or 'sold', or null",
        ),
        (
            r#"{"status":"sold","status":"sold"}"#,
            "duplicate_member",
            "'status'",
        ),
        (
            r#"{"Status":"sold"}"#,
            "invalid_member",
            "with 'name', 'categoryId' or 'status'",
        ),
        (
            r#"{"id":1,"stat\u0075s ":1}"#,
            "invalid_member",
            "No field is known",
        ),
    ] {
        patch(&server, "/v1/pets/1", "", body).expect_error(400, code, named);
    }
    for id in ["9", "x", "9223372036854775808", "%31x"] {
        let target = format!("/v1/pets/{id}");
        for fields in ["", "If-Match: *\r\n"] {
            patch(&server, &target, fields, "{}").expect_error(
                404,
                "not_found",
                "no pet with this id",
            );
            ask(&server, "DELETE", &target, fields, "").expect_error(
                404,
                "not_found",
                "no pet with this id",
            );
        }
    }
    let text = patch(&server, "/v1/pets/1", "Content-Type: text/plain\r\n", "{}");
    let message = "must be application/merge-patch+json or application/json";
    text.expect_error(415, "unsupported_media_type", message);
    assert_eq!(
        text.header("Accept-Patch"),
        Some("application/merge-patch+json")
    );
    patch(&server, "/v1/pets/1", "Content-Encoding: gzip\r\n", "{}").expect(415);
    let reader = add_key(&server.folder.database(), &["reader", "--read-only"]);
    for method in ["PATCH", "DELETE"] {
        let mut connection = server.connect();
        connection.send(with_body(method, "/v1/pets/1", &reader, "", "{}"));
        connection
            .reply()
            .expect_error(403, "insufficient_scope", "read-only");
        connection.send(format!("{method} /v1/pets/1 HTTP/1.1\r\nHost: h\r\n\r\n"));
        connection
            .reply()
            .expect_error(401, "unauthorized", "API key");
    }
    assert_eq!(server.get("/v1/pets/1").body, before);
}

#[test]
fn change_is_made_only_to_the_pet_that_the_client_knows() {
    let server = server();
    let known = tag(&server.get("/v1/pets/1"));
    let altered = format!("Send it as it is, with its quotes: {known}.");
    let current = known.trim_matches('"');
    for (other, why) in [
        ("\"x\"", "does not meet If-Match"),
        ("", "does not meet If-Match"),
        ("x", "does not meet If-Match"),
        ("\"x\", W/\"y\"", "does not meet If-Match"),
        // As nginx, Apache, and clients without quotes send it.
        (&format!("W/{known}"), &altered),
        (&format!("\"x\", \"{current}-gzip\""), &altered),
        (current, &altered),
    ] {
        let fields = format!("If-Match: {other}\r\n");
        for method in ["PATCH", "DELETE"] {
            let refused = ask(&server, method, "/v1/pets/1", &fields, r#"{"name":"Tom"}"#);
            refused.expect_error(412, "precondition_failed", why);
        }
    }
    for unwanted in [&*known, "*", &format!("\"x\", W/{known}")] {
        let fields = format!("If-Match: {known}\r\nIf-None-Match: {unwanted}\r\n");
        for method in ["PATCH", "DELETE"] {
            let refused = ask(&server, method, "/v1/pets/1", &fields, r#"{"name":"Tom"}"#);
            let why =
                "or If-None-Match. If If-Match has an earlier ETag, the pet was changed since";
            refused.expect_error(412, "precondition_failed", why);
        }
    }
    patch(&server, "/v1/pets/1", "If-None-Match: \"x\"\r\n", "{}").expect(200);
    for lines in [
        "If-Match: \"x\"\r\nIf-Match: *\r\n",
        "If-Match: *\r\nIf-Match: \"x\"\r\n",
    ] {
        patch(&server, "/v1/pets/1", lines, "{}").expect(412);
    }
    let sold = r#"{"status":"sold"}"#;
    let fields = format!("If-Match: \"x\" , {known}\r\n");
    let first = patch(&server, "/v1/pets/1", &fields, sold);
    patch(&server, "/v1/pets/1", &fields, sold).expect(412);
    let fields = format!("If-Match: \"x\"\r\nIf-Match: {}\r\n", tag(&first));
    patch(&server, "/v1/pets/1", &fields, r#"{"name":"Tom"}"#).expect(200);
    patch(&server, "/v1/pets/1", "If-Match: *\r\n", sold).expect(200);
    ask(&server, "DELETE", "/v1/pets/1", &fields, "").expect(412);
    let fields = format!("If-Match: {}\r\n", tag(&server.get("/v1/pets/1")));
    assert_eq!(
        ask(&server, "DELETE", "/v1/pets/1", &fields, "{}")
            .expect(204)
            .body,
        b""
    );
    ask(&server, "DELETE", "/v1/pets/1", &fields, "").expect(404);
    assert_eq!(server.create(REX).expect(201).json()["id"], 2);
}

#[test]
fn of_many_buyers_with_one_tag_one_gets_the_pet() {
    const BUYERS: usize = 16;
    let server = server();
    for round in 1..=5 {
        let target = format!("/v1/pets/{round}");
        let fields = format!("If-Match: {}\r\n", tag(&server.get(&target)));
        let start = Barrier::new(BUYERS);
        let buy = |buyer: usize| {
            let mut connection = server.connect();
            start.wait();
            let body = format!(r#"{{"name":"of {buyer}"}}"#);
            connection.send(with_body("PATCH", &target, KEY, &fields, &body));
            connection.reply().status
        };
        let mut statuses = std::thread::scope(|scope| {
            let buyers: Vec<_> = (0..BUYERS)
                .map(|buyer| scope.spawn(move || buy(buyer)))
                .collect();
            buyers
                .into_iter()
                .map(|buyer| buyer.join().unwrap())
                .collect::<Vec<_>>()
        });
        statuses.sort_unstable();
        let mut expected = vec![412; BUYERS];
        expected[0] = 200;
        assert_eq!(statuses, expected);
        server.create(REX).expect(201);
    }
}

#[test]
fn change_of_another_program_counts() {
    let server = server();
    let fields = format!("If-Match: {}\r\n", tag(&server.get("/v1/pets/1")));
    change(
        &server.folder.database(),
        "UPDATE pets SET status = 'pending'",
    );
    patch(&server, "/v1/pets/1", &fields, r#"{"status":"sold"}"#).expect(412);
}

#[test]
fn change_waits_for_the_lock_of_another_program() {
    let server = server();
    let lock = rusqlite::Connection::open(server.folder.database()).unwrap();
    lock.execute_batch("BEGIN IMMEDIATE").unwrap();
    patch(&server, "/v1/pets/1", "", r#"{"status":"sold"}"#).expect_error(
        503,
        "storage_unavailable",
        "lock",
    );
    lock.execute_batch("ROLLBACK").unwrap();
    patch(&server, "/v1/pets/1", "", r#"{"status":"sold"}"#).expect(200);
}

#[test]
fn changes_and_creates_in_one_batch_see_each_other() {
    let server = server();
    let mut connection = server.connect();
    let create = with_body("POST", "/v1/pets", KEY, "", REX);
    let sell = with_body("PATCH", "/v1/pets/2", KEY, "", r#"{"status":"sold"}"#);
    let delete = with_body("DELETE", "/v1/pets/2", KEY, "", "");
    let wrong = with_body("PATCH", "/v1/pets/1", KEY, "", "[");
    connection.send([&*create, &sell, &wrong, &delete, &sell, &delete].concat());
    let statuses: Vec<_> = (0..6).map(|_| connection.reply().status).collect();
    assert_eq!(statuses, [201, 200, 400, 204, 404, 404]);
}

#[test]
fn pet_that_a_trigger_keeps_is_not_said_to_be_changed() {
    let server = server();
    let trigger = "CREATE TRIGGER keep BEFORE UPDATE ON pets BEGIN SELECT RAISE(IGNORE); END;
        CREATE TRIGGER stay BEFORE DELETE ON pets BEGIN SELECT RAISE(IGNORE); END";
    change(&server.folder.database(), trigger);
    patch(&server, "/v1/pets/1", "", r#"{"status":"sold"}"#).expect(409);
    ask(&server, "DELETE", "/v1/pets/1", "", "").expect(409);
    assert_eq!(
        server.get("/v1/pets/1").expect(200).json()["status"],
        "available"
    );
}
