//! Pets without HTTP, next to a server in the same process: each sees at once what the other has added.

use std::sync::atomic::{AtomicBool, Ordering};

use petstore::{
    Config, Ephemeral, ErrorKind, Inventory, KeyRing, KeyScope, ListOptions, NewPet, Server,
};

use support::client::{Connection, with_body};
use support::harness::Folder;

const KEY: &str = "test-key";

fn config(folder: &Folder) -> Config {
    crate::config(folder).api_key(KEY)
}

fn ask(server: &Server, method: &str, target: &str, body: &str, expected: u16) -> String {
    let mut connection = Connection::open(server.address().tcp().unwrap());
    connection.send(with_body(
        method,
        target,
        KEY,
        "Connection: close\r\n",
        body,
    ));
    String::from_utf8(connection.reply().expect(expected).body.clone()).unwrap()
}

#[test]
fn server_and_inventory_show_the_same_pets() {
    let folder = Folder::new();
    let server = Server::start(config(&folder)).unwrap();
    let mut inventory = server.inventory().unwrap();
    // The list is cached.
    assert_eq!(ask(&server, "GET", "/v1/pets", "", 200), "[]");
    let rex = inventory.add(&NewPet::new("Rex", 3)).unwrap();
    let json = serde_json::to_string(&rex).unwrap();
    assert_eq!(
        ask(&server, "GET", "/v1/pets", "", 200),
        format!("[{json}]")
    );
    let tom = ask(
        &server,
        "POST",
        "/v1/pets",
        r#"{"name":"Tom","categoryId":3,"status":"sold"}"#,
        201,
    );
    let listed = inventory.list(&ListOptions::default()).unwrap();
    assert_eq!(
        serde_json::to_string(&listed).unwrap(),
        format!("[{json},{tom}]")
    );
    server.stopper().stop();
    server.wait().unwrap();
    assert_eq!(
        inventory.add(&NewPet::new("Ada", 3)).unwrap().id,
        3,
        "it outlives the server"
    );
}

#[test]
fn threads_and_clients_add_at_the_same_time() {
    let folder = Folder::new();
    let server = Server::start(config(&folder)).unwrap();
    let ended = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let clients = scope.spawn(|| {
            let mut created = 0;
            while !ended.load(Ordering::Relaxed) {
                ask(
                    &server,
                    "POST",
                    "/v1/pets",
                    r#"{"name":"Rex","categoryId":3}"#,
                    201,
                );
                created += 1;
            }
            created
        });
        let threads = [0, 1, 2]
            .map(|_| server.inventory().unwrap())
            .map(|mut inventory| {
                scope.spawn(move || {
                    let add = |_| inventory.add(&NewPet::new("Tom", 3)).unwrap().id;
                    (0..50).map(add).collect::<Vec<_>>()
                })
            });
        let mut ids: Vec<i64> = threads
            .into_iter()
            .flat_map(|thread| thread.join().unwrap())
            .collect();
        ended.store(true, Ordering::Relaxed);
        let created = clients.join().unwrap();
        ids.sort_unstable();
        ids.dedup();
        assert_eq!(ids.len(), 150);
        let mut options = ListOptions::default();
        options.limit = u32::MAX;
        let all = Inventory::open(&folder.database())
            .unwrap()
            .list(&options)
            .unwrap();
        assert_eq!(all.len(), 150 + created);
    });
}

#[test]
fn inventory_of_a_read_only_server_only_reads() {
    let folder = Folder::new();
    drop(Inventory::open(&folder.database()).unwrap());
    let mut config = config(&folder);
    config.read_only = true;
    let server = Server::start(config).unwrap();
    let mut inventory = server.inventory().unwrap();
    assert_eq!(inventory.get(1).unwrap(), None);
    let failed = inventory.add(&NewPet::new("Rex", 3)).unwrap_err();
    assert_eq!(failed.kind(), ErrorKind::PermissionDenied, "{failed}");
}

#[test]
fn inventory_of_an_ephemeral_server_has_its_samples() {
    let folder = Folder::new();
    let mut ephemeral = Ephemeral::default();
    ephemeral.sample = 3;
    let server = Server::start(config(&folder).ephemeral(ephemeral)).unwrap();
    let mut inventory = server.inventory().unwrap();
    assert_eq!(inventory.list(&ListOptions::default()).unwrap().len(), 3);
    assert_eq!(inventory.add(&NewPet::new("Rex", 3)).unwrap().id, 4);
    ask(&server, "GET", "/v1/pets/4", "", 200);
}

#[test]
fn inventory_of_a_deleted_database_makes_no_new_one() {
    let folder = Folder::new();
    let server = Server::start(config(&folder)).unwrap();
    let mut inventory = server.inventory().unwrap();
    std::fs::remove_file(folder.database()).unwrap();
    assert_eq!(
        server.inventory().unwrap_err().kind(),
        ErrorKind::DatabaseMissing
    );
    assert_eq!(
        inventory.add(&NewPet::new("Rex", 3)).unwrap_err().kind(),
        ErrorKind::DatabaseMoved
    );
}

#[test]
fn ephemeral_server_gets_keys_by_its_database() {
    let folder = Folder::new();
    let server = Server::start(config(&folder).ephemeral(Ephemeral::default())).unwrap();
    let mut reader = String::new();
    let mut ring = KeyRing::open(server.database()).unwrap();
    ring.add("reader", None, KeyScope::ReadOnly, |key| {
        reader = key.to_owned();
        Ok(())
    })
    .unwrap();
    let ask = |method, body| {
        let mut connection = Connection::open(server.address().tcp().unwrap());
        connection.send(with_body(
            method,
            "/v1/pets",
            &reader,
            "Connection: close\r\n",
            body,
        ));
        connection.reply().status
    };
    assert_eq!(
        [
            ask("GET", ""),
            ask("POST", r#"{"name":"Rex","categoryId":3}"#)
        ],
        [200, 403]
    );
}
