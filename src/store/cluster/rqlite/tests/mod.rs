//! The engine against real nodes. Needs `RQLITED`: run by `scripts/test.d/cluster`.

mod batches;
mod copies;
mod reads;
mod replicas;
mod starts;

use std::io::{Read, Write};
use std::net::TcpListener;
use std::path::PathBuf;
use std::thread;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;
use crate::model::{
    ApiKey, Caller, IdempotencyKey, KeyScope, NewPet, Page, Pet, PetQuery, PetStatus,
};
use crate::store::cluster::{Done, Keys, Work, whole};
use crate::store::{Cause, Outcome, StoreError};
use petstore_cluster::ClusterValue;
use support::rqlite_nodes::Nodes;

/// A cluster of `count` nodes without a database, and its address.
fn cluster(count: usize) -> (Nodes, PathBuf) {
    let nodes = Nodes::start(count);
    let path = nodes.address().into();
    (nodes, path)
}

/// A connection. For a client of its own, pass a `turned` path.
fn open(path: &Path) -> Cluster {
    Cluster::open(path).unwrap()
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
pub fn run(path: &Path, sql: &str) {
    let client = connect(path).unwrap();
    let statement = petstore_cluster::Statement::plain(sql.to_owned());
    client.write(&[statement], schema::PATIENCE).unwrap();
}

fn number(path: &Path, sql: &str) -> i64 {
    let client = connect(path).unwrap();
    let rows = client
        .read(
            &[petstore_cluster::Statement::plain(sql.to_owned())],
            client.fresh,
            schema::PATIENCE,
        )
        .unwrap();
    match rows[0][0][0] {
        ClusterValue::Integer(number) => number,
        ref other => panic!("{other:?}"),
    }
}

/// The names of all pets, in the order of their ids.
fn all_names(path: &Path) -> Vec<String> {
    let mut cluster = open(path);
    cluster.begin().unwrap();
    let page = Page::ascending(100, None);
    let pets = cluster.list(&PetQuery::all(page)).unwrap();
    pets.into_iter().map(|pet| pet.name.into_owned()).collect()
}

fn key(text: &str) -> IdempotencyKey {
    IdempotencyKey::new(Caller::extra(), text.as_bytes())
}

fn new_pet(name: &str) -> NewPet<'static> {
    NewPet {
        status: Some(PetStatus::Available),
        ..NewPet::new(name.to_owned(), 1)
    }
}

fn create(name: &str) -> Work {
    Work::Create {
        new: new_pet(name),
        key: None,
    }
}

fn once(name: &str, text: &str) -> Work {
    Work::Create {
        new: new_pet(name),
        key: Some(key(text)),
    }
}

const fn made(id: i64) -> Done {
    Done::Created(Outcome::Made(id))
}

const fn replayed(id: i64) -> Done {
    Done::Created(Outcome::Replayed(id))
}

const REUSED: Done = Done::Created(Outcome::Reused);

/// Carries out work of which no part fails.
fn commit(cluster: &mut Cluster, work: &[Work]) -> Vec<Done> {
    let done = cluster.commit(work).unwrap();
    done.into_iter().map(Result::unwrap).collect()
}

/// Adds a key, or deletes it.
fn add_key(cluster: &mut Cluster, key: ApiKey) {
    cluster.begin().unwrap();
    let newest = cluster.keys().unwrap().all.last().map(|key| key.digest);
    assert_eq!(
        cluster.commit_all(&[Work::AddKey { key, newest }]),
        Ok(vec![Done::Changed])
    );
}

/// The digests of the keys, as a batch sees them.
fn digests(cluster: &mut Cluster) -> Vec<u8> {
    cluster.begin().unwrap();
    let keys = cluster.keys().unwrap().all;
    keys.iter().map(|key| key.digest[0]).collect()
}

