//! `petstore key …` on a running server, and the key of the first start.

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::backup::succeed;
use crate::messages;
use support::client::Connection;
use support::harness::{
    Folder, Process, Server, add_key, after, as_nobody, change, expect_refusal, output, petstore,
    run,
};
use support::wait::wait_until;

fn key(server: &Server, words: &[&str]) -> String {
    let printed = succeed(&[&["key"][..], words].concat(), &server.folder.database());
    printed.trim_end().to_owned()
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
    let reply = server
        .connect()
        .post("/v1/pets", &reader, r#"{"name":"x","categoryId":1}"#);
    reply.expect_error(403, "insufficient_scope", "read-only");
    let challenge = reply.header("WWW-Authenticate").unwrap();
    assert!(
        challenge.starts_with("Bearer realm=\"petstore\"")
            && challenge.contains("error=\"insufficient_scope\"")
    );
    server
        .connect()
        .post("/v1/pets", &reader, "nonsense")
        .expect(403);
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
    // The test cannot move the clock, so it moves the expiry.
    change(
        &server.folder.database(),
        "UPDATE api_keys SET expires_at = unixepoch() WHERE name = 'old'",
    );
    let expired = server.connect().get("/v1/pets", &added);
    let unknown = server.connect().get("/v1/pets", "unknown");
    assert_eq!(expired.expect(401).body, unknown.body);
    assert_eq!(
        expired.header("WWW-Authenticate"),
        unknown.header("WWW-Authenticate")
    );
    assert!(key(&server, &["list"]).contains("(expired)"));
}

#[test]
fn list_shows_all_but_the_key() {
    let server = Server::start();
    let added = key(
        &server,
        &["add", "ci", "--read-only", "--expires", "2090-01-01"],
    );
    let list = key(&server, &["list"]);
    assert!(
        list.contains("ci ") && list.contains("read-only") && list.contains("2090-01-01T00:00:00Z"),
        "{list}"
    );
    assert!(!list.contains(&added));
    for name in ["pets.db", "pets.db-wal"] {
        let file = std::fs::read(server.folder.path().join(name)).unwrap();
        let has_key = file
            .windows(added.len())
            .any(|window| window == added.as_bytes());
        assert!(!has_key, "{name} has more than the digest");
    }
}

#[test]
fn first_start_on_a_terminal_shows_a_key_and_a_line_that_works() {
    let mut server = Server::start_on_terminal(Folder::new());
    server.connect().get("/v1/pets", "any").expect(401);
    assert_eq!(
        key(&server, &["list"]).lines().count(),
        2,
        "the first key is valid"
    );
    server.signal("TERM");
    let (_, printed, _) = server.ended();
    let folder = std::mem::replace(&mut server.folder, Folder::new());

    let server = Server::start_in(folder, |command| command.env_remove("PETSTORE_API_KEY"));
    let line = printed
        .lines()
        .map(str::trim)
        .find(|line| line.starts_with("curl "))
        .unwrap();
    let pasted = replace_port(line, server.address.port());
    let output = output(Command::new("sh").args(["-c", &format!("{pasted} -s")]));
    assert_eq!(
        output.stdout, br#"{"id":1,"name":"Rex","categoryId":1}"#,
        "{pasted}"
    );
    let key = printed
        .lines()
        .find_map(|line| line.trim().split_once("/#key="))
        .map(|(_, key)| key);
    assert_eq!(
        key,
        cfg!(feature = "site").then(|| line.split(['\'', ' ']).nth(5).unwrap()),
        "{printed}"
    );
}

fn replace_port(line: &str, port: u16) -> String {
    let (before, after) = line.split_once("http://127.0.0.1:").unwrap();
    let path = &after[after.find('/').unwrap()..];
    format!("{before}http://127.0.0.1:{port}{path}")
}

/// Ends a server without a key of the environment; returns what it printed and logged, and its folder.
fn printed_and_logged(folder: Folder, words: &[&str]) -> (String, String, Folder) {
    let mut server = Server::start_in(folder, |command| {
        command.env_remove("PETSTORE_API_KEY").args(words)
    });
    server.signal("TERM");
    let (_, printed, logged) = server.ended();
    (
        printed,
        logged,
        std::mem::replace(&mut server.folder, Folder::new()),
    )
}

#[test]
fn printed_path_of_a_database_is_quoted_for_a_shell() {
    let mut folder = Folder::new();
    let place = folder.path().join("my shop");
    std::fs::create_dir(&place).unwrap();
    let path = place.join("pets.db");
    let given = path.to_str().unwrap();
    let (_, logged, _) = {
        let taken = std::mem::replace(&mut folder, Folder::new());
        printed_and_logged(taken, &["--database", given])
    };
    let advice = format!("petstore key add NAME --database '{given}'");
    assert!(logged.contains(&advice), "{logged}");
}

#[test]
fn no_key_is_shown_but_on_a_terminal() {
    let (printed, logged, folder) = printed_and_logged(Folder::new(), &[]);
    assert_eq!(printed, "");
    let path = folder.database();
    let advice = format!(
        "there is no API key; to create one, run: petstore key add NAME --database {}",
        folder.shown()
    );
    // The address of a cluster is quoted.
    let unquoted = logged.replace('\'', "");
    assert!(
        unquoted.contains(&advice) && !logged.contains("petstore_"),
        "{logged}"
    );
    assert_eq!(
        run(&["key", "list"], &path)
            .stdout
            .iter()
            .filter(|byte| **byte == b'\n')
            .count(),
        1
    );
}

#[test]
fn first_key_is_there_before_the_first_response() {
    for _ in 0..3 {
        let folder = Folder::new();
        let (socket, key) = (folder.path().join("http"), folder.path().join("first-key"));
        let listen = format!("unix:{}", socket.display());
        let mut command = petstore(&[
            "--listen",
            &listen,
            "--first-key-file",
            key.to_str().unwrap(),
        ]);
        let mut service = Process::start(command.env("PETSTORE_DATABASE", folder.database()));
        // Without a pause, as the key comes within milliseconds.
        while UnixStream::connect(&socket).is_err() {
            assert!(!service.has_ended(), "{:?}", service.output());
        }
        let mut connection = Connection::open_unix(&socket);
        connection.get("/healthz", "").expect(200);
        let key = std::fs::read_to_string(&key).unwrap();
        connection.get("/v1/pets", key.trim_end()).expect(200);
    }
}

#[test]
fn first_key_is_written_to_a_new_private_file() {
    let folder = Folder::new();
    let path = folder.path().join("first-key");
    let path = path.to_str().unwrap();
    let (printed, logged, folder) = printed_and_logged(folder, &["--first-key-file", path]);
    assert!(
        printed.is_empty() && logged.contains(messages::FIRST_KEY_WRITTEN),
        "{logged}"
    );
    assert_eq!(
        std::fs::metadata(path).unwrap().permissions().mode() & 0o777,
        0o600
    );
    let key = std::fs::read_to_string(path).unwrap();
    assert!(!logged.contains(key.trim_end()));
    let server = Server::start_in(folder, |command| command.env_remove("PETSTORE_API_KEY"));
    expect(&server, key.strip_suffix('\n').unwrap(), 200);
}

/// The words of a start that writes the first key to this file.
fn first_key_in(path: &Path) -> [&str; 4] {
    [
        "--listen",
        "127.0.0.1:0",
        "--first-key-file",
        path.to_str().unwrap(),
    ]
}

/// Why a file is not taken for one that an earlier start has left.
const ANOTHER_USER: &str =
    "another user may have put it there; move it away, or choose another name";

#[test]
fn start_fails_if_the_first_key_cannot_be_written_and_keeps_none() {
    let folder = Folder::new();
    let precious = folder.path().join("precious");
    std::fs::write(&precious, "mine").unwrap();
    for (path, why) in [
        ("/dev/full".into(), ANOTHER_USER),
        (folder.path().join("nowhere/key"), "the folder "),
        (precious.join("key"), "the folder "),
    ] {
        let said = format!(
            "cannot write the first API key to {}: {why}",
            path.display()
        );
        expect_refusal(run(&first_key_in(&path), &folder.database()), 1, &said);
    }
    let said = format!(
        "cannot use {} as the first API key: it is not an API key that petstore has made",
        precious.display()
    );
    expect_refusal(run(&first_key_in(&precious), &folder.database()), 1, &said);
    assert_eq!(std::fs::read(&precious).unwrap(), b"mine");
    let path = folder.path().join("first-key");
    let (_, logged, _) = printed_and_logged(folder, &first_key_in(&path));
    assert!(
        logged.contains(messages::FIRST_KEY_WRITTEN),
        "it is made as soon as it can be: {logged}"
    );
}

#[test]
fn first_key_in_a_folder_of_others_is_refused() {
    let (folder, others) = (Folder::new(), Folder::new());
    for (folder, mode) in [(&folder, 0o777), (&others, 0o555)] {
        std::fs::set_permissions(folder.path(), Permissions::from_mode(mode)).unwrap();
    }
    let path = others.path().join("first-key");
    let mut command = as_nobody(&first_key_in(&path));
    let refused = output(command.env("PETSTORE_DATABASE", folder.database()));
    let said = format!(
        "cannot write the first API key to {}: this user cannot create files in {} (",
        path.display(),
        others.path().display()
    );
    expect_refusal(refused, 1, &said);
}

/// A new database that has no key yet.
fn without_key() -> Folder {
    printed_and_logged(Folder::new(), &[]).2
}

#[test]
fn file_that_others_can_have_written_is_no_first_key_and_stays() {
    let folder = without_key();
    let file = |name: &str, text: &str, mode: u32| {
        let path = folder.path().join(name);
        let _ = std::fs::create_dir_all(path.parent().unwrap());
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        path
    };
    let key = petstore::new_api_key().unwrap();
    let of_another = file("of-another", &key, 0o600);
    std::os::unix::fs::chown(&of_another, Some(65534), None).unwrap();
    let in_open_folder = file("open/key", &key, 0o600);
    std::fs::set_permissions(
        in_open_folder.parent().unwrap(),
        Permissions::from_mode(0o777),
    )
    .unwrap();
    let in_folder_of_another = file("other/key", &key, 0o600);
    std::os::unix::fs::chown(in_folder_of_another.parent().unwrap(), Some(65534), None).unwrap();
    let (link, twin) = (folder.path().join("link"), folder.path().join("twin"));
    std::os::unix::fs::symlink(file("target", &key, 0o600), &link).unwrap();
    std::fs::hard_link(file("one", &key, 0o600), &twin).unwrap();
    for (path, why) in [
        (of_another, ANOTHER_USER),
        (in_open_folder, ANOTHER_USER),
        (in_folder_of_another, ANOTHER_USER),
        (link, ANOTHER_USER),
        (twin, ANOTHER_USER),
        (file("group", &key, 0o660), ANOTHER_USER),
        (file("all", &key, 0o602), ANOTHER_USER),
        (file("empty", "", 0o620), ANOTHER_USER),
        (
            file("mine", "mine", 0o600),
            "it is not an API key that petstore has made",
        ),
        (
            file("short", &key[1..], 0o600),
            "it is not an API key that petstore has made",
        ),
        (
            file("two", &format!("{key}\n{key}\n"), 0o600),
            "it is not an API key that petstore has made",
        ),
    ] {
        let before = std::fs::read(&path).unwrap();
        expect_refusal(run(&first_key_in(&path), &folder.database()), 1, why);
        assert_eq!(std::fs::read(&path).unwrap(), before, "{}", path.display());
    }
    assert!(
        !petstore::KeyRing::open(&folder.database())
            .unwrap()
            .is_valid(&key)
            .unwrap()
    );
}

#[test]
fn key_that_is_in_the_file_already_is_the_first() {
    let key = petstore::new_api_key().unwrap();
    for (text, mode) in [
        (&key, 0o600),
        (&format!("{key}\n"), 0o644),
        (&String::new(), 0o600),
        (&String::new(), 0o640),
    ] {
        let folder = without_key();
        let path = folder.path().join("first.key");
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, Permissions::from_mode(mode)).unwrap();
        let server = Server::start_in(folder, |command| {
            command
                .env_remove("PETSTORE_API_KEY")
                .args(["--first-key-file", path.to_str().unwrap()])
        });
        let kept = std::fs::read_to_string(&path).unwrap();
        assert!(kept == *text || text.is_empty());
        expect(&server, kept.trim_end(), 200);
    }
}

