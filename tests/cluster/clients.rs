//! Clients that know what was acknowledged, and check it again through any instance.

use std::net::SocketAddr;
use std::sync::atomic::Ordering::SeqCst;
use std::sync::mpsc::{Receiver, SyncSender};
use std::time::Duration;

use serde_json::Value;
use ureq::Agent;

use crate::invariants::Tally;
use crate::setup::{INSTANCES, KEY, Stage};
use support::random::Random;

/// A response: its status, the header fields that matter, and the body.
pub struct Reply {
    pub status: u16,
    pub link: Option<String>,
    pub tag: Option<String>,
    pub is_replay: bool,
    pub body: Value,
}

/// One client with its connections.
pub struct Client(Agent);

impl Client {
    pub fn new() -> Self {
        let config = Agent::config_builder()
            .proxy(None)
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(20)))
            .build();
        Self(Agent::new_with_config(config))
    }

    /// `None` if there is no whole response.
    pub fn get(&self, address: SocketAddr, target: &str, key: &str) -> Option<Reply> {
        let request = self.0.get(format!("http://{address}{target}"));
        reply(
            request
                .header("Authorization", format!("Bearer {key}"))
                .call()
                .ok()?,
        )
    }

    fn create(&self, address: SocketAddr, name: &str, once: Option<&str>) -> Option<Reply> {
        self.post(
            address,
            &format!(r#"{{"name":"{name}","categoryId":1,"status":"available"}}"#),
            KEY,
            once,
        )
    }

    fn post(
        &self,
        address: SocketAddr,
        body: &str,
        key: &str,
        once: Option<&str>,
    ) -> Option<Reply> {
        let mut request = self
            .0
            .post(format!("http://{address}/v1/pets"))
            .header("Authorization", format!("Bearer {key}"));
        if let Some(once) = once {
            request = request.header("Idempotency-Key", once);
        }
        reply(request.send(body).ok()?)
    }

    fn patch(&self, address: SocketAddr, target: &str, tag: &str, body: &str) -> Option<Reply> {
        let request = self
            .0
            .patch(format!("http://{address}{target}"))
            .header("If-Match", tag);
        reply(
            request
                .header("Authorization", format!("Bearer {KEY}"))
                .send(body)
                .ok()?,
        )
    }
}

fn reply(mut response: ureq::http::Response<ureq::Body>) -> Option<Reply> {
    let field = |name: &str| {
        response
            .headers()
            .get(name)
            .map(|value| value.to_str().unwrap_or_default().to_owned())
    };
    let link = field("Link").and_then(|link| Some(link.split(['<', '>']).nth(1)?.to_owned()));
    let is_replay = field("Idempotency-Replayed").is_some();
    let (status, tag) = (response.status().as_u16(), field("ETag"));
    let body = response.body_mut().read_to_vec().ok()?;
    Some(Reply {
        status,
        link,
        tag,
        is_replay,
        body: serde_json::from_slice(&body).unwrap_or_default(),
    })
}

/// A pet that was acknowledged: its id and its name.
pub type Created = (i64, String);

/// Creates pets, half of them with an Idempotency-Key. Some are looked for through an instance that can look at once.
pub fn create(
    stage: &Stage,
    tally: &Tally,
    seed: u64,
    place: u64,
    lookers: &[SyncSender<Created>],
) {
    let (client, mut random) = (Client::new(), Random::of_place(seed, [1, place]));
    for number in 0.. {
        if tally.ends() {
            return;
        }
        let name = format!("c{place}-{number}");
        let once = random.one_in(2).then(|| format!("{seed}-{name}"));
        let Some(id) = create_one(stage, tally, &client, &name, once.as_deref()) else {
            continue;
        };
        tally.acknowledge(id, &name);
        if random.one_in(4) {
            let _ = lookers[random.below(lookers.len() as u64) as usize].try_send((id, name));
        }
        std::thread::sleep(Duration::from_millis(random.below(15)));
    }
}

/// The id of a create that was acknowledged. One with a key is sent until it is.
fn create_one(
    stage: &Stage,
    tally: &Tally,
    client: &Client,
    name: &str,
    once: Option<&str>,
) -> Option<i64> {
    loop {
        match client.create(stage.balancer, name, once) {
            Some(reply) if reply.status == 201 => {
                tally.succeeded(&tally.creates, "create");
                tally.replays.fetch_add(u64::from(reply.is_replay), SeqCst);
                return reply.body["id"].as_i64();
            }
            Some(reply) if !matches!(reply.status, 408 | 500 | 502..=504) => {
                tally.broken(format!("a create got {} {}", reply.status, reply.body));
                return None;
            }
            Some(_) | None if once.is_none() => {
                tally.unknown.fetch_add(1, SeqCst);
                return None;
            }
            Some(_) | None if tally.ends() => return None,
            Some(_) | None => std::thread::sleep(Duration::from_millis(50)),
        }
    }
}

