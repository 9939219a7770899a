//! The engine against real nodes. Needs `RQLITED`: run by `scripts/test.d/cluster`.

mod batches;
mod copies;
mod reads;
mod replicas;
mod starts;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::model::{ApiKey, Caller, IdempotencyKey, KeyScope, NewPet, Pet, PetPatch, PetStatus};
use crate::store::outcome::{Committed, Inserted, Outcome};
use crate::store::pets::tests::new_pet;
use crate::store::reader::Engine;
use crate::store::{Cause, Reader, StoreError, Transaction, Whole, Writer};
use client::ClusterValue;
use support::rqlite_nodes::Nodes;

/// A cluster of `count` nodes without a database, and its address.
fn cluster(count: usize) -> (Nodes, PathBuf) {
    let nodes = Nodes::start(count);
    let path = nodes.address().into();
    (nodes, path)
}

/// A writer. For a client of its own, pass a `turned` path.
fn writer(path: &Path) -> Writer {
    let client = connect(path).unwrap();
    schema::migrate(&client, path).unwrap();
    Writer::new(Engine::Cluster(
        ClusterConnection::new(Session::new(client).unwrap())
            .unwrap()
            .into(),
    ))
}

fn session(path: &Path) -> Reader {
    let client = connect(path).unwrap();
    let connection = ClusterConnection::new(Session::new(client).unwrap()).unwrap();
    Reader {
        engine: Engine::Cluster(connection.into()),
    }
}

/// The connection of a reader or a writer.
fn connection(reader: &Reader) -> &ClusterConnection {
    let Engine::Cluster(connection) = &reader.engine else {
        panic!("a file")
    };
    connection
}

fn connection_mut(writer: &mut Writer) -> &mut ClusterConnection {
    let Engine::Cluster(connection) = &mut writer.reader.engine else {
        panic!("a file")
    };
    connection
}

/// The address with the hosts in another order, so that another client is made for it.
fn turned(path: &Path) -> PathBuf {
    let text = path.to_str().unwrap().strip_prefix("rqlite://").unwrap();
    let (hosts, rest) = text.split_once('/').unwrap();
    let mut hosts: Vec<&str> = hosts.split(',').collect();
    hosts.rotate_left(1);
    format!("rqlite://{}/{rest}", hosts.join(",")).into()
}

/// Runs a statement as another program would, such as rqlite's shell.
fn run(path: &Path, sql: &str) {
    let client = connect(path).unwrap();
    let statement = client::Statement::plain(sql.to_owned());
    client.write(&[statement], schema::PATIENCE).unwrap();
}

fn number(path: &Path, sql: &str) -> i64 {
    let client = connect(path).unwrap();
    let rows = client
        .read(
            &[client::Statement::plain(sql.to_owned())],
            client.fresh,
            schema::PATIENCE,
        )
        .unwrap();
    match rows[0][0][0] {
        ClusterValue::Integer(number) => number,
        ref other => panic!("{other:?}"),
    }
}

fn all_names(reader: &Reader) -> Vec<String> {
    let mut names = Vec::new();
    let every = reader.visit_every_pet(|pet| {
        names.push(pet.name.into_owned());
        ControlFlow::Continue(())
    });
    every.unwrap();
    names
}

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::new(Caller::extra(), text.as_bytes())
}

fn once(writer: &mut Writer, name: &str, text: &str) -> Inserted {
    writer.insert_pet(&new_pet(name), Some(&key(text))).unwrap()
}

fn outcomes(pets: &[Inserted], committed: &Committed) -> Vec<Outcome> {
    pets.iter()
        .map(|pet| pet.outcome(committed).unwrap())
        .collect()
}

fn api_key(number: u8) -> ApiKey {
    let (digest, name) = ([number; 32], "ci".to_owned());
    ApiKey {
        digest,
        name,
        scope: KeyScope::Full,
        created_at: 0,
        expires_at: None,
        last_used_at: None,
    }
}

