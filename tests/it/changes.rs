//! The record of changes: `petstore changes`, and `GET /v1/changes` with `--experimental`.

use std::fs::{File, Permissions};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::{Value, json};

use crate::backup::{refuse, succeed};
use support::client::{Reply, with_body};
use support::harness::{
    Folder, KEY, Process, Server, add_key, change, expect_refusal, output, petstore, run,
};
use support::wait::wait_until;

/// A service that records changes.
fn recording() -> Server {
    let server = Server::start_with(|command| command.arg("--experimental"));
    keep(&server.folder, "90d");
    server
}

fn keep(folder: &Folder, how_long: &str) -> String {
    succeed(&["changes", "keep", how_long], &folder.database())
}

fn start_again(folder: Folder) -> Server {
    Server::start_in(folder, |command| command.arg("--experimental"))
}

/// The changes that the command prints.
fn printed(database: &Path, words: &[&str]) -> Vec<Value> {
    let lines = succeed(&[&["changes"], words].concat(), database);
    let read = |line| serde_json::from_str(line).unwrap();
    lines.lines().map(read).collect()
}

fn listed(server: &Server, query: &str) -> Vec<Value> {
    server
        .connect()
        .get_all(&format!("/v1/changes{query}"), KEY)
}

fn ids(changes: &[Value]) -> Vec<i64> {
    changes
        .iter()
        .map(|it| it["id"].as_i64().unwrap())
        .collect()
}

fn patch(server: &Server, key: &str, id: i64, body: &str) -> Reply {
    let target = format!("/v1/pets/{id}");
    server.send(with_body("PATCH", &target, key, "", body))
}

/// The service says that a reader must get all pets again, and go on after this id.
#[track_caller]
fn expect_gone(server: &Server, after: i64, go_on: i64) {
    let reply = server.get(&format!("/v1/changes?after={after}"));
    reply.expect_error(410, "changes_gone", "the URL in the Link header");
    let link = format!("</v1/changes?limit=20&after={go_on}>; rel=\"next\"");
    assert_eq!(reply.header("Link"), Some(&*link));
    let refused = format!("go on with --after {go_on}");
    let words = ["changes", "--after", &after.to_string()];
    refuse(&words, &server.folder.database(), &refused);
    assert_eq!(listed(server, &format!("?after={go_on}")), [json!(null); 0]);
}

