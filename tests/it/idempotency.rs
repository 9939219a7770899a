//! `Idempotency-Key`: a create that is sent again makes no second pet.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpListener;
use std::process::{Command, Output};
use std::thread;

use serde_json::Value;

use crate::backup::succeed;
use support::client::{Reply, with_body};
use support::harness::{Folder, KEY, Server, add_key, output, run};

const REX: &str = r#"{"name":"Rex","categoryId":1,"status":"sold"}"#;

/// A create with these further header fields, each with its line end.
pub fn create(fields: &str, body: &str) -> String {
    with_body("POST", "/v1/pets", KEY, fields, body)
}

#[track_caller]
pub fn send(server: &Server, idempotency_key: &str, body: &str) -> Reply {
    let mut connection = server.connect();
    connection.send(create(
        &format!("Idempotency-Key: {idempotency_key}\r\n"),
        body,
    ));
    connection.reply_to("POST")
}

fn count(server: &Server) -> usize {
    server.connect().get_all("/v1/pets?limit=100", KEY).len()
}

#[track_caller]
fn expect_replay(reply: &Reply, first: &Reply) {
    assert_eq!((reply.status, &reply.body), (201, &first.body));
    assert_eq!(reply.header("Location"), first.header("Location"));
    assert_eq!(reply.header("Idempotency-Replayed"), Some("true"));
}

