//! Damage that other programs and failing disks leave in the file: values that no column can have, and broken pages.

use std::os::unix::fs::FileExt;
use std::path::Path;

use rusqlite::Connection;
use serde_json::Value;

use crate::admin::metric;
use support::client::{get, post};
use support::harness::{Folder, KEY, Server, add_key, run};

/// Changes a database as the `sqlite3` shell does.
fn change(database: &Path, sql: &str) {
    Connection::open(database)
        .unwrap()
        .execute_batch(sql)
        .unwrap();
}

/// The output of a command, and its success.
fn said(words: &[&str], database: &Path) -> (bool, String, String) {
    let output = run(words, database);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (
        output.status.success(),
        text(output.stdout),
        text(output.stderr),
    )
}

/// A database with this many pets on many pages, and the damage of one page of a table or an index: of its leaves, the
/// one in this place.
fn damaged(table: &str, leaf: usize) -> Folder {
    let folder = Folder::new();
    add_key(&folder.database(), &["ci"]);
    change(
        &folder.database(),
        "WITH RECURSIVE ids(id) AS (VALUES (1) UNION ALL SELECT id + 1 FROM ids WHERE id < 1000)
            INSERT INTO pets (id, name, category_id, status) SELECT id, 'pet ' || id, 1, 'sold' FROM ids;
            PRAGMA wal_checkpoint(TRUNCATE)",
    );
    damage(&folder.database(), table, leaf);
    folder
}

/// Writes over a page, as a failing disk does.
fn damage(database: &Path, table: &str, leaf: usize) {
    let connection = Connection::open(database).unwrap();
    let sql = "SELECT rootpage FROM sqlite_schema WHERE name = ?1";
    let root: u32 = connection
        .query_row(sql, [table], |row| row.get(0))
        .unwrap();
    drop(connection);
    let file = std::fs::File::options()
        .read(true)
        .write(true)
        .open(database)
        .unwrap();
    let mut page = [0; 4096];
    file.read_exact_at(&mut page, u64::from(root - 1) * 4096)
        .unwrap();
    // sqlite.org/fileformat2.html#b_tree_pages: an inner page begins with 2 or 5, and each of its cells with a page.
    let cell = usize::from(u16::from_be_bytes([
        page[12 + 2 * leaf],
        page[13 + 2 * leaf],
    ]));
    let child = || u32::from_be_bytes(page[cell..cell + 4].try_into().unwrap());
    let number = if [2, 5].contains(&page[0]) {
        child()
    } else {
        root
    };
    file.write_all_at(&[0xa5; 4096], u64::from(number - 1) * 4096)
        .unwrap();
}

#[test]
fn text_that_is_not_utf8_is_shown_and_its_pet_is_changed_deleted_and_mended() {
    let server = Server::start();
    server.fill(["Rex", "Tom", "Max"]);
    let database = server.folder.database();
    change(
        &database,
        "UPDATE pets SET name = CAST(x'4a6f73e9' AS TEXT) WHERE id < 3",
    );
    let names = |reply: Value| -> Vec<String> {
        reply
            .as_array()
            .unwrap()
            .iter()
            .map(|pet| pet["name"].as_str().unwrap().to_owned())
            .collect()
    };
    assert_eq!(
        names(server.get("/v1/pets").expect(200).json()),
        ["Jos\u{fffd}", "Jos\u{fffd}", "Max"]
    );
    assert_eq!(
        server.get("/v1/pets/2").expect(200).json()["name"],
        "Jos\u{fffd}"
    );
    let (_, exported, _) = said(&["export", "--format", "csv"], &database);
    assert_eq!(exported.lines().nth(2), Some("2,Jos\u{fffd},1,"));
    assert_eq!(said(&["export"], &database).1.lines().count(), 3);
    let (_, pet, _) = said(&["pet", "status", "1", "sold"], &database);
    assert_eq!(
        pet,
        "{\"id\":1,\"name\":\"Jos\u{fffd}\",\"categoryId\":1,\"status\":\"sold\"}\n"
    );
    assert!(said(&["pet", "delete", "1"], &database).0);
    let (is_sound, faults, _) = said(&["check"], &database);
    assert!(
        !is_sound && faults.starts_with("pets, rowid 2: \"name\" is not UTF-8: \"Jos\u{fffd}\"; "),
        "{faults}"
    );
    assert!(!said(&["check", "--strict"], &database).0);
    // A backup is made, and is not called sound.
    let copy = server.folder.path().join("copy.db");
    let (is_made, made, _) = said(&["backup", copy.to_str().unwrap()], &database);
    assert!(
        is_made && made.contains("complete, but not sound (petstore check says why): 2 pets"),
        "{made}"
    );
    assert!(!said(&["check", "--restored", copy.to_str().unwrap()], &database).0);
    let to = server.folder.path().to_str().unwrap();
    assert!(said(&["backup", "--to", to], &database).0);
    let note = std::fs::read_to_string(server.folder.path().join("pets.db.last-backup")).unwrap();
    assert!(note.contains("\"is_sound\":false"), "{note}");
    change(&database, faults.split_once("repairs it: ").unwrap().1);
    assert!(said(&["check", "--strict"], &database).0);
    assert_eq!(
        server.get("/v1/pets/2").expect(200).json()["name"],
        "Jos\u{fffd}"
    );
}