#[test]
fn every_change_is_recorded_with_who_made_it_and_nothing_else() {
    let server = recording();
    let database = server.folder.database();
    let shop = add_key(&database, &["web-shop"]);
    server
        .create(r#"{"name":"Rex","categoryId":3}"#)
        .expect(201);
    let sold = r#"{"status":"sold"}"#;
    for _ in 0..2 {
        patch(&server, &shop, 1, sold).expect(200);
    }
    patch(&server, &shop, 9, sold).expect(404);
    let rows = server.folder.path().join("rows");
    let file = rows.to_str().unwrap();
    std::fs::write(&rows, "{\"name\":\"Tom\",\"categoryId\":4}\n").unwrap();
    succeed(&["import", file], &database);
    std::fs::write(
        &rows,
        "{\"id\":1,\"name\":\"Rex\"}\n{\"id\":2,\"name\":\"Tim\"}\n",
    )
    .unwrap();
    succeed(&["import", file, "--update"], &database);
    std::fs::write(
        &rows,
        "{\"id\":1,\"name\":\"Max\"}\n{\"id\":3,\"name\":\"Tim\"}\n",
    )
    .unwrap();
    assert!(
        !run(&["import", file, "--update"], &database)
            .status
            .success()
    );
    succeed(
        &["pet", "set", "2", "--category", "5", "--status", "none"],
        &database,
    );
    server
        .ask(
            "DELETE",
            "/v1/pets/1",
            &format!("Authorization: Bearer {KEY}\r\n"),
        )
        .expect(204);
    // Without the service too.
    let folder = server.kill();
    succeed(&["pet", "delete", "2"], &database);
    let server = start_again(folder);

    let rex = json!({ "id": 1, "name": "Rex", "categoryId": 3 });
    let sold = json!({ "id": 1, "name": "Rex", "categoryId": 3, "status": "sold" });
    let pet = |name, category| json!({ "id": 2, "name": name, "categoryId": category });
    let none = Value::Null;
    let expected = [
        ("created", 1, &none, &rex, "PETSTORE_API_KEY"),
        ("updated", 1, &rex, &sold, "web-shop"),
        ("created", 2, &none, &pet("Tom", 4), "petstore import"),
        (
            "updated",
            2,
            &pet("Tom", 4),
            &pet("Tim", 4),
            "petstore import",
        ),
        (
            "updated",
            2,
            &pet("Tim", 4),
            &pet("Tim", 5),
            "petstore pet set",
        ),
        ("deleted", 1, &sold, &none, "PETSTORE_API_KEY"),
        ("deleted", 2, &pet("Tim", 5), &none, "petstore pet delete"),
    ];
    let changes = listed(&server, "?limit=2");
    assert_eq!(ids(&changes), [1, 2, 3, 4, 5, 6, 7]);
    for (found, (kind, pet, before, after, key)) in changes.iter().zip(expected) {
        let told = (
            &found["kind"],
            &found["petId"],
            &found["before"],
            &found["pet"],
            &found["key"],
        );
        assert_eq!(
            told,
            (&json!(kind), &json!(pet), before, after, &json!(key))
        );
    }
    assert!(changes.is_sorted_by_key(|it| it["at"].as_str().unwrap()));
    assert_eq!(printed(&database, &[]), changes);
    let csv = succeed(&["changes", "--format", "csv", "--after", "6"], &database);
    let row = format!(
        "7,{},deleted,2,petstore pet delete,Tim,5,,,,\r\n",
        changes[6]["at"].as_str().unwrap()
    );
    let head = "change,at,kind,petId,key,before.name,before.categoryId,before.status,name,categoryId,status\r\n";
    assert_eq!(csv, format!("{head}{row}"));
}

#[test]
fn changes_are_chosen_and_read_page_by_page() {
    let server = recording();
    server.fill(["a", "b", "c"]);
    for (id, status) in [(1, "sold"), (2, "pending"), (1, "pending"), (3, "sold")] {
        patch(&server, KEY, id, &json!({ "status": status }).to_string()).expect(200);
    }
    for (query, found) in [
        ("?after=5", &[6, 7][..]),
        ("?limit=2", &[1, 2, 3, 4, 5, 6, 7]),
        ("?petId=1", &[1, 4, 6]),
        ("?petId=1&kind=updated&limit=1", &[4, 6]),
        ("?kind=deleted", &[]),
        ("?order=desc&limit=3", &[7, 6, 5, 4, 3, 2, 1]),
        ("?order=desc&before=4&kind=created", &[3, 2, 1]),
        ("?since=2020-01-01T00:00:00Z&after=6", &[7]),
        ("?since=2999-01-01T00:00:00%2B01:00", &[]),
    ] {
        assert_eq!(ids(&listed(&server, query)), found, "{query}");
    }
    for (query, named) in [
        (
            "kind=sold",
            "'kind' must be 'created', 'updated' or 'deleted'",
        ),
        ("since=yesterday", "'since' must be a time such as"),
        ("since=2026-01-01T00:00:00+25:00", "'since' must be"),
        ("petId=x", "'petId'"),
        ("before=3", "'before' needs 'order=desc'"),
    ] {
        server
            .get(&format!("/v1/changes?{query}"))
            .expect_error(400, "invalid_parameter", named);
    }
    let time = server.get("/v1/changes?after=4&limit=1").json()[0]["at"]
        .as_str()
        .unwrap()
        .to_owned();
    let since = ids(&listed(&server, &format!("?since={time}")));
    assert!(since.contains(&5) && since.ends_with(&[6, 7]), "{since:?}");
    let database = server.folder.database();
    assert_eq!(
        ids(&printed(&database, &["--since", &time, "--pet", "3"])),
        [7]
    );
    assert_eq!(
        ids(&printed(&database, &["--since", "1d", "--kind", "created"])),
        [1, 2, 3]
    );
    assert_eq!(
        printed(&database, &["--since", "2999-01-01"]),
        [json!(null); 0]
    );

    // Asking again costs a 304, until something changes.
    let current = |tag: &str| {
        server.ask(
            "GET",
            "/v1/changes?after=7",
            &format!("Authorization: Bearer {KEY}\r\nIf-None-Match: {tag}\r\n"),
        )
    };
    let tag = server
        .get("/v1/changes?after=7")
        .header("ETag")
        .unwrap()
        .to_owned();
    current(&tag).expect(304);
    server.fill(["d"]);
    assert_eq!(
        ids(current(&tag).expect(200).json().as_array().unwrap()),
        [8]
    );
}

#[test]
fn window_of_a_search_leads_on_in_both_orders() {
    let server = recording();
    let fill = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 45000)
        INSERT INTO changes (id, at, pet, category_id, name) SELECT i, i * 1000, i, 1, 'x' FROM n;
        UPDATE changes SET old_category_id = 1, old_name = '' WHERE id IN (1, 30000);";
    change(&server.folder.database(), fill);
    for (query, link) in [
        (
            "after=-1&kind=updated&petId=9&limit=7",
            "limit=7&petId=9&kind=updated&after=45000",
        ),
        ("kind=updated", "limit=20&kind=updated&after=20000"),
        (
            "since=1970-01-01T00:00:00%2B00:00&limit=1&petId=3&kind=deleted",
            "limit=1&petId=3&kind=deleted&since=1970-01-01T00%3A00%3A00%2B00%3A00&after=20000",
        ),
        ("order=desc&limit=7", "limit=7&order=desc&before=44994"),
    ] {
        let link = format!("</v1/changes?{link}>; rel=\"next\"");
        let found = server.get(&format!("/v1/changes?{query}"));
        assert_eq!(found.header("Link"), Some(&*link));
    }
    for (query, found) in [
        ("?kind=updated", [1, 30000]),
        ("?kind=updated&order=desc&limit=1", [30000, 1]),
        (
            "?since=1970-01-01T12:29:58Z&limit=1&kind=created&order=desc&before=45000",
            [44999, 44998],
        ),
    ] {
        let all = listed(&server, query);
        assert_eq!(ids(&all)[..2], found, "{query}");
    }
}

