//! `Idempotency-Key`: a create that is sent again makes no second pet.

use std::process::{Command, Output};
use std::thread;

use serde_json::Value;

use crate::backup::succeed;
use crate::client::{Reply, with_body};
use crate::harness::{Folder, KEY, Process, Server, add_key, output, run};

const REX: &str = r#"{"name":"Rex","categoryId":1,"status":"sold"}"#;

/// A create with these further header fields, each with its line end.
pub fn create(fields: &str, body: &str) -> String {
    with_body("POST", "/v1/pets", KEY, fields, body)
}

#[track_caller]
pub fn send(server: &Server, idempotency_key: &str, body: &str) -> Reply {
    let mut connection = server.connect();
    connection.send(create(&format!("Idempotency-Key: {idempotency_key}\r\n"), body));
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
    run(&["pet", "status", "1", "available"], &server.folder.database());
    expect_replay(&send(&server, "8e03978e-40d5", REX), &first);
    run(&["pet", "delete", "1"], &server.folder.database());
    expect_replay(&send(&server, "8e03978e-40d5", REX), &first);
    assert_eq!(count(&server), 1);
}

#[test]
fn malformed_keys_are_400() {
    let server = Server::start();
    let long = "x".repeat(256);
    for key in ["", "\"\"", "a b", "a,b", "a;b", "a\\b", "\"a", "\"a\";p=1", &long, &format!("\"{long}\"")] {
        send(&server, key, REX).expect_error(400, "invalid_idempotency_key", "Idempotency-Key");
    }
    // Two that differ in other characters only must not become one.
    for key in [&b"k\xf6n"[..], "kön".as_bytes(), b"\xff", b"\"k\xe4n\""] {
        let marked = create("Idempotency-Key: KEY\r\n", REX);
        let (before, after) = marked.split_once("KEY").unwrap();
        server.send([before.as_bytes(), key, after.as_bytes()].concat()).expect_error(
            400,
            "invalid_idempotency_key",
            "Idempotency-Key",
        );
    }
    server.send(create("Idempotency-Key: a\r\nidempotency-key: a\r\n", REX)).expect_error(
        400,
        "invalid_idempotency_key",
        "Idempotency-Key",
    );
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
    // What would be refused anyway is refused first.
    send(&server, "1", "{").expect_error(400, "invalid_json", "JSON");
}

#[test]
fn key_counts_for_the_name_of_the_api_key() {
    let server = Server::start();
    let database = server.folder.database();
    let key = |words: &[&str]| succeed(words, &database).trim().to_owned();
    let (ci, app) = (add_key(&database, &["ci"]), add_key(&database, &["PETSTORE_API_KEY"]));
    let ask = |key: &str| server.send(with_body("POST", "/v1/pets", key, "Idempotency-Key: 1\r\n", REX));
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
                    let requests: String =
                        (0..20).map(|i| create(&format!("Idempotency-Key: {i}\r\n"), REX)).collect();
                    connection.send(requests);
                    (0..20).map(|_| connection.reply()).collect::<Vec<_>>()
                })
            })
            .collect();
        clients.into_iter().map(|client| client.join().unwrap()).collect::<Vec<_>>()
    });
    for i in 0..20 {
        let ids: Vec<Value> =
            tries.iter().map(|replies| replies[i].expect(201).json()["id"].clone()).collect();
        assert!(ids.iter().all(|id| *id == ids[0]), "{ids:?}");
        let made = tries.iter().filter(|replies| replies[i].header("Idempotency-Replayed").is_none());
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
        made.extend((made.len()..made.len() + 20).map(|key| make(&server, key)).collect::<Vec<_>>());
        server = Server::start_in(server.kill(), |command| command);
    }
    for (key, first) in made.iter().enumerate() {
        assert_eq!(first.header("Idempotency-Replayed"), None);
        expect_replay(&make(&server, key), first.expect(201));
    }
}

/// The lines of the page for a shell and for Python, with this base URL, in less of a hurry to wait.
fn lines_of_the_page(base: &str) -> [String; 2] {
    let page = include_str!("../../src/site/pages/retries.md");
    let blocks = page.split("```\n").skip(1).step_by(2).map(|block| {
        let block = block.replace("{{base}}", base);
        block.replace("sleep 1\n", "sleep 0.01\n").replace("sleep(1)", "sleep(0.01)")
    });
    blocks.collect::<Vec<_>>().try_into().unwrap()
}

