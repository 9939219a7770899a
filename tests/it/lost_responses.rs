//! Creates whose responses get lost, from a service that is killed again and again: each intent makes one pet.
//!
//! `KILLED_FOR=600 cargo test --test it lost_responses` goes on for ten minutes, and kills the service every second.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::Instant;

use serde_json::Value;

use crate::idempotency::create;
use support::client::Connection;
use support::harness::{KEY, Server};
use support::wait::wait_until;

/// Clients, each with one intent after the other.
const CLIENTS: usize = 64;

/// When the client resets the connection instead of reading on.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Loss {
    Before,
    Within,
    After,
}

/// State that the clients share.
struct Work {
    /// Another one in each life of the service.
    address: Mutex<SocketAddr>,
    /// Intents that are carried out.
    done: AtomicUsize,
    is_over: AtomicBool,
}

impl Work {
    /// Carries out intents, each until a response comes; returns the pets and their ids.
    fn carry_out(&self, client: usize) -> BTreeMap<String, i64> {
        let mut pets = BTreeMap::new();
        let mut tries = client;
        while !self.is_over.load(Ordering::SeqCst) {
            let name = format!("{client}-{}", pets.len());
            let mut known = None;
            wait_until(&name, || {
                tries += 1;
                // Every third response is lost.
                let loss = [Loss::Before, Loss::Within, Loss::After][tries / 3 % 3];
                let loss = tries.is_multiple_of(3).then_some(loss);
                // Now and then two tries at once, which may meet in a batch.
                let count = if tries.is_multiple_of(4) { 2 } else { 1 };
                let at_once: Vec<_> = (0..count).map(|_| self.send(&name)).collect();
                for connection in at_once.into_iter().flatten() {
                    let Some(id) = receive(connection, loss) else {
                        continue;
                    };
                    assert_eq!(*known.get_or_insert(id), id, "{name}");
                }
                known.is_some() && loss.is_none()
            });
            pets.extend(known.map(|id| (name, id)));
            self.done.fetch_add(1, Ordering::SeqCst);
        }
        pets
    }

    /// Sends the create of this pet; `None` if the service is not there.
    fn send(&self, name: &str) -> Option<Connection> {
        let address = *self.address.lock().unwrap();
        let mut connection = Connection::try_open(address).ok()?;
        connection.try_send(create(
            &format!("Idempotency-Key: {name}\r\nConnection: close\r\n"),
            &format!(r#"{{"name":"{name}","categoryId":1}}"#),
        ));
        Some(connection)
    }
}

/// The id in a complete 201; `None` if the response is lost, or is 503.
fn receive(mut connection: Connection, loss: Option<Loss>) -> Option<i64> {
    if loss == Some(Loss::Within) {
        connection.taste(40);
    }
    let reply = if matches!(loss, Some(Loss::Before | Loss::Within)) {
        None
    } else {
        connection.whole_reply()
    };
    connection.reset();
    let reply = reply.filter(|reply| reply.status != 503)?;
    reply.expect(201).json()["id"].as_i64()
}

#[test]
fn each_intent_makes_one_pet_whatever_is_lost() {
    let seconds = std::env::var("KILLED_FOR").map_or(0, |seconds| seconds.parse().unwrap());
    let server = Server::start();
    let work = Work {
        address: Mutex::new(server.address),
        done: AtomicUsize::new(0),
        is_over: AtomicBool::new(false),
    };
    let (server, intended) = thread::scope(|scope| {
        // Moved in here, so that a failed assertion ends the server and the clients.
        let mut server = server;
        let clients: Vec<_> = (0..CLIENTS)
            .map(|client| {
                let work = &work;
                scope.spawn(move || work.carry_out(client))
            })
            .collect();
        let begun = Instant::now();
        let mut lives = 1;
        while lives < 4 || begun.elapsed().as_secs() < seconds {
            // A service that did nothing before it was killed would show nothing, as on a machine that is very slow.
            let (least, at_most_every) = if seconds == 0 { (CLIENTS, 0) } else { (1, 1) };
            let (born, goal) = (Instant::now(), work.done.load(Ordering::SeqCst) + least);
            wait_until("the end of a life", || {
                born.elapsed().as_secs() >= at_most_every
                    && work.done.load(Ordering::SeqCst) >= goal
            });
            server = Server::start_in(server.kill(), |command| command);
            *work.address.lock().unwrap() = server.address;
            lives += 1;
        }
        work.is_over.store(true, Ordering::SeqCst);
        let pets = clients
            .into_iter()
            .flat_map(|client| client.join().unwrap());
        (server, pets.collect::<BTreeMap<_, _>>())
    });
    let listed = server.connect().get_all("/v1/pets?limit=100", KEY);
    let ascends = |pair: &[Value]| pair[0]["id"].as_i64() < pair[1]["id"].as_i64();
    assert!(listed.windows(2).all(ascends), "an id twice");
    let named = |pet: &Value| {
        (
            pet["name"].as_str().unwrap().to_owned(),
            pet["id"].as_i64().unwrap(),
        )
    };
    let made: BTreeMap<_, _> = listed.iter().map(named).collect();
    assert_eq!(listed.len(), made.len(), "two pets for one intent");
    assert_eq!(made, intended);
    eprintln!("{} pets", made.len());
}