/// Looks for pets through an instance: what was just acknowledged is in the next list and in the next get of each one.
/// A thread of its own, because an instance that is frozen keeps it waiting.
pub fn look(stage: &Stage, tally: &Tally, i: usize, created: &Receiver<Created>) {
    let client = Client::new();
    created
        .iter()
        .for_each(|(id, name)| look_for(stage, tally, &client, i, id, &name));
}

fn look_for(stage: &Stage, tally: &Tally, client: &Client, i: usize, id: i64, name: &str) {
    let address = stage.instances[i].address;
    if let Some(reply) = client.get(address, &format!("/v1/pets?limit=5&after={}", id - 1), KEY)
        && reply.status == 200
    {
        tally.fresh_lists.fetch_add(1, SeqCst);
        let first = &reply.body[0];
        if first["id"] != id || first["name"] != name {
            tally.broken(format!(
                "stale list: instance {i} has {first} in place of {id} {name}"
            ));
        }
    }
    if let Some(reply) = client.get(address, &format!("/v1/pets/{id}"), KEY)
        && !matches!(reply.status, 500 | 503)
    {
        tally.gets.fetch_add(1, SeqCst);
        if reply.body["name"] != name {
            tally.broken(format!(
                "instance {i} has {} {} in place of {id} {name}",
                reply.status, reply.body
            ));
        }
    }
}

/// Walks from page to page by Link, from a random place, and expects what was acknowledged before.
pub fn list(stage: &Stage, tally: &Tally, seed: u64, place: u64) {
    let (client, mut random) = (Client::new(), Random::of_place(seed, [2, place]));
    while !tally.ends() {
        let last = tally
            .acknowledged
            .lock()
            .unwrap()
            .keys()
            .max()
            .copied()
            .unwrap_or_default();
        let start = random.below(last as u64 + 1) as i64;
        let known: Vec<(i64, String)> = {
            let all = tally.acknowledged.lock().unwrap();
            (start + 1..=last.min(start + 2000))
                .filter_map(|id| Some((id, all.get(&id)?.clone())))
                .collect()
        };
        let status = if random.one_in(2) {
            "&status=available"
        } else {
            ""
        };
        if let Some((pets, end)) = walk(
            stage,
            tally,
            &client,
            &format!("/v1/pets?limit=100&after={start}{status}"),
            20,
        ) {
            tally.walks.fetch_add(1, SeqCst);
            if let Some(pair) = pets.windows(2).find(|pair| pair[0].0 >= pair[1].0) {
                tally.broken(format!("a walk has {} before {}", pair[0].0, pair[1].0));
            }
            let missing = known.iter().find(|(id, name)| {
                *id <= end
                    && !pets
                        .binary_search_by_key(id, |pet| pet.0)
                        .is_ok_and(|at| pets[at].1 == *name)
            });
            if let Some((id, name)) = missing {
                tally.broken(format!("a walk from {start} to {end} misses {id} {name}"));
            }
        }
        std::thread::sleep(Duration::from_millis(random.below(400)));
    }
}

/// The pets of this many pages, and the id that they reach to; `None` if the walk was cut off.
fn walk(
    stage: &Stage,
    tally: &Tally,
    client: &Client,
    target: &str,
    pages: usize,
) -> Option<(Vec<(i64, String)>, i64)> {
    let (mut pets, mut target) = (Vec::new(), target.to_owned());
    for _ in 0..pages {
        let reply = client.get(stage.balancer, &target, KEY);
        let Some(reply) = reply.filter(|reply| !matches!(reply.status, 500 | 502..=504)) else {
            std::thread::sleep(Duration::from_millis(50));
            return None;
        };
        let Some(page) = reply.body.as_array().filter(|_| reply.status == 200) else {
            tally.broken(format!("a list got {} {}", reply.status, reply.body));
            return None;
        };
        tally.succeeded(&tally.lists, "list");
        pets.extend(page.iter().map(|pet| {
            (
                pet["id"].as_i64().unwrap(),
                pet["name"].as_str().unwrap().to_owned(),
            )
        }));
        match reply.link {
            Some(next) => target = next,
            None => return Some((pets, i64::MAX)),
        }
    }
    let end = pets.last()?.0;
    Some((pets, end))
}

/// The category of a pet without a buyer. That of a buyer is the number of its instance plus one.
const NOBODY: i64 = 0;

