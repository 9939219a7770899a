//! `petstore pet …` on a running server.

use crate::backup::succeed;
use crate::messages;
use support::client::with_body;
use support::harness::{Folder, KEY, Server, change, expect_refusal, run};

/// Runs the command, and returns what it printed.
#[track_caller]
fn pet(server: &Server, words: &[&str]) -> String {
    succeed(&[&["pet"], words].concat(), &server.folder.database())
}

#[track_caller]
fn expect_list(server: &Server, target: &str, body: &str) {
    assert_eq!(String::from_utf8(server.get(target).body).unwrap(), body);
}

#[test]
fn changed_status_is_seen_by_lists_at_once() {
    let server = Server::start();
    server.fill(["Rex", "Tom"]);
    // So that the worker caches the lists.
    for _ in 0..2 {
        expect_list(&server, "/v1/pets?status=sold", "[]");
        expect_list(
            &server,
            "/v1/pets?limit=1&after=1",
            r#"[{"id":2,"name":"Tom","categoryId":1}]"#,
        );
    }
    let sold = r#"{"id":2,"name":"Tom","categoryId":1,"status":"sold"}"#;
    assert_eq!(pet(&server, &["status", "2", "sold"]), format!("{sold}\n"));
    expect_list(&server, "/v1/pets?status=sold", &format!("[{sold}]"));
    expect_list(&server, "/v1/pets?limit=1&after=1", &format!("[{sold}]"));
    pet(&server, &["status", "2", "pending"]);
    expect_list(&server, "/v1/pets?status=sold", "[]");
}

#[test]
fn pets_are_mended_and_several_are_sold_at_once() {
    let server = Server::start();
    server.fill(["Rxe", "Tom"]);
    let rex = pet(
        &server,
        &[
            "set",
            "1",
            "--name",
            "Rex",
            "--category",
            "-3",
            "--status",
            "pending",
        ],
    );
    assert_eq!(
        rex,
        "{\"id\":1,\"name\":\"Rex\",\"categoryId\":-3,\"status\":\"pending\"}\n"
    );
    assert_eq!(pet(&server, &["set", "1", "--name="]).lines().count(), 1);
    let sold = pet(&server, &["status", "2", "1", "sold"]);
    let tom = r#"{"id":2,"name":"Tom","categoryId":1,"status":"sold"}"#;
    assert_eq!(
        sold,
        format!("{tom}\n{{\"id\":1,\"name\":\"\",\"categoryId\":-3,\"status\":\"sold\"}}\n")
    );
    assert_eq!(
        pet(&server, &["status", "2", "none"]),
        tom.replace(",\"status\":\"sold\"", "") + "\n"
    );
    expect_list(
        &server,
        "/v1/pets/1",
        r#"{"id":1,"name":"","categoryId":-3,"status":"sold"}"#,
    );
}