#[test]
fn key_with_a_damaged_name_is_valid_until_it_is_revoked_or_rotated() {
    let folder = Folder::new();
    let database = folder.database();
    let [key, other, next] = ["ci", "other", "next"].map(|name| add_key(&database, &[name]));
    change(
        &database,
        "UPDATE api_keys SET name = CAST(x'63e9' AS TEXT) WHERE name IN ('ci', 'next')",
    );
    let listed = || -> Vec<Value> {
        serde_json::from_str(&said(&["key", "list", "--json"], &database).1).unwrap()
    };
    assert_eq!(
        listed()
            .iter()
            .filter(|key| key["name"] == "c\u{fffd}")
            .count(),
        2
    );
    let server = Server::start_in(folder, |command| command.env_remove("PETSTORE_API_KEY"));
    let status = |key: &str| server.connect().get("/v1/pets", key).status;
    assert_eq!([&key, &other, &next].map(|key| status(key)), [200; 3]);
    // By its fingerprint alone, as nobody can type the name.
    let fingerprint = listed()[0]["fingerprint"].as_str().unwrap().to_owned();
    assert!(
        !said(&["key", "revoke", &fingerprint[..7]], &database).0,
        "a part of it could be a name"
    );
    assert_eq!(
        said(&["key", "revoke", &fingerprint], &database).1,
        "revoked 1\n"
    );
    assert_eq!(
        [&key, &other, &next]
            .map(|key| status(key))
            .iter()
            .filter(|status| **status == 401)
            .count(),
        1
    );
    assert_eq!(status(&other), 200);
    // As it is shown, it stands for all that are shown so.
    let (is_done, new, _) = said(&["key", "rotate", "c\u{fffd}"], &database);
    assert!(is_done);
    assert_eq!(
        [&key, &next, &other, new.trim_end()].map(&status),
        [401, 401, 200, 200]
    );
    change(
        &database,
        "UPDATE api_keys SET name = CAST(x'63e9' AS TEXT) WHERE name <> 'other'",
    );
    assert!(said(&["key", "revoke", "c\u{fffd}"], &database).0);
    assert_eq!([&other, new.trim_end()].map(&status), [200, 401]);
}