#[test]
fn names_of_keys_are_for_those_who_may_write() {
    let server = recording();
    server.fill(["Rex"]);
    let reader = add_key(&server.folder.database(), &["kiosk", "--read-only"]);
    for _ in 0..2 {
        for (key, name) in [(KEY, "PETSTORE_API_KEY".into()), (&*reader, Value::Null)] {
            let changes = server.connect().get("/v1/changes", key).expect(200).json();
            assert_eq!(changes[0]["key"], name);
        }
    }
}

#[test]
fn changes_are_recorded_only_when_asked_for() {
    let server = Server::start_with(|command| command.arg("--experimental"));
    let database = server.folder.database();
    server.fill(["Rex"]);
    server
        .get("/v1/changes")
        .expect_error(404, "not_found", "petstore changes keep 90d");
    let said = "records no changes; petstore changes keep 90d";
    refuse(&["changes"], &database, said);
    refuse(&["changes", "--follow"], &database, said);
    assert!(
        keep(&server.folder, "90d")
            .starts_with("each change of a pet is recorded now, and kept for 90 days")
    );
    assert_eq!(server.get("/v1/changes").json(), json!([]));
    let link = |server: &Server| {
        server
            .get("/v1/store/inventory")
            .header("Link")
            .map(str::to_owned)
    };
    assert_eq!(link(&server).unwrap(), "</v1/changes>; rel=\"related\"");
    // The pet from before is not in it.
    expect_gone(&server, 0, 1);
    server.fill(["Tom"]);
    let said = |server: &Server| succeed(&["changes", "keep"], &server.folder.database());
    assert_eq!(said(&server), "changes are kept for 90 days\n");
    keep(&server.folder, "30d");
    assert_eq!(ids(&listed(&server, "?after=1")), [2], "the same record");
    keep(&server.folder, "off");
    server.get("/v1/changes").expect(404);
    assert_eq!(
        (link(&server), &*said(&server)),
        (None, "changes are not recorded\n")
    );
    server.fill(["Ada"]);
    assert_eq!(ids(&printed(&database, &[])), [2], "it is still there");
    keep(&server.folder, "90d");
    expect_gone(&server, 2, 3);
    server.fill(["Zoe"]);
    assert_eq!(ids(&listed(&server, "?after=3")), [4]);
    assert_eq!(ids(&listed(&server, "?order=desc")), [4, 2]);
    for wrong in ["0s", "soon", "-1d"] {
        expect_refusal(
            run(&["changes", "keep", "--", wrong], &database),
            2,
            "DURATION must be a time",
        );
    }
    // Without the switch there is no such path.
    let server = Server::start_in(server.kill(), |command| command);
    server.get("/v1/changes").expect(404);
}