#[test]
fn pets_and_keys_are_stored_exactly() {
    let (_nodes, path) = cluster(1);
    let mut writer = writer(&path);
    let names = [
        "",
        "a\0b\0",
        "'; DROP TABLE pets; --",
        "\u{1f600}\u{202e}\"\\",
        "?1",
        "é",
    ];
    let numbers = [i64::MIN, i64::MAX, 0, -1, 1 << 53, (1 << 53) + 1];
    let pets: Vec<Inserted> = (names.iter().zip(numbers).enumerate())
        .map(|(i, (name, category_id))| {
            let status = [None, Some(PetStatus::Sold)][i % 2];
            writer
                .insert_pet(
                    &NewPet {
                        status,
                        ..NewPet::new(*name, category_id)
                    },
                    None,
                )
                .unwrap()
        })
        .collect();
    let committed = writer.commit().unwrap();
    let mut session = session(&path);
    for (i, pet) in pets.iter().enumerate() {
        let found = session.pet(pet.id(&committed), |pet: Pet| {
            (pet.name.into_owned(), pet.category_id, pet.status)
        });
        let status = [None, Some(PetStatus::Sold)][i % 2];
        assert_eq!(found, Ok(Some((names[i].to_owned(), numbers[i], status))));
    }
    // A read after a batch is not older than the batch.
    session.begin().unwrap();
    session.end().unwrap();
    writer
        .transact(|writer| writer.insert_key(&api_key(7)))
        .unwrap();
    assert_eq!(session.key(&[7; 32]), Ok(Some(api_key(7))));
    assert_eq!(session.key(&[8; 32]), Ok(None));
    assert_eq!(session.has_had_keys(), Ok(true));
}

/// A server at this address that answers each request with this body, or hangs up.
pub fn pretender(answer: impl Fn(usize) -> Option<String> + Send + 'static) -> String {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("rqlite://{}", listener.local_addr().unwrap());
    thread::spawn(move || {
        for (request, stream) in listener.incoming().enumerate() {
            let (mut stream, mut asked, mut buffer) = (stream.unwrap(), Vec::new(), [0; 4096]);
            // The end of a list of statements.
            while !asked.ends_with(b"]") {
                let count = stream.read(&mut buffer).unwrap();
                asked.extend_from_slice(&buffer[..count]);
            }
            let Some(body) = answer(request) else {
                continue;
            };
            let head = "HTTP/1.1 200 OK\r\nX-Rqlite-Version: v9.4.0\r\nConnection: close\r\nContent-Length:";
            stream
                .write_all(format!("{head} {}\r\n\r\n{body}", body.len()).as_bytes())
                .unwrap();
        }
    });
    address
}

/// Does some work, and returns the number of requests that it takes.
fn requests<T>(client: &client::Client, work: impl FnOnce() -> T) -> (T, u64) {
    let asked = || {
        client
            .meters()
            .iter()
            .map(|meter| meter.requests)
            .sum::<u64>()
    };
    let before = asked();
    (work(), asked() - before)
}

#[test]
fn password_of_the_program_is_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("rqlite://pets@{}/", listener.local_addr().unwrap());
    super::set_database_password(&address, "hush");
    let node = thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = [0; 1000];
        let length = stream.read(&mut request).unwrap();
        let refusal = b"HTTP/1.1 401 Unauthorized\r\nContent-Length: 0\r\n\r\n";
        stream.write_all(refusal).unwrap();
        String::from_utf8_lossy(&request[..length]).to_lowercase()
    });
    let refused = connect(Path::new(&address)).err().unwrap();
    assert_eq!(refused.kind(), ErrorKind::PasswordRefused);
    let request = node.join().unwrap();
    let expected = STANDARD.encode("pets:hush").to_lowercase();
    assert!(
        request.contains(&format!("authorization: basic {expected}\r\n")),
        "{request}"
    );
}

#[test]
fn connections_of_a_process_share_a_client_and_what_it_has_counted() {
    let (_nodes, path) = cluster(1);
    let asked = || -> u64 {
        crate::store::meters(&path)
            .iter()
            .map(|meter| meter.requests)
            .sum()
    };
    for _ in 0..2 {
        let client = connect(&path).unwrap();
        assert!(Arc::ptr_eq(&client, &connect(&path).unwrap()));
        let before = asked();
        number(&path, "SELECT 1");
        assert_eq!(asked(), before + 1);
    }
    assert_eq!(meters(Path::new("rqlite://")).len(), 0, "it is no address");
}

#[test]
fn changes_name_every_column() {
    for column in crate::store::statements::COLUMNS {
        assert!(
            batch::UPDATE.contains(&format!(" {column} = ?"))
                && batch::UPDATE.contains(&format!(" AND {column} IS ?"))
                && batch::DELETE.contains(&format!(" AND {column} IS ?")),
            "{column}"
        );
    }
}