#[test]
fn damaged_page_costs_the_requests_that_need_it() {
    let server = Server::start_in(damaged("pets", 1), |command| {
        command.args(["--admin", "0", "--workers", "2"])
    });
    assert_eq!(metric(&server, "database_damaged"), Some(0));
    // Some share a snapshot with those that fail.
    let bad = "/v1/pets?limit=100&after=200";
    let good = [
        "/v1/pets?limit=5",
        "/v1/pets/1000",
        "/v1/pets?after=900",
        "/v1/pets?status=sold&limit=3",
    ];
    for _ in 0..10 {
        let mut connections = [(); 10].map(|()| server.connect());
        let targets = || [bad].into_iter().chain(good).cycle();
        for (connection, target) in connections.iter_mut().zip(targets()) {
            connection.send(get(target, KEY));
        }
        for (connection, target) in connections.iter_mut().zip(targets()) {
            let reply = connection.reply();
            assert_eq!(
                reply.status,
                if target == bad { 503 } else { 200 },
                "{target}"
            );
        }
    }
    server
        .get(bad)
        .expect_error(503, "storage_unavailable", "The database is damaged");
    server
        .connect()
        .post("/v1/pets", KEY, r#"{"name":"x","categoryId":1}"#)
        .expect(503);
    server.send(post("/v1/pets", "wrong", "{}")).expect(401);
    server
        .get("/readyz")
        .expect_error(503, "storage_unavailable", "The database is damaged");
    server.get("/healthz").expect(200);
    assert_eq!(metric(&server, "database_damaged"), Some(1));
    let logged = server.stop();
    assert_eq!(
        logged
            .lines()
            .filter(|line| line.contains(" ERROR "))
            .count(),
        1,
        "{logged}"
    );
}

#[test]
fn start_serves_what_it_can_and_writes_until_it_meets_damage() {
    let folder = damaged("pets", 1);
    for _ in 0..2 {
        let server = Server::start_in(Folder::new(), |command| {
            command.env("PETSTORE_DATABASE", folder.database())
        });
        server.get("/readyz").expect(200);
        server.fill(["new"]);
        server.get("/v1/pets/300").expect(503);
        server
            .connect()
            .post("/v1/pets", KEY, r#"{"name":"x","categoryId":1}"#)
            .expect(503);
    }
}

#[test]
fn writer_that_meets_damage_refuses_writes_and_the_others_read() {
    // The page to which the next pet goes.
    let server = Server::start_in(damaged("pets_by_status", 0), |command| command);
    for _ in 0..3 {
        let pet = r#"{"name":"x","categoryId":1,"status":"available"}"#;
        server.connect().post("/v1/pets", KEY, pet).expect_error(
            503,
            "storage_unavailable",
            "damaged",
        );
        server
            .connect()
            .post("/v1/pets", KEY, r#"{"name":"x","categoryId":1}"#)
            .expect(503);
        server.get("/v1/pets").expect(200);
        server.get("/readyz").expect(503);
    }
    let logged = server.stop();
    assert_eq!(
        logged
            .lines()
            .filter(|line| line.contains(" ERROR "))
            .count(),
        1,
        "{logged}"
    );
}

#[test]
fn damaged_keys_keep_no_service_from_starting() {
    for table in ["api_keys", "sqlite_autoindex_api_keys_1"] {
        let folder = Folder::new();
        let key = add_key(&folder.database(), &["ci"]);
        damage(&folder.database(), table, 0);
        let server = Server::start_in(folder, |command| command.env_remove("PETSTORE_API_KEY"));
        server.connect().get("/v1/pets", &key).expect(503);
        server.get("/healthz").expect(200);
        server.get("/readyz").expect(503);
        drop(server);
        let server = Server::start_in(damaged(table, 0), |command| command);
        server.get("/v1/pets").expect(200);
    }
}

#[test]
fn service_that_only_reads_goes_on_too() {
    let server = Server::start_in(damaged("pets", 1), |command| command.arg("--read-only"));
    server.get("/readyz").expect(200);
    server.get("/v1/pets/300").expect(503);
    server.get("/v1/pets/1").expect(200);
    server.get("/readyz").expect(503);
    server.get("/healthz").expect(200);
}

#[test]
fn dump_is_not_taken_for_another_application_and_the_sql_of_its_message_mends_it() {
    let folder = Folder::new();
    add_key(&folder.database(), &["ci"]);
    // `.dump` leaves these out.
    change(
        &folder.database(),
        "PRAGMA application_id = 0; PRAGMA user_version = 0",
    );
    let (_, _, error) = said(&["key", "list"], &folder.database());
    assert!(
        !error.contains(crate::messages::ANOTHER_APPLICATION),
        "{error}"
    );
    let (_, sql) = error.split_once("this SQL repairs it: ").unwrap();
    // The advice follows the second statement.
    change(
        &folder.database(),
        &sql.split(';').take(2).collect::<Vec<_>>().join(";"),
    );
    assert!(said(&["check"], &folder.database()).0);
    assert!(said(&["key", "list"], &folder.database()).1.contains("ci "));
}

#[test]
fn file_with_a_damaged_first_page_says_so() {
    let folder = damaged("pets", 0);
    let file = std::fs::File::options()
        .write(true)
        .open(folder.database())
        .unwrap();
    file.write_all_at(&[0xa5; 100], 0).unwrap();
    let (_, _, error) = said(&["export"], &folder.database());
    assert!(error.contains("or its first page is damaged"), "{error}");
}
