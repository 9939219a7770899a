//! `petstore pet …` on a running server.

use crate::backup::succeed;
use crate::messages;
use support::harness::{Folder, Server, expect_refusal, run};

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
        expect_list(&server, "/v1/pets?limit=1&after=1", r#"[{"id":2,"name":"Tom","categoryId":1}]"#);
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
    let rex = pet(&server, &["set", "1", "--name", "Rex", "--category", "-3", "--status", "pending"]);
    assert_eq!(rex, "{\"id\":1,\"name\":\"Rex\",\"categoryId\":-3,\"status\":\"pending\"}\n");
    assert_eq!(pet(&server, &["set", "1", "--name="]).lines().count(), 1);
    let sold = pet(&server, &["status", "2", "1", "sold"]);
    let tom = r#"{"id":2,"name":"Tom","categoryId":1,"status":"sold"}"#;
    assert_eq!(sold, format!("{tom}\n{{\"id\":1,\"name\":\"\",\"categoryId\":-3,\"status\":\"sold\"}}\n"));
    assert_eq!(pet(&server, &["status", "2", "none"]), tom.replace(",\"status\":\"sold\"", "") + "\n");
    expect_list(&server, "/v1/pets/1", r#"{"id":1,"name":"","categoryId":-3,"status":"sold"}"#);
}

#[test]
fn deleted_pets_are_gone_at_once_and_their_ids_too() {
    let server = Server::start();
    server.fill(["Rex", "Tom", "Ada"]);
    for _ in 0..2 {
        assert_eq!(server.get("/v1/pets").json().as_array().unwrap().len(), 3);
    }
    assert_eq!(pet(&server, &["delete", "3", "1"]), "deleted 2\n");
    expect_list(&server, "/v1/pets", r#"[{"id":2,"name":"Tom","categoryId":1}]"#);
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
        (&["1", "2", "9"], "there is no pet with the id 9; nothing was changed"),
    ] {
        let output = run(&[&["pet", "delete"][..], ids].concat(), &server.folder.database());
        expect_refusal(output, 1, &format!("petstore: {why}\n"));
    }
    assert_eq!(server.get("/v1/pets").json().as_array().unwrap().len(), 2);
}

#[test]
fn id_that_is_given_twice_deletes_nothing() {
    let server = Server::start();
    server.fill(["Rex", "Tom"]);
    let output = run(&["pet", "delete", "1", "2", "1"], &server.folder.database());
    expect_refusal(output, 1, "petstore: the id 1 is given twice; nothing was changed\n");
    assert_eq!(server.get("/v1/pets").json().as_array().unwrap().len(), 2);
}

#[test]
fn pet_that_others_keep_is_named_and_not_deleted() {
    let server = Server::start();
    server.fill(["Rex", "Tom"]);
    let other = rusqlite::Connection::open(server.folder.database()).unwrap();
    let refuse = |ids: &[&str], why: &str| {
        let output = run(&[&["pet", "delete"][..], ids].concat(), &server.folder.database());
        expect_refusal(output, 1, &format!("petstore: {why}\n"));
        assert_eq!(server.get("/v1/pets").json().as_array().unwrap().len(), 2);
    };
    let visits = "CREATE TABLE visits (pet INTEGER REFERENCES Pets (id)); INSERT INTO visits VALUES (2)";
    other.execute_batch(visits).unwrap();
    refuse(&["1", "2"], "the pet 2 cannot be changed: FOREIGN KEY constraint failed; nothing was changed");
    let trigger = "DROP TABLE visits;
        CREATE TRIGGER stay BEFORE DELETE ON pets BEGIN SELECT RAISE(ABORT, 'not today'); END";
    other.execute_batch(trigger).unwrap();
    refuse(&["2"], "the pet 2 cannot be changed: not today");
}

#[test]
fn wrong_words_are_named() {
    let folder = Folder::new();
    let said = |words: &[&str], code: i32, said: &str| {
        expect_refusal(run(&[&["pet"], words].concat(), &folder.database()), code, said);
    };
    said(&["delete", "1"], 1, crate::messages::DATABASE_MISSING);
    assert!(!folder.database().exists());
    run(&["key", "add", "ci", "--create"], &folder.database());
    said(&["status", "1", "sold"], 1, messages::PET_UNKNOWN);
    said(&["delete", "1"], 1, messages::PET_UNKNOWN);
    said(&["status", "1", "Sold"], 2, "STATUS must be 'available', 'pending' or 'sold', or none, not 'Sold'");
    said(&["status", "one", "sold"], 2, "not 'one'");
    said(&["delete", "1", "9223372036854775808"], 2, "not '9223372036854775808'");
    said(&["delete"], 2, "pet delete needs ID");
    said(&["status", "1"], 2, "pet status needs STATUS");
    said(&["set", "1"], 2, "pet set needs --name, --category or --status");
    said(&["set", "1", "--category", "x"], 2, "--category must be a 64-bit integer, not 'x'");
    said(&["set", "1", "--status", "gone"], 2, "or none, not 'gone'");
    said(&["set", "1", "2", "--name", "x"], 2, "unexpected word '2'");
}