/// The pet with this id.
fn pet(cluster: &mut Cluster, id: i64) -> Option<Pet<'static>> {
    cluster.begin().unwrap();
    cluster.pets(&[id]).unwrap().remove(&id)
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
    let mut cluster = open(&path);
    let names = [
        "",
        "a\0b\0",
        "'; DROP TABLE pets; --",
        "\u{1f600}\u{202e}\"\\",
        "?1",
        "é",
    ];
    let numbers = [i64::MIN, i64::MAX, 0, -1, 1 << 53, (1 << 53) + 1];
    let pets: Vec<NewPet> = (names.iter().zip(numbers).enumerate())
        .map(|(i, (name, category_id))| NewPet {
            status: [None, Some(PetStatus::Sold)][i % 2],
            ..NewPet::new(*name, category_id)
        })
        .collect();
    let create = |new: &NewPet<'static>| Work::Create {
        new: new.clone(),
        key: None,
    };
    let done = commit(&mut cluster, &pets.iter().map(create).collect::<Vec<_>>());
    for (new, id) in pets.into_iter().zip(1..) {
        assert_eq!(done[id as usize - 1], made(id));
        assert_eq!(pet(&mut cluster, id), Some(new.with_id(id)));
    }
    assert_eq!(cluster.keys(), Ok(Keys::default()));
    for scope in [KeyScope::Full, KeyScope::ReadOnly, KeyScope::Admin] {
        let key = ApiKey {
            scope,
            expires_at: Some(7),
            ..api_key(scope as u8)
        };
        add_key(&mut cluster, key.clone());
        cluster.begin().unwrap();
        let keys = cluster.keys().unwrap();
        assert_eq!((keys.all.last(), keys.has_ever_had_one), (Some(&key), true));
    }
    let used = [(5, 9), (3, 9), (9, 8)].map(|(at, now)| {
        let digest = [KeyScope::Full as u8; 32];
        let work = Work::UseKey { digest, at, now };
        cluster.commit_all(&[work]).unwrap();
        cluster.begin().unwrap();
        let keys = cluster.keys().unwrap().all;
        keys.iter()
            .find(|key| key.digest == digest)
            .unwrap()
            .last_used_at
    });
    assert_eq!(used, [Some(5), Some(5), Some(8)]);
}

#[test]
fn pets_are_listed_and_counted_as_in_a_file() {
    let (_nodes, path) = cluster(1);
    let mut cluster = open(&path);
    let all: Vec<Work> = ["a", "b", "c"].iter().map(|name| create(name)).collect();
    commit(&mut cluster, &all);
    run(&path, "UPDATE pets SET status = 'sold' WHERE id > 1");
    cluster.begin().unwrap();
    let listed = |limit, after, status| {
        let page = Page::ascending(limit, after);
        let pets = cluster.list(&PetQuery { page, status }).unwrap();
        pets.iter().map(|pet| &*pet.name).collect::<String>()
    };
    assert_eq!(listed(2, None, None), "abc", "one more");
    assert_eq!(listed(1, Some(1), None), "bc");
    assert_eq!(listed(9, None, Some(PetStatus::Available)), "a");
    assert_eq!(listed(9, Some(2), Some(PetStatus::Sold)), "c");
    assert_eq!(listed(9, Some(i64::MAX), None), "");
    let counts = cluster.counts().unwrap();
    run(
        &path,
        "UPDATE pets SET name = hex(zeroblob(600000)) WHERE id = 1",
    );
    cluster.begin().unwrap();
    let page = Page::ascending(9, None);
    let long = cluster.list(&PetQuery::all(page)).unwrap();
    assert_eq!(long.len(), 1, "a long name ends a list");
    let words = [("available", 1), ("pending", 0), ("sold", 2), ("unset", 0)];
    assert_eq!((counts.by_word(), counts.total), (words, 3));
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
fn requests<T>(client: &petstore_cluster::Client, work: impl FnOnce() -> T) -> (T, u64) {
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
    let asked = || -> u64 { meters(&path).iter().map(|meter| meter.requests).sum() };
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
            request::UPDATE.contains(&format!(" {column} = ?"))
                && request::UPDATE.contains(&format!(" AND {column} IS ?"))
                && request::DELETE.contains(&format!(" AND {column} IS ?")),
            "{column}"
        );
    }
}