#[test]
fn deleted_pets_are_gone_at_once_and_their_ids_too() {
    let server = Server::start();
    server.fill(["Rex", "Tom", "Ada"]);
    for _ in 0..2 {
        assert_eq!(server.get("/v1/pets").json().as_array().unwrap().len(), 3);
    }
    assert_eq!(pet(&server, &["delete", "3", "1"]), "deleted 2\n");
    expect_list(
        &server,
        "/v1/pets",
        r#"[{"id":2,"name":"Tom","categoryId":1}]"#,
    );
    server.get("/v1/pets/3").expect(404);
    let created = server.create(r#"{"name":"Bob","categoryId":1}"#);
    assert_eq!(created.expect(201).json()["id"], 4);
}

#[test]
fn delete_is_all_or_nothing() {
    let server = Server::start();
    server.fill(["Rex", "Tom"]);
    for (ids, why) in [
        (&["9"][..], "there is no pet with the id 9"),
        (
            &["1", "2", "9"],
            "there is no pet with the id 9; nothing was changed",
        ),
    ] {
        let output = run(
            &[&["pet", "delete"][..], ids].concat(),
            &server.folder.database(),
        );
        expect_refusal(output, 1, &format!("petstore: {why}\n"));
    }
    assert_eq!(server.get("/v1/pets").json().as_array().unwrap().len(), 2);
}

#[test]
fn id_that_is_given_twice_deletes_nothing() {
    let server = Server::start();
    server.fill(["Rex", "Tom"]);
    let output = run(&["pet", "delete", "1", "2", "1"], &server.folder.database());
    expect_refusal(
        output,
        1,
        "petstore: the id 1 is given twice; nothing was changed\n",
    );
    assert_eq!(server.get("/v1/pets").json().as_array().unwrap().len(), 2);
}

#[test]
fn pet_that_others_keep_is_named_and_not_deleted() {
    let server = Server::start();
    server.fill(["Rex", "Tom"]);
    let other = rusqlite::Connection::open(server.folder.database()).unwrap();
    let refuse = |ids: &[&str], why: &str| {
        let output = run(
            &[&["pet", "delete"][..], ids].concat(),
            &server.folder.database(),
        );
        expect_refusal(output, 1, &format!("petstore: {why}\n"));
        assert_eq!(server.get("/v1/pets").json().as_array().unwrap().len(), 2);
    };
    let visits =
        "CREATE TABLE visits (pet INTEGER REFERENCES Pets (id)); INSERT INTO visits VALUES (2)";
    other.execute_batch(visits).unwrap();
    refuse(
        &["1", "2"],
        "the pet 2 cannot be changed: a rule of another program in the database rejects it: FOREIGN KEY constraint failed; nothing was changed",
    );
    let trigger = "DROP TABLE visits;
        CREATE TRIGGER stay BEFORE DELETE ON pets BEGIN SELECT RAISE(ABORT, 'not today'); END";
    other.execute_batch(trigger).unwrap();
    refuse(
        &["2"],
        "the pet 2 cannot be changed: a rule of another program in the database rejects it: not today",
    );
}

#[test]
fn wrong_words_are_named() {
    let folder = Folder::new();
    let said = |words: &[&str], code: i32, said: &str| {
        expect_refusal(
            run(&[&["pet"], words].concat(), &folder.database()),
            code,
            said,
        );
    };
    said(&["delete", "1"], 1, crate::messages::DATABASE_MISSING);
    assert!(!folder.database().exists());
    run(&["key", "add", "ci", "--create"], &folder.database());
    said(&["status", "1", "sold"], 1, messages::PET_UNKNOWN);
    said(&["delete", "1"], 1, messages::PET_UNKNOWN);
    said(
        &["status", "1", "Sold"],
        2,
        "STATUS must be 'available', 'pending' or 'sold', or none, not 'Sold'",
    );
    said(&["status", "one", "sold"], 2, "not 'one'");
    said(
        &["delete", "1", "9223372036854775808"],
        2,
        "not '9223372036854775808'",
    );
    said(&["delete"], 2, "pet delete needs ID");
    said(&["status", "1"], 2, "pet status needs STATUS");
    said(
        &["set", "1"],
        2,
        "pet set needs --name, --category or --status",
    );
    said(
        &["set", "1", "--category", "x"],
        2,
        "--category must be a 64-bit integer, not 'x'",
    );
    said(&["set", "1", "--status", "gone"], 2, "or none, not 'gone'");
    for range in ["1..", "..1", "3..1", "1..x", "1...2", "1..2..3"] {
        let wrong = format!("the id of a pet, or a range such as 5..9, not '{range}'");
        said(&["delete", range], 2, &wrong);
    }
}

#[test]
fn range_names_the_pets_that_are_there() {
    let server = Server::start();
    server.fill(["a", "b", "c", "d", "e"]);
    pet(&server, &["delete", "2"]);
    let changed = pet(&server, &["status", "1..3", "5", "sold"]);
    assert_eq!(changed.lines().count(), 3);
    assert_eq!(
        pet(&server, &["set", "4..4", "--name", "x"])
            .lines()
            .count(),
        1
    );
    let everything = format!("{}..{}", i64::MIN, i64::MAX);
    let gone = format!("deleted 4; {} ids of the range have no pet\n", u64::MAX - 3);
    assert_eq!(pet(&server, &["delete", "--", &everything]), gone);
    assert_eq!(
        pet(&server, &["delete", "1..1"]),
        "deleted 0; 1 id of the range has no pet\n"
    );
    expect_list(&server, "/v1/pets", "[]");
}

#[test]
fn name_is_set_to_the_letter() {
    let server = Server::start();
    server.fill(["Rex"]);
    for name in ["\"Rex\"", "'Rex' ", " Rex\u{85}", "Rex\nII", ""] {
        let shown = serde_json::json!({"id": 1, "name": name, "categoryId": 1});
        let said = pet(&server, &["set", "1", "--name", name]);
        assert_eq!(
            serde_json::from_str::<serde_json::Value>(&said).unwrap(),
            shown
        );
    }
}

#[test]
fn name_of_a_deleted_pet_is_erased_as_the_guide_says() {
    let server = Server::start();
    let names: Vec<String> = (0..300).map(|i| format!("Zorro{i:04}")).collect();
    server.fill(names.iter().map(String::as_str));
    let mut connection = server.connect();
    let pet_once = r#"{"name":"Zorro once","categoryId":1}"#;
    let once = "Idempotency-Key: one\r\n";
    connection.send(with_body("POST", "/v1/pets", KEY, once, pet_once));
    connection.reply().expect(201);
    pet(&server, &["delete", "1..301"]);
    let folder = server.kill();
    let database = folder.database();
    let is_there = || {
        let files = std::fs::read_dir(folder.path()).unwrap();
        let mut bytes = files.map(|file| std::fs::read(file.unwrap().path()).unwrap());
        bytes.any(|bytes| bytes.windows(5).any(|part| part == b"Zorro"))
    };
    assert!(is_there(), "as the guide says");
    let guide = include_str!("../../src/site/pages/data.md");
    let statement = guide
        .lines()
        .find_map(|line| line.strip_prefix("sqlite3 petstore.db "));
    change(&database, statement.unwrap());
    assert!(!is_there());
    succeed(&["check"], &database);
}