#[test]
fn create_that_is_sent_again_makes_no_second_pet() {
    let server = Server::start();
    let first = send(&server, "\"8e03978e-40d5\"", REX);
    first.expect(201);
    assert_eq!(first.header("Idempotency-Replayed"), None);
    expect_replay(&send(&server, "\"8e03978e-40d5\"", REX), &first);
    // The bare form is the same key, and other JSON the same pet.
    let other = r#"{ "status": "sold", "categoryId": 1.0, "id": 7, "name": "\u0052ex" }"#;
    expect_replay(&send(&server, "8e03978e-40d5", other), &first);
    let reused = send(&server, "8e03978e-40d5", r#"{"name":"Rex","categoryId":1}"#);
    reused.expect_error(422, "idempotency_key_reused", "Idempotency-Key");
    assert_ne!(send(&server, "another", REX).expect(201).body, first.body);
    assert_eq!(count(&server), 2);
    // After a restart as well, and whatever has become of the pet.
    let server = Server::start_in(server.kill(), |command| command);
    run(
        &["pet", "status", "1", "available"],
        &server.folder.database(),
    );
    expect_replay(&send(&server, "8e03978e-40d5", REX), &first);
    run(&["pet", "delete", "1"], &server.folder.database());
    expect_replay(&send(&server, "8e03978e-40d5", REX), &first);
    assert_eq!(count(&server), 1);
}

#[test]
fn malformed_keys_are_400() {
    let server = Server::start();
    let long = "x".repeat(256);
    for key in [
        "",
        "\"\"",
        "a b",
        "a,b",
        "a;b",
        "a\\b",
        "\"a",
        "\"a\";p=1",
        &long,
        &format!("\"{long}\""),
    ] {
        send(&server, key, REX).expect_error(400, "invalid_idempotency_key", "Idempotency-Key");
    }
    // Two that differ in other characters only must not become one.
    for key in [&b"k\xf6n"[..], "kön".as_bytes(), b"\xff", b"\"k\xe4n\""] {
        let marked = create("Idempotency-Key: KEY\r\n", REX);
        let (before, after) = marked.split_once("KEY").unwrap();
        server
            .send([before.as_bytes(), key, after.as_bytes()].concat())
            .expect_error(400, "invalid_idempotency_key", "Idempotency-Key");
    }
    server
        .send(create("Idempotency-Key: a\r\nidempotency-key: a\r\n", REX))
        .expect_error(400, "invalid_idempotency_key", "Idempotency-Key");
    assert_eq!(count(&server), 0);
    send(&server, &long[..255], REX).expect(201);
    send(&server, r#""a b, \"c\"""#, REX).expect(201);
}

#[test]
fn refused_create_may_use_its_key_again() {
    let server = Server::start();
    send(&server, "1", r#"{"name":"Rex"}"#).expect_error(400, "missing_member", "categoryId");
    let first = send(&server, "1", REX);
    first.expect(201);
    assert_eq!(first.header("Idempotency-Replayed"), None);
    // A create that would be rejected anyway is rejected first.
    send(&server, "1", "{").expect_error(400, "invalid_json", "JSON");
}

#[test]
fn key_counts_for_the_name_of_the_api_key() {
    let server = Server::start();
    let database = server.folder.database();
    let key = |words: &[&str]| succeed(words, &database).trim().to_owned();
    let (ci, app) = (
        add_key(&database, &["ci"]),
        add_key(&database, &["PETSTORE_API_KEY"]),
    );
    let ask = |key: &str| {
        server.send(with_body(
            "POST",
            "/v1/pets",
            key,
            "Idempotency-Key: 1\r\n",
            REX,
        ))
    };
    let first = ask(&ci);
    first.expect(201);
    for other in [KEY, &app] {
        assert_eq!(ask(other).expect(201).header("Idempotency-Replayed"), None);
    }
    let rotated = key(&["key", "rotate", "ci"]);
    expect_replay(&ask(&rotated), &first);
    assert_eq!(count(&server), 3);
}

#[test]
fn tries_at_once_make_one_pet_for_each_key() {
    let server = Server::start();
    let tries = thread::scope(|scope| {
        let clients: Vec<_> = (0..16)
            .map(|_| {
                scope.spawn(|| {
                    let mut connection = server.connect();
                    let requests: String = (0..20)
                        .map(|i| create(&format!("Idempotency-Key: {i}\r\n"), REX))
                        .collect();
                    connection.send(requests);
                    (0..20).map(|_| connection.reply()).collect::<Vec<_>>()
                })
            })
            .collect();
        clients
            .into_iter()
            .map(|client| client.join().unwrap())
            .collect::<Vec<_>>()
    });
    for i in 0..20 {
        let ids: Vec<Value> = tries
            .iter()
            .map(|replies| replies[i].expect(201).json()["id"].clone())
            .collect();
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        let made = tries
            .iter()
            .filter(|replies| replies[i].header("Idempotency-Replayed").is_none());
        assert_eq!(made.count(), 1);
    }
    assert_eq!(count(&server), 20);
}

#[test]
fn kill_loses_no_key() {
    let mut server = Server::start();
    let make = |server: &Server, key: usize| send(server, &key.to_string(), REX);
    let mut made: Vec<Reply> = Vec::new();
    for _ in 0..3 {
        made.extend(
            (made.len()..made.len() + 20)
                .map(|key| make(&server, key))
                .collect::<Vec<_>>(),
        );
        server = Server::start_in(server.kill(), |command| command);
    }
    for (key, first) in made.iter().enumerate() {
        assert_eq!(first.header("Idempotency-Replayed"), None);
        expect_replay(&make(&server, key), first.expect(201));
    }
}

/// The lines of the page for a shell and for Python, with this base URL. Python waits less.
fn lines_of_the_page(base: &str) -> [String; 2] {
    let page = include_str!("../../src/site/pages/retries.md");
    ["```\n", "```python\n"].map(|start| {
        let block = page
            .split_once(start)
            .unwrap()
            .1
            .split("```")
            .next()
            .unwrap();
        block
            .replace("{{base}}", base)
            .replace("sleep(max(2 ** attempt, int(pause or 0)))", "sleep(0.01)")
    })
}

/// Runs the lines as a script, which stops at the first failure.
fn run_lines([shell, python]: [String; 2]) -> [Output; 2] {
    [("sh", "-euc", shell), ("python3", "-c", python)].map(|(program, flag, lines)| {
        let folder = Folder::new();
        let mut client = Command::new(program);
        output(
            client
                .args([flag, &lines])
                .env("KEY", KEY)
                .current_dir(folder.path()),
        )
    })
}

#[test]
fn lines_of_the_page_make_one_pet_for_each_intent() {
    let server = Server::start_with(|command| command.args(["--ephemeral", "--fail", "0.3"]));
    let [shell, python] = lines_of_the_page(&format!("http://{}/v1", server.address));
    let last = python.find("intent = ").unwrap();
    let (python, call) = python.split_at(last);
    let python = format!(
        "{python}\nfor _ in range(10):\n    {}\n",
        call.trim_end().replace('\n', "\n    ")
    );
    // curl waits a second or more before it tries again.
    let shell = format!("for _ in 1 2 3 4; do\n{shell}\ndone");
    for done in run_lines([shell, python]) {
        assert!(done.status.success(), "{done:?}");
    }
    let listed = all_pets_despite_failures(&server);
    for (name, expected) in [("Rex", 4), ("Tom", 10)] {
        assert_eq!(
            listed.iter().filter(|pet| pet["name"] == name).count(),
            expected,
            "{listed:?}"
        );
    }
}

#[test]
fn lines_of_the_page_give_up_at_once_on_a_refusal_and_in_the_end_on_a_failure() {
    let server = Server::start();
    let reader = Server::start_with(|command| {
        command
            .arg("--read-only")
            .env("PETSTORE_DATABASE", server.folder.database())
    });
    let [shell, python] = lines_of_the_page(&format!("http://{}/v2", server.address));
    let [shell, python] = run_lines([shell, python]);
    assert!(
        String::from_utf8_lossy(&shell.stdout).contains("not_found"),
        "{shell:?}"
    );
    assert!(
        String::from_utf8_lossy(&python.stderr).contains("404"),
        "{python:?}"
    );
    let [_, python] = lines_of_the_page(&format!("http://{}/v1", reader.address));
    let [_, python] = run_lines(["true".to_owned(), python]);
    assert!(
        !python.status.success() && String::from_utf8_lossy(&python.stderr).contains("503"),
        "{python:?}"
    );
    assert_eq!(count(&server), 0);
}

#[test]
fn lines_of_the_page_wait_as_long_as_a_proxy_says() {
    let socket = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let page = include_str!("../../src/site/pages/retries.md");
    let lines = page
        .split_once("```python\n")
        .unwrap()
        .1
        .split("```")
        .next()
        .unwrap();
    let lines = lines.replace(
        "{{base}}",
        &format!("http://{}/v1", socket.local_addr().unwrap()),
    );
    let date = "import datetime, email.utils, sys\nprint(email.utils.format_datetime(\
        datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=100), usegmt=True))";
    let date = output(Command::new("python3").args(["-c", date]));
    let date = String::from_utf8(date.stdout).unwrap();
    let proxy = thread::spawn(move || {
        for (status, after) in [
            ("429 Too Many Requests", date.trim_end()),
            ("503 Service Unavailable", "Fri, 31 Dec 1999 23:59:59 GMT"),
            ("503 Service Unavailable", "50"),
            ("502 Bad Gateway", "soon"),
            ("201 Created", "0"),
        ] {
            let (mut client, _) = socket.accept().unwrap();
            let mut request = BufReader::new(&client);
            let head: Vec<_> = request
                .by_ref()
                .lines()
                .map(Result::unwrap)
                .take_while(|line| !line.is_empty())
                .collect();
            let length = head
                .iter()
                .find_map(|line| line.strip_prefix("Content-Length: "))
                .unwrap();
            request
                .read_exact(&mut vec![0; length.parse().unwrap()])
                .unwrap();
            let head =
                format!("HTTP/1.1 {status}\r\nConnection: close\r\nRetry-After: {after}\r\n");
            client
                .write_all(format!("{head}Content-Length: 2\r\n\r\n{{}}").as_bytes())
                .unwrap();
        }
    });
    let clock = "import time\ntime.sleep = lambda seconds: print(seconds)\n";
    let done = output(
        Command::new("python3")
            .args(["-c", &format!("{clock}{lines}")])
            .env("KEY", KEY),
    );
    assert!(done.status.success(), "{done:?}");
    proxy.join().unwrap();
    let waited = String::from_utf8(done.stdout).unwrap();
    let waited: Vec<i64> = waited.lines().map(|line| line.parse().unwrap()).collect();
    assert!((60..=100).contains(&waited[0]), "{waited:?}");
    assert_eq!(waited[1..], [2, 50, 8]);
}

/// A page of all pets, from the first of many tries that succeeds.
fn all_pets_despite_failures(server: &Server) -> Vec<Value> {
    loop {
        let mut connection = server.connect();
        connection.send(support::client::get("/v1/pets?limit=100", KEY));
        if let Some(reply) = connection
            .reply_unless_ended()
            .filter(|reply| reply.status == 200)
        {
            return reply.json().as_array().unwrap().clone();
        }
    }
}