#[test]
fn old_changes_go_a_few_at_a_time_and_a_late_reader_learns_of_it() {
    let server = recording();
    server.fill(["a", "b", "c", "d", "e", "f", "g"]);
    let age = "UPDATE changes SET at = at - 91 * 86400000 WHERE id < 7";
    change(&server.folder.database(), age);
    server.fill(["h"]);
    assert_eq!(
        ids(&listed(&server, "")),
        [3, 4, 5, 6, 7, 8],
        "two with each that comes"
    );
    expect_gone(&server, 1, 8);
    assert_eq!(ids(&listed(&server, "?after=2")), [3, 4, 5, 6, 7, 8]);
    assert!(keep(&server.folder, "90d").contains("; removed 4 older changes"));
    change(&server.folder.database(), "UPDATE changes SET at = 0");
    keep(&server.folder, "90d");
    assert_eq!(
        ids(&listed(&server, "")),
        [8],
        "the last one stays, so that no id is used again"
    );
    server.fill(["i"]);
    assert_eq!(ids(&listed(&server, "?after=8")), [9]);
}

#[test]
fn after_a_restore_no_id_is_another_change() {
    let server = recording();
    let database = server.folder.database();
    let copy = server
        .folder
        .path()
        .join("copy")
        .to_str()
        .unwrap()
        .to_owned();
    server.fill(["a", "b"]);
    succeed(&["backup", &copy], &database);
    server.fill(["c", "d", "e"]);
    let folder = server.kill();
    succeed(&["restore", &copy], &database);
    let server = start_again(folder);
    for after in [1, 2, 4, 5] {
        expect_gone(&server, after, 6);
    }
    server.fill(["f"]);
    assert_eq!(ids(&listed(&server, "")), [7]);
    assert_eq!(
        ids(&listed(&server, "?order=desc")),
        [7, 2, 1],
        "what was before is there to be read"
    );
    assert!(succeed(&["check"], &database).contains("is sound"));

    // Where the database is lost, nobody knows its ids: those of later changes are higher in any case.
    let folder = server.kill();
    std::fs::remove_file(&database).unwrap();
    let _ = std::fs::remove_file(folder.path().join("pets.db-wal"));
    succeed(&["restore", &copy], &database);
    let server = start_again(folder);
    server.fill(["g"]);
    let newest = ids(&listed(&server, ""))[0];
    assert!(newest > 1_700_000_000_000_000, "{newest}");
    server.get("/v1/changes?after=7").expect(410);

    // The record goes on if a backup is older than it.
    keep(&server.folder, "off");
    let plain = Server::start();
    let older = plain
        .folder
        .path()
        .join("older")
        .to_str()
        .unwrap()
        .to_owned();
    succeed(&["backup", &older], &plain.folder.database());
    keep(&plain.folder, "1d");
    plain.fill(["a"]);
    let folder = plain.kill();
    succeed(&["restore", &older], &folder.database());
    let again = start_again(folder);
    expect_gone(&again, 1, 2);

    // What is turned off stays off.
    let copy = again.folder.path().join("on").to_str().unwrap().to_owned();
    succeed(&["backup", &copy], &again.folder.database());
    keep(&again.folder, "off");
    let folder = again.kill();
    succeed(&["restore", &copy], &folder.database());
    let again = start_again(folder);
    again.get("/v1/changes").expect(404);

    // Of a record that is lost with its database, nobody knows the ids.
    let folder = again.kill();
    std::fs::write(folder.database(), "no database").unwrap();
    succeed(&["restore", &older], &folder.database());
    let again = start_again(folder);
    keep(&again.folder, "1d");
    again.fill(["b"]);
    assert!(ids(&listed(&again, ""))[0] > 1_700_000_000_000_000);
}