/// The second start of each finds whatever the first has left.
#[test]
fn first_start_that_is_killed_anywhere_is_followed_by_one_that_serves() {
    for round in 0..60u64 {
        let folder = Folder::new();
        let path = folder.path().join("first.key");
        let mut command = petstore(&first_key_in(&path));
        command.env("PETSTORE_DATABASE", folder.database());
        let mut first = command
            .stdout(std::process::Stdio::null())
            .stderr(std::process::Stdio::null())
            .spawn()
            .unwrap();
        // From before the file until after the commit.
        let file = if round % 2 == 0 {
            folder.database()
        } else {
            path.clone()
        };
        wait_until("the file", || file.exists());
        let began = std::time::Instant::now();
        while began.elapsed() < std::time::Duration::from_micros(round * 100) {}
        first.kill().unwrap();
        first.wait().unwrap();
        let server = Server::start_in(folder, |command| {
            command
                .env_remove("PETSTORE_API_KEY")
                .args(["--first-key-file", path.to_str().unwrap()])
        });
        expect(
            &server,
            std::fs::read_to_string(&path).unwrap().trim_end(),
            200,
        );
    }
}

#[test]
fn key_in_the_wrong_folder_is_refused_and_makes_no_database() {
    let folder = Folder::new();
    let missing = folder.path().join("pets.db");
    expect_refusal(
        run(&["key", "add", "ci"], &missing),
        1,
        "give the right file with --database, or make it with --create",
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
    for words in [
        &["key", "add", "ci", "--create"][..],
        &["key", "add", "second"],
        &["key", "add", "third", "--create"],
    ] {
        let added = run(words, &missing);
        assert!(
            added.status.success() && added.stderr.is_empty(),
            "{added:?}"
        );
    }
}

#[test]
fn time_later_than_now_is_not_shown_and_ends_with_the_next_use() {
    let mut server = Server::start();
    let key = add_key(&server.folder.database(), &["ci"]);
    change(
        &server.folder.database(),
        "UPDATE api_keys SET last_used_at = 3124137600, created_at = 3124137600",
    );
    let listed = |words: &[&str]| {
        let listed = run(
            &[&["key", "list"], words].concat(),
            &server.folder.database(),
        );
        [listed.stdout, listed.stderr].map(|text| String::from_utf8(text).unwrap())
    };
    let [table, note] = listed(&[]);
    assert!(
        !table.contains("2069") && table.matches("unknown").count() == 2,
        "{table}"
    );
    assert!(
        note.contains("a time later than now is not shown"),
        "{note}"
    );
    let [json, _] = listed(&["--json"]);
    assert!(
        json.contains(r#""createdAt":null"#) && json.contains(r#""lastUsedAt":null"#),
        "{json}"
    );
    expect(&server, &key, 200);
    server.signal("TERM");
    server.ended();
    let keys = petstore::api_keys(&server.folder.database()).unwrap();
    let used = keys
        .iter()
        .find(|key| key.name == "ci")
        .unwrap()
        .last_used_at
        .unwrap();
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_secs();
    assert!((0..=60).contains(&(now.cast_signed() - used)), "{used}");
}

#[test]
fn first_key_that_is_not_needed_is_not_written() {
    let folder = Folder::new();
    let path = folder.path().join("first-key");
    add_key(&folder.database(), &["mine"]);
    printed_and_logged(folder, &first_key_in(&path));
    let server =
        Server::start_with(|command| command.args(["--first-key-file", path.to_str().unwrap()]));
    server.stop();
    assert!(!path.exists());
}

#[test]
fn start_without_a_valid_key_warns_and_creates_none() {
    let folder = Folder::new();
    add_key(&folder.database(), &["mine"]);
    let (printed, logged, folder) = printed_and_logged(folder, &[]);
    assert!(
        printed.is_empty() && !logged.contains("key add"),
        "{logged}"
    );
    change(
        &folder.database(),
        "UPDATE api_keys SET expires_at = unixepoch()",
    );
    let (_, logged, folder) = printed_and_logged(folder, &[]);
    assert_eq!(
        logged
            .matches("all API keys have expired; to create one, run: petstore key add NAME")
            .count(),
        1
    );
    assert!(
        run(&["key", "revoke", "mine"], &folder.database())
            .status
            .success()
    );
    let server = Server::start_on_terminal(folder);
    let logged = server.stop();
    assert_eq!(
        logged
            .matches("all API keys were revoked; to create one, run: petstore key add NAME")
            .count(),
        1
    );
}

#[test]
fn key_that_nobody_takes_is_not_kept() {
    let folder = Folder::new();
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .unwrap();
    let refused = |words: &[&str]| {
        let mut command = petstore(words);
        command.env("PETSTORE_DATABASE", folder.database());
        command
            .stdout(full.try_clone().unwrap())
            .stderr(Stdio::piped());
        expect_refusal(
            Process::spawn(&mut command).output(),
            1,
            "cannot write to standard output",
        );
    };
    refused(&["key", "add", "ci", "--create"]);
    let added = run(&["key", "add", "ci"], &folder.database());
    assert!(
        added.status.success(),
        "{}",
        String::from_utf8_lossy(&added.stderr)
    );
    let before = succeed(&["key", "list"], &folder.database());
    refused(&["key", "rotate", "ci"]);
    assert_eq!(
        succeed(&["key", "list"], &folder.database()),
        before,
        "the old key is valid"
    );
}

#[test]
fn key_that_does_not_fit_is_refused_and_not_valid() {
    let folder = Folder::new();
    add_key(&folder.database(), &["first"]);
    // In pieces of 512 bytes.
    for limit in (0..=160).step_by(8) {
        let mut command = Command::new("sh");
        let line = format!("ulimit -f {limit}; exec \"$0\" key add key-{limit}");
        command.args(["-c", &line, env!("CARGO_BIN_EXE_petstore")]);
        let ended = output(command.env("PETSTORE_DATABASE", folder.database()));
        let said = String::from_utf8(ended.stderr).unwrap();
        let code = ended
            .status
            .code()
            .unwrap_or_else(|| panic!("{limit}: {}", ended.status));
        let keys = String::from_utf8(run(&["key", "list"], &folder.database()).stdout).unwrap();
        assert_eq!(
            code == 0,
            keys.contains(&format!("key-{limit} ")),
            "{limit}: {said}"
        );
        assert_eq!(code == 0, !ended.stdout.is_empty(), "{limit}: {said}");
    }
}

#[test]
fn key_that_is_not_stored_is_not_printed() {
    let server = Server::start();
    let file = server.folder.database();
    let large = format!(r#"{{"name":"{}","categoryId":1}}"#, "x".repeat(60_000));
    (0..5).for_each(|_| drop(server.create(&large).expect(201).clone()));
    // As long as it is read, the log cannot start over, and it is longer than a file of the command may be.
    let reader = rusqlite::Connection::open(&file).unwrap();
    let read = "BEGIN; SELECT count(*) FROM pets";
    reader.execute_batch(read).unwrap();
    let mut command = petstore(&["key", "add", "second"]);
    let ended = output(after(
        command.env("PETSTORE_DATABASE", &file),
        "ulimit -f 200",
    ));
    let [printed, said] =
        [ended.stdout, ended.stderr].map(|bytes| String::from_utf8(bytes).unwrap());
    assert_eq!(ended.status.code(), Some(1), "{said}");
    assert_eq!(printed, "");
    assert!(said.contains("the new key is not valid: "), "{said}");
    assert!(!succeed(&["key", "list"], &file).contains("second"));
}

#[test]
fn last_use_is_listed() {
    let server = Server::start();
    let used = key(&server, &["add", "used"]);
    key(&server, &["add", "idle"]);
    expect(&server, &used, 200);
    server.signal("TERM");
    let mut server = server;
    server.ended();
    let listed =
        |words: &[&str]| String::from_utf8(run(words, &server.folder.database()).stdout).unwrap();
    let keys: serde_json::Value =
        serde_json::from_str(&listed(&["key", "list", "--json"])).unwrap();
    assert_eq!(keys[0]["name"], "idle");
    assert_eq!(keys[0]["lastUsedAt"], serde_json::Value::Null);
    assert_eq!(
        (&keys[1]["scope"], &keys[1]["isExpired"]),
        (&"full".into(), &false.into())
    );
    let at = keys[1]["lastUsedAt"].as_str().unwrap();
    let table = listed(&["key", "list"]);
    assert!(
        table.contains("LAST USED") && table.contains(&format!("never    {at}")),
        "{table}"
    );
}

#[test]
fn successor_keeps_the_expiry_or_has_one_of_its_own() {
    let server = Server::start();
    let list = || key(&server, &["list"]);
    let expires = ["key", "add", "ci", "--expires", "2090-01-31T18:00:00Z"];
    let added = run(&expires, &server.folder.database());
    let said = String::from_utf8(added.stderr).unwrap();
    assert_eq!(said, "petstore: the key expires at 2090-01-31T18:00:00Z\n");
    let kept = run(&["key", "rotate", "ci"], &server.folder.database());
    let said = String::from_utf8(kept.stderr).unwrap();
    assert!(
        said.contains("expires at 2090-01-31T18:00:00Z, like the old one"),
        "{said}"
    );
    assert_eq!(list().matches("2090-01-31T18:00:00Z").count(), 1);
    key(
        &server,
        &["rotate", "ci", "--expires", "2091-01-31T12:00:00Z"],
    );
    assert!(list().contains("2091-01-31T12:00:00Z"));
    key(&server, &["rotate", "ci", "--expires", "9999-12-31"]);
    assert!(list().contains("9999-12-31T00:00:00Z"));
    key(&server, &["rotate", "ci", "--expires", "never"]);
    let newest = list();
    let fingerprint = newest
        .lines()
        .last()
        .unwrap()
        .split_whitespace()
        .last()
        .unwrap();
    assert_eq!(key(&server, &["revoke", "ci", fingerprint]), "revoked 1");
    assert!(
        list()
            .lines()
            .skip(1)
            .all(|line| line.contains("(expired)")),
        "{}",
        list()
    );
}

#[test]
fn key_that_expires_soon_is_in_the_log() {
    let folder = Folder::new();
    add_key(&folder.database(), &["soon"]);
    change(
        &folder.database(),
        "UPDATE api_keys SET expires_at = unixepoch() + 100000",
    );
    let (_, logged, _) = printed_and_logged(folder, &[]);
    assert_eq!(
        logged.matches("the API key 'soon' expires at ").count(),
        1,
        "{logged}"
    );
}

#[test]
fn wrong_requests_say_what_is_wrong() {
    let folder = Folder::new();
    for (words, code, said) in [
        (&["key", "list"][..], 1, messages::DATABASE_MISSING),
        (
            &["key", "add", "a", "--expires", "2020-01-01", "--create"],
            1,
            "in the past",
        ),
        (&["key", "add", ""], 1, "name"),
        (&["key", "add"], 2, "NAME"),
        (&["key", "add", "a b"], 1, "without spaces"),
        (&["key", "rotate", "a"], 1, messages::KEY_UNKNOWN),
        (&["key", "rotate", "a", "--overlap", "soon"], 2, "--overlap"),
        (&["key", "revoke", "a"], 1, messages::KEY_UNKNOWN),
        (
            &["key", "revoke", "a", "00", "11"],
            2,
            "unexpected word '11'",
        ),
    ] {
        expect_refusal(run(words, &folder.database()), code, said);
    }
}
