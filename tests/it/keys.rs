//! `petstore key …` on a running server, and the key of the first start.

use std::process::{Command, Output};

use crate::harness::{Folder, Server, output, run};

fn key(server: &Server, words: &[&str]) -> String {
    let words = [&["key"][..], words].concat();
    let Output { status, stdout, stderr } = run(&words, &server.folder.database());
    assert!(status.success(), "{}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap().trim_end().to_owned()
}

#[track_caller]
fn expect(server: &Server, key: &str, status: u16) {
    server.connect().get("/v1/pets", key).expect(status);
}

#[test]
fn changes_are_in_force_at_once() {
    let server = Server::start();
    let mut connection = server.connect();
    connection.get("/v1/pets", "petstore_unknown").expect(401);
    let added = key(&server, &["add", "ci"]);
    connection.get("/v1/pets", &added).expect(200);
    key(&server, &["revoke", "ci"]);
    connection.get("/v1/pets", &added).expect(401);
}

#[test]
fn read_only_key_may_not_create() {
    let server = Server::start();
    let reader = key(&server, &["add", "dashboard", "--read-only"]);
    expect(&server, &reader, 200);
    let reply = server.connect().post("/v1/pets", &reader, r#"{"name":"x","categoryId":1}"#);
    reply.expect_error(403, "insufficient_scope", "read only");
    let challenge = reply.header("WWW-Authenticate").unwrap();
    assert!(
        challenge.starts_with("Bearer realm=\"petstore\"")
            && challenge.contains("error=\"insufficient_scope\"")
    );
    server.connect().post("/v1/pets", &reader, "nonsense").expect(403);
    assert_eq!(server.get("/v1/pets").body, b"[]");
}

#[test]
fn both_keys_are_valid_while_a_rotation_overlaps() {
    let server = Server::start();
    let old = key(&server, &["add", "ci"]);
    let new = key(&server, &["rotate", "ci", "--overlap", "1h"]);
    expect(&server, &old, 200);
    expect(&server, &new, 200);
    let newest = key(&server, &["rotate", "ci", "--overlap", "0s"]);
    expect(&server, &old, 401);
    expect(&server, &new, 401);
    expect(&server, &newest, 200);
}

#[test]
fn expired_key_is_refused_like_an_unknown_one() {
    let server = Server::start();
    let added = key(&server, &["add", "old", "--expires", "2090-01-01"]);
    expect(&server, &added, 200);
    // The clock is not ours to move, so the day is.
    let database = rusqlite::Connection::open(server.folder.database()).unwrap();
    database.execute("UPDATE api_keys SET expires_at = unixepoch() WHERE name = 'old'", []).unwrap();
    let expired = server.connect().get("/v1/pets", &added);
    let unknown = server.connect().get("/v1/pets", "unknown");
    assert_eq!(expired.expect(401).body, unknown.body);
    assert_eq!(expired.header("WWW-Authenticate"), unknown.header("WWW-Authenticate"));
    assert!(key(&server, &["list"]).contains("(expired)"));
}

#[test]
fn list_tells_all_but_the_key() {
    let server = Server::start();
    let added = key(&server, &["add", "ci", "--read-only", "--expires", "2090-01-01"]);
    let list = key(&server, &["list"]);
    assert!(
        list.contains("ci ") && list.contains("read-only") && list.contains("2090-01-01T00:00:00Z"),
        "{list}"
    );
    assert!(!list.contains(&added));
    let file = std::fs::read(server.folder.database()).unwrap();
    assert!(!file.windows(added.len()).any(|window| window == added.as_bytes()), "only the digest is kept");
}

#[test]
fn first_start_makes_a_key_and_shows_a_line_that_works() {
    let mut server = Server::start_with(|command| command.env_remove("PETSTORE_API_KEY"));
    server.connect().get("/v1/pets", "any").expect(401);
    server.signal("TERM");
    let (_, printed, _) = server.ended();
    let folder = std::mem::replace(&mut server.folder, Folder::new());

    let server = Server::start_in(folder, |command| command.env_remove("PETSTORE_API_KEY"));
    let line = printed.lines().map(str::trim).find(|line| line.starts_with("curl ")).unwrap();
    let pasted = replace_port(line, server.address.port());
    let output = output(Command::new("sh").args(["-c", &format!("{pasted} -s")]));
    assert_eq!(output.stdout, br#"{"id":1,"name":"Rex","categoryId":1}"#, "{pasted}");
}

fn replace_port(line: &str, port: u16) -> String {
    let (before, after) = line.split_once("http://127.0.0.1:").unwrap();
    let path = &after[after.find('/').unwrap()..];
    format!("{before}http://127.0.0.1:{port}{path}")
}

#[test]
fn no_key_is_made_where_there_is_one() {
    let folder = Folder::new();
    assert!(run(&["key", "add", "mine"], &folder.database()).status.success());
    let mut server = Server::start_in(folder, |command| command.env_remove("PETSTORE_API_KEY"));
    server.signal("TERM");
    let (_, printed, _) = server.ended();
    assert_eq!(printed, "");
}

#[test]
fn wrong_requests_say_what_is_wrong() {
    let folder = Folder::new();
    for (words, code, said) in [
        (&["key", "list"][..], 1, "there is no database"),
        (&["key", "add", "a", "--expires", "2020-01-01"], 1, "expired"),
        (&["key", "add", ""], 1, "name"),
        (&["key", "add"], 2, "NAME"),
        (&["key", "rotate", "a"], 1, "no valid key named 'a'"),
        (&["key", "rotate", "a", "--overlap", "soon"], 2, "--overlap"),
        (&["key", "revoke", "a"], 1, "no key named 'a'"),
    ] {
        let output = run(words, &folder.database());
        let error = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(code), "{words:?}: {error}");
        assert!(error.contains(said) && error.lines().count() == 1, "{words:?}: {error}");
    }
}