#[test]
fn follower_gets_each_change_across_restarts_and_ends_with_its_reader() {
    let server = recording();
    let database = server.folder.database();
    server.fill(["before"]);
    let lines = server.folder.path().join("lines");
    let follow = |words: &[&str]| {
        let mut command = petstore(&[&["changes", "--follow"], words].concat());
        command
            .env("PETSTORE_DATABASE", &database)
            .stdin(Stdio::null())
            .stderr(Stdio::null());
        command
    };
    let mut all = Process::spawn(follow(&["--after", "0"]).stdout(File::create(&lines).unwrap()));
    let mut sales = Process::start(&mut follow(&["--kind", "updated", "--since", "1h"]));
    let told = |count: usize| std::fs::read_to_string(&lines).unwrap().lines().count() == count;
    wait_until("the first change", || told(1));
    server.fill(["Rex"]);
    wait_until("a change", || told(2));
    let folder = server.kill();
    succeed(&["pet", "set", "1", "--name", "between"], &database);
    wait_until("a change without a service", || told(3));
    let server = start_again(folder);
    // As during a restore on another machine.
    let away = server.folder.path().join("away");
    std::fs::rename(&database, &away).unwrap();
    std::thread::sleep(std::time::Duration::from_secs(1));
    std::fs::rename(&away, &database).unwrap();
    let server = start_again(server.kill());
    patch(&server, KEY, 2, r#"{"status":"sold"}"#).expect(200);
    wait_until("a change after a restart", || told(4));
    let text = std::fs::read_to_string(&lines).unwrap();
    let read: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(read, listed(&server, ""));
    assert!(sales.take_first_lines(2).contains("\"name\":\"between\""));
    // Its pipe is closed now: it ends without another change.
    assert!(sales.ended().success());
    assert!(!all.has_ended());
    // A restore is not passed over in silence.
    let copy = server
        .folder
        .path()
        .join("copy")
        .to_str()
        .unwrap()
        .to_owned();
    succeed(&["backup", &copy], &database);
    let folder = server.kill();
    succeed(&["restore", &copy], &folder.database());
    assert_eq!(all.ended().code(), Some(1));
}

#[test]
fn command_that_follows_nothing_yet_prints_what_comes() {
    let server = recording();
    server.fill(["before"]);
    let mut follower = Process::start(
        petstore(&["changes", "--follow"]).env("PETSTORE_DATABASE", server.folder.database()),
    );
    // It may begin after the first of them.
    let mut made = 0;
    let line = std::thread::scope(|scope| {
        let line = scope.spawn(|| follower.take_first_line());
        while !line.is_finished() {
            server.fill(["later"]);
            made += 1;
            std::thread::sleep(std::time::Duration::from_millis(50));
        }
        line.join().unwrap()
    });
    assert!(line.contains("\"later\"") && made > 0, "{line}");
}

/// A code block of the guide, for this service, with the shop at another address.
fn lines_of_the_page(begin: &str, server: &Server, shop: SocketAddr) -> String {
    let page = include_str!("../../src/site/pages/telling.md");
    let block = page
        .split("```")
        .find(|block| block.trim_start_matches("python").starts_with(begin));
    let lines = block.unwrap().trim_start_matches("python");
    lines
        .replace("{{base}}", &format!("http://{}/v1", server.address))
        .replace("https://shop.example/petstore", &format!("http://{shop}/"))
        .replace("sleep 1", "sleep 0.1")
        .replace("sleep(1)", "sleep(0.1)")
}

/// Another system: it answers each request with 200, and keeps the bodies.
fn shop() -> (SocketAddr, Arc<Mutex<Vec<String>>>) {
    let socket = TcpListener::bind(("127.0.0.1", 0)).unwrap();
    let (address, told) = (socket.local_addr().unwrap(), Arc::default());
    let kept: Arc<Mutex<Vec<String>>> = Arc::clone(&told);
    thread::spawn(move || {
        for stream in socket.incoming() {
            let mut reader = BufReader::new(stream.unwrap());
            let (mut length, mut line) = (0, String::new());
            while reader.read_line(&mut line).unwrap_or(0) > 2 {
                let field = line.to_ascii_lowercase();
                if let Some(bytes) = field.strip_prefix("content-length:") {
                    length = bytes.trim().parse().unwrap();
                }
                line.clear();
            }
            let mut body = vec![0; length];
            if length > 0 && reader.read_exact(&mut body).is_ok() {
                kept.lock().unwrap().push(String::from_utf8(body).unwrap());
                let _ = reader.get_mut().write_all(
                    b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n",
                );
            }
        }
    });
    (address, told)
}

/// Lines of a shell in a folder, in a process group of their own.
fn shell(words: &[&str], folder: &Path, database: &Path) -> Command {
    let program = Path::new(env!("CARGO_BIN_EXE_petstore")).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap());
    let mut command = Command::new(words[0]);
    command
        .args(&words[1..])
        .envs([("PATH", &*path), ("KEY", KEY)])
        .env("PETSTORE_DATABASE", database)
        .current_dir(folder)
        .process_group(0);
    command
}