/// Has a buyer at each instance ask for the same pet with the same tag at the same time: exactly one gets it.
pub fn contend(stage: &Stage, tally: &Tally, seed: u64) {
    let (client, mut random) = (Client::new(), Random::of_place(seed, [5, 0]));
    for number in 0.. {
        if tally.ends() {
            return;
        }
        let name = format!("wanted-{number}");
        let body = format!(r#"{{"name":"{name}","categoryId":{NOBODY},"status":"available"}}"#);
        let made = client
            .post(stage.balancer, &body, KEY, None)
            .filter(|reply| reply.status == 201);
        let Some(id) = made.and_then(|reply| reply.body["id"].as_i64()) else {
            continue;
        };
        tally.acknowledge(id, &name);
        let target = format!("/v1/pets/{id}");
        let Some(tag) = client
            .get(stage.balancer, &target, KEY)
            .and_then(|reply| reply.tag)
        else {
            continue;
        };
        let bought: Vec<Bought> = std::thread::scope(|scope| {
            let buy = |i| buy(stage, tally, i, &target, &tag);
            let buyers: Vec<_> = (0..INSTANCES)
                .map(|i| scope.spawn(move || buy(i)))
                .collect();
            buyers
                .into_iter()
                .filter_map(|buyer| buyer.join().unwrap())
                .collect()
        });
        let now = client
            .get(stage.balancer, &target, KEY)
            .filter(|reply| reply.status == 200);
        let Some(category) = now.and_then(|reply| reply.body["categoryId"].as_i64()) else {
            continue;
        };
        let fits = |(i, bought): (usize, &Bought)| match bought {
            Bought::Yes => category == i as i64 + 1,
            Bought::Perhaps => true,
            Bought::No => category != i as i64 + 1,
        };
        if bought.len() == INSTANCES {
            if category == NOBODY || !bought.iter().enumerate().all(fits) {
                tally.broken(format!(
                    "the pet {id} has the category {category} after {bought:?}"
                ));
            }
            tally.contended.fetch_add(1, SeqCst);
        }
        std::thread::sleep(Duration::from_millis(random.below(300)));
    }
}

/// The outcome for a buyer. `Perhaps` ends in a 412, but the outcome of a try before it is unknown.
#[derive(Debug)]
enum Bought {
    Yes,
    Perhaps,
    No,
}

/// Tries until there is an answer; `None` if the end came before.
fn buy(stage: &Stage, tally: &Tally, i: usize, target: &str, tag: &str) -> Option<Bought> {
    let (client, mut is_open) = (Client::new(), false);
    let body = format!(r#"{{"categoryId":{}}}"#, i + 1);
    while !tally.ends() {
        match client.patch(stage.instances[i].address, target, tag, &body) {
            Some(reply) if reply.status == 200 => return Some(Bought::Yes),
            Some(reply) if reply.status == 412 => {
                return Some(if is_open { Bought::Perhaps } else { Bought::No });
            }
            Some(reply) if reply.body["code"] == "storage_unavailable" => {
                tally.refused.fetch_add(1, SeqCst);
            }
            Some(reply) if !matches!(reply.status, 408 | 500 | 503) => {
                tally.broken(format!("a change got {} {}", reply.status, reply.body));
            }
            Some(_) | None => is_open = true,
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    None
}

/// Adds a key, which every instance takes at once, and revokes it, which every instance knows at once.
pub fn revoke(stage: &Stage, tally: &Tally, seed: u64) {
    let (client, mut random) = (Client::new(), Random::of_place(seed, [3, 0]));
    for number in 0.. {
        if tally.ends() {
            return;
        }
        let name = format!("key-{number}");
        let added = stage.petstore(&["key", "add", &name]);
        if !added.status.success() {
            std::thread::sleep(Duration::from_millis(200));
            continue;
        }
        let key = String::from_utf8(added.stdout)
            .unwrap()
            .split_whitespace()
            .last()
            .unwrap_or_default()
            .to_owned();
        expect(stage, tally, &client, &key, [200, 400]);
        if stage.petstore(&["key", "revoke", &name]).status.success() {
            expect(stage, tally, &client, &key, [401; 2]);
            tally.revocations.fetch_add(1, SeqCst);
        }
        std::thread::sleep(Duration::from_millis(random.below(1000)));
    }
}

/// Expects these statuses of every instance that answers: of a list, and of a create without a pet.
fn expect(stage: &Stage, tally: &Tally, client: &Client, key: &str, statuses: [u16; 2]) {
    for (i, instance) in stage.instances.iter().enumerate() {
        let replies = [
            client.get(instance.address, "/v1/pets?limit=1", key),
            client.post(instance.address, "{}", key, None),
        ];
        for (reply, status) in replies.iter().zip(statuses) {
            if let Some(reply) = reply
                && !matches!(reply.status, 500 | 503)
                && reply.status != status
            {
                tally.broken(format!(
                    "stale key: instance {i} answers {} in place of {status}",
                    reply.status
                ));
            }
        }
    }
}