/// Runs the lines as a script, which stops at the first failure.
fn run_lines([shell, python]: [String; 2]) -> [Output; 2] {
    [("sh", "-euc", shell), ("python3", "-c", python)].map(|(program, flag, lines)| {
        let folder = Folder::new();
        let mut client = Command::new(program);
        output(client.args([flag, &lines]).env("KEY", KEY).current_dir(folder.path()))
    })
}

#[test]
fn lines_of_the_page_make_one_pet_for_each_intent() {
    let server = Server::start_with(|command| command.args(["--ephemeral", "--fail", "0.6"]));
    let [shell, python] = lines_of_the_page(&format!("http://{}/v1", server.address));
    let last = python.find("intent = ").unwrap();
    let (python, call) = python.split_at(last);
    let python = format!("{python}\nfor _ in range(10):\n    {}\n", call.trim_end().replace('\n', "\n    "));
    let shell = format!("for _ in 1 2 3 4 5 6 7 8 9 10; do\n{shell}\ndone");
    for done in run_lines([shell, python]) {
        assert!(done.status.success(), "{done:?}");
    }
    let listed = all_pets_despite_failures(&server);
    for (name, expected) in [("Rex", 10), ("Tom", 10)] {
        assert_eq!(listed.iter().filter(|pet| pet["name"] == name).count(), expected, "{listed:?}");
    }
}

#[test]
fn lines_of_the_page_give_up_on_what_another_try_does_not_change() {
    let server = Server::start();
    let folder = server.folder.path();
    let mut openssl = Command::new("openssl");
    openssl.args([
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "1",
        "-subj",
        "/CN=localhost",
    ]);
    openssl.args(["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", "key.pem", "-out", "certificate.pem"]);
    assert!(output(openssl.current_dir(folder)).status.success());
    let listener = "import http.server, ssl; context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)\n\
        context.load_cert_chain('certificate.pem', 'key.pem')\n\
        server = http.server.HTTPServer(('127.0.0.1', 0), http.server.BaseHTTPRequestHandler)\n\
        server.socket = context.wrap_socket(server.socket, server_side=True)\n\
        print('listening on', server.server_port, flush=True)\n\
        server.serve_forever()";
    let mut listening = Command::new("python3");
    let mut listening = Process::start(listening.args(["-c", listener]).current_dir(folder));
    let port = listening.take_first_lines(1).split_whitespace().last().unwrap().to_owned();
    let reader = Server::start_with(|command| {
        command.arg("--read-only").env("PETSTORE_DATABASE", server.folder.database())
    });
    for (base, said) in [
        (format!("http://{}/v1", reader.address), ["read_only", "503"]),
        ("http://pets.invalid/v1".to_owned(), ["(6)", "gaierror"]),
        (format!("https://127.0.0.1:{port}/v1"), ["(60)", "CERTIFICATE_VERIFY_FAILED"]),
        (format!("http://{}/v2", server.address), ["not_found", "404"]),
    ] {
        // A shell that had ended would not have come to the last line.
        let [shell, python] = lines_of_the_page(&base);
        let shell = format!("set +e\n{shell}\necho still here");
        let done = run_lines([shell, python]);
        assert_eq!(done[0].stdout, b"still here\n", "{done:?}");
        assert!(!done[1].status.success());
        for (done, said) in done.iter().zip(said) {
            assert!(String::from_utf8_lossy(&done.stderr).contains(said), "{said}: {done:?}");
        }
    }
    assert_eq!(count(&server), 0);
}

/// A page of all pets, from the first of many tries that succeeds.
fn all_pets_despite_failures(server: &Server) -> Vec<Value> {
    loop {
        let mut connection = server.connect();
        connection.send(crate::client::get("/v1/pets?limit=100", KEY));
        if let Some(reply) = connection.reply_unless_ended().filter(|reply| reply.status == 200) {
            return reply.json().as_array().unwrap().clone();
        }
    }
}