/// A consumer whose output nobody reads.
fn consumer(words: &[&str], folder: &Path, database: &Path) -> Process {
    Process::spawn(
        shell(words, folder, database)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null()),
    )
}

fn kill_group(consumer: &Process) {
    let group = format!("-{}", consumer.child.id());
    assert!(
        Command::new("kill")
            .args(["-KILL", "--", &group])
            .status()
            .unwrap()
            .success()
    );
}

/// Expects every change, in its order, and each at least once.
#[track_caller]
fn expect_all_told(told: &[String], changes: &[Value]) {
    let told: Vec<Value> = told
        .iter()
        .map(|body| serde_json::from_str(body).unwrap())
        .collect();
    let mut first: Vec<&Value> = Vec::new();
    for change in &told {
        if first
            .last()
            .is_none_or(|last| last["id"].as_i64() < change["id"].as_i64())
        {
            first.push(change);
        }
        assert!(first.contains(&change), "not told in its order: {change}");
    }
    assert!(
        first.iter().copied().eq(changes),
        "{} of {}",
        first.len(),
        changes.len()
    );
}

#[test]
fn lines_of_the_page_tell_each_change_although_they_are_killed() {
    let server = recording();
    let ((address, told), database) = (shop(), server.folder.database());
    let script = lines_of_the_page("\npetstore changes --follow --after", &server, address);
    let loops = lines_of_the_page("\nwhile true", &server, address);
    let tell = format!("#!/bin/sh\nexec curl -fsS -m 60 --json \"$1\" http://{address}/\n");
    let rounds = std::env::var("PETSTORE_ROUNDS").map_or(4, |rounds| rounds.parse().unwrap());
    for script in [script, loops] {
        told.lock().unwrap().clear();
        let folder = Folder::new();
        let tell_it = folder.path().join("tell");
        std::fs::write(&tell_it, &tell).unwrap();
        std::fs::set_permissions(&tell_it, Permissions::from_mode(0o755)).unwrap();
        let begun = ids(&listed(&server, "")).last().copied().unwrap_or(0);
        std::fs::write(folder.path().join("told"), begun.to_string()).unwrap();
        let words = ["bash", "-o", "pipefail", "-c", &script];
        thread::scope(|scope| {
            for writer in 0..4 {
                let server = &server;
                scope.spawn(move || {
                    for i in 0..4 * rounds {
                        let name = "Rex\n\\ '\t\"%s";
                        let body = json!({ "name": name, "categoryId": 1 }).to_string();
                        let added = server.create(&body).json();
                        if i % 3 == writer % 3 {
                            let id = added["id"].as_i64().unwrap();
                            patch(server, KEY, id, r#"{"status":"sold"}"#).expect(200);
                        }
                        thread::sleep(Duration::from_millis(40));
                    }
                });
            }
            for round in 0..rounds {
                let mut consumer = consumer(&words, folder.path(), &database);
                let before = told.lock().unwrap().len();
                wait_until("some changes", || {
                    told.lock().unwrap().len() > before + 2 * round % 7
                });
                kill_group(&consumer);
                consumer.ended();
            }
        });
        let changes = listed(&server, &format!("?limit=100&after={begun}"));
        let last = changes.last().unwrap()["id"].to_string();
        let consumer = consumer(&words, folder.path(), &database);
        wait_until("the last change", || {
            std::fs::read_to_string(folder.path().join("told")).is_ok_and(|id| id.trim() == last)
        });
        kill_group(&consumer);
        expect_all_told(&told.lock().unwrap(), &changes);
    }
}

#[test]
fn lines_of_the_page_begin_again_where_changes_are_missing() {
    let server = recording();
    server.fill(["a", "b", "c"]);
    let (address, told) = shop();
    let folder = Folder::new();
    for (name, text) in [
        (
            "tell",
            format!("#!/bin/sh\nexec curl -fsS --json \"$1\" http://{address}/\n"),
        ),
        ("start-over", "#!/bin/sh\ntouch over\n".to_owned()),
    ] {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(0o755)).unwrap();
    }
    std::fs::write(folder.path().join("told"), "99").unwrap();
    let loops = lines_of_the_page("\nwhile true", &server, address);
    let shell = consumer(
        &["bash", "-c", &loops],
        folder.path(),
        &server.folder.database(),
    );
    let python = lines_of_the_page("\nimport http.client", &server, address);
    let other = Folder::new();
    std::fs::write(other.path().join("told"), "99\n").unwrap();
    let started = other.path().join("started");
    let python = python
        + "follow(lambda change: print(change, flush=True), lambda: open('started', 'w').close())";
    let words = ["python3", "-c", &python];
    let mut python = Process::start(&mut self::shell(
        &words,
        other.path(),
        &server.folder.database(),
    ));
    wait_until("a new start", || {
        folder.path().join("over").exists() && started.exists()
    });
    for folder in [&folder, &other] {
        wait_until("the id", || {
            std::fs::read_to_string(folder.path().join("told")).is_ok_and(|id| id.trim() == "3")
        });
    }
    server.fill(["d"]);
    wait_until("the next change", || !told.lock().unwrap().is_empty());
    kill_group(&shell);
    assert!(told.lock().unwrap()[0].contains("\"id\":4"));
    let line = python.take_first_line();
    assert!(line.starts_with("{'id': 4,"), "{line}");
}

#[test]
fn lines_of_the_page_count_what_was_sold() {
    let server = recording();
    let shop = add_key(&server.folder.database(), &["web-shop"]);
    server.fill(["a", "b", "c"]);
    for (id, status) in [
        (1, "sold"),
        (2, "sold"),
        (2, "pending"),
        (3, "pending"),
        (2, "sold"),
    ] {
        patch(&server, &shop, id, &json!({ "status": status }).to_string()).expect(200);
    }
    let page = include_str!("../../src/site/pages/monthly.md");
    let now = printed(&server.folder.database(), &[])[0]["at"]
        .as_str()
        .unwrap()[..7]
        .to_owned();
    let mut printed = Vec::new();
    for block in page.split("```").skip(1).step_by(2) {
        let lines = block
            .replace("2026-12-01", "2999-01-01")
            .replace("2026-11", &now);
        let words = ["bash", "-c", &lines];
        let mut shell = shell(&words, server.folder.path(), &server.folder.database());
        let output = output(&mut shell);
        assert!(output.status.success(), "{lines}: {output:?}");
        printed.push(String::from_utf8(output.stdout).unwrap());
    }
    let counted = |text: &str| {
        text.lines()
            .map(|line| line.trim().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(counted(&printed[0]), [format!("3 {now}")]);
    assert_eq!(counted(&printed[1]), ["3 category 1", "3 web-shop"]);
    assert_eq!(counted(&printed[2]), ["2"]);
    assert_eq!(
        counted(&printed[3]),
        ["3 PETSTORE_API_KEY created", "5 web-shop updated"]
    );
    let csv = std::fs::read_to_string(server.folder.path().join("changes.csv")).unwrap();
    assert_eq!(csv.lines().count(), 9);
}
