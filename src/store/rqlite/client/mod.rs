//! Asks an rqlite cluster over HTTP (`rqlite.io/docs/api/`). Knows no table, no pet and no batch.
//!
//! One [`Client`] serves all threads. A request goes to the favourite node: the leader once it is known, otherwise the
//! one that answered last. If it fails, another node is asked, as long as the caller is patient: a repetition must do
//! no harm. A node that is not the leader forwards the request by itself and names the leader, which the client then
//! follows: a linearizable read takes 0.2 ms there, and 0.45 ms through another node.

mod address;
mod agent;
mod failure;
mod statement;
#[cfg(test)]
mod tests;
mod version;

use std::fmt;
use std::io::Write;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ureq::http::HeaderValue;
use ureq::http::header::{AUTHORIZATION, CONTENT_TYPE};
use ureq::{Agent, RequestBuilder};

use crate::error::{Error, ErrorKind};
use crate::log_line::log_line;
use crate::store::HostMeter;
use agent::{ANSWER, NEXT, Names};
use failure::{Cause, Reason, Trouble};
use statement::Unanswered;

pub use address::Address;
pub use failure::Failure;
pub use statement::{Outcome, Rows, Statement, Value};
pub use version::Version;

/// The pauses between two tries: the first, and the longest that it doubles to.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(500)];
/// How long `follow` avoids a node that failed, in milliseconds.
const SHUNNED: u64 = 30_000;
/// The longest body of a response that is read. 128 pets that were put off have at most 48 MiB: names of 64 KiB, each
/// byte of which takes six as JSON.
const MOST_BYTES: u64 = 64 << 20;
/// How long a node may take to prepare a copy of the database, or to take one.
const WHOLE: Duration = Duration::from_secs(600);
/// The timeout of a node that forwards the request to the leader, which is 30 s by default.
const WHOLE_TIMEOUT: &str = "timeout=600s";

/// How sure a read is to see what was acknowledged before it (`rqlite.io/docs/api/read-consistency/`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Whatever the node has itself, which may be old.
    None,
    /// The leader asks a quorum whether it is the leader still.
    Linearizable,
    /// The read goes through the log.
    Strong,
}

/// The nodes of a cluster, and the connections to them.
pub struct Client {
    agent: Agent,
    names: Names,
    address: Address,
    authorization: Option<HeaderValue>,
    nodes: Vec<Node>,
    /// The index of the node that is asked first.
    favourite: AtomicUsize,
    made: Instant,
}

struct Node {
    host: String,
    /// Until when `follow` avoids it, in milliseconds since `made`.
    shunned_until: AtomicU64,
    /// Such as `http://one:4001`.
    base: String,
    /// Whether it last named a version that is too old.
    is_old: AtomicBool,
    requests: AtomicU64,
    failures: AtomicU64,
    nanoseconds: AtomicU64,
}

/// A response with status 200.
struct Response {
    body: Vec<u8>,
    version: Option<Version>,
    /// Whether the node that made it, perhaps the leader that it was passed on to, is known to be too old.
    is_old: bool,
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Client").field("address", &self.address.to_string()).finish_non_exhaustive()
    }
}

impl Client {
    /// Makes a client without asking the cluster for anything.
    ///
    /// # Errors
    /// If the certificate authorities cannot be read, there is a password without a user, or it cannot be sent.
    pub fn new(address: Address, password: Option<&str>) -> Result<Self, Error> {
        let wrong = |message: &str| Error::new(ErrorKind::Config("database"), message);
        let authorization = match (&address.user, password.filter(|password| !password.is_empty())) {
            (None, None) => None,
            (None, Some(_)) => {
                return Err(wrong("there is a password for the database, but no user in its address"));
            }
            (Some(user), password) => {
                let pair = STANDARD.encode(format!("{user}:{}", password.unwrap_or_default()));
                let mut value = HeaderValue::try_from(format!("Basic {pair}"))
                    .map_err(|_| wrong("the password of the database cannot be sent"))?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let names = Names::default();
        let agent = agent::agent(address.is_tls, address.ca.as_deref(), names.clone())?;
        let scheme = if address.is_tls { "https" } else { "http" };
        let node = |host: &String| Node {
            host: host.clone(),
            shunned_until: AtomicU64::new(0),
            base: format!("{scheme}://{host}"),
            is_old: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            failures: AtomicU64::new(0),
            nanoseconds: AtomicU64::new(0),
        };
        let nodes = address.hosts.iter().map(node).collect();
        Ok(Self {
            agent,
            names,
            address,
            authorization,
            nodes,
            favourite: AtomicUsize::new(0),
            made: Instant::now(),
        })
    }

    /// Makes a client for the address of a database, and checks the version of a node. The password comes from
    /// the environment variable `PETSTORE_DATABASE_PASSWORD`.
    ///
    /// # Errors
    /// If the address is wrong, no node answers in time, the password is refused, or rqlite is too old.
    pub fn connect(address: &str, patience: Duration) -> Result<Self, Error> {
        let wrong = |why: String| Error::new(ErrorKind::Config("database"), why);
        let address =
            Address::parse(address).map_err(|why| wrong(format!("the address of the database {why}")))?;
        let password = match std::env::var("PETSTORE_DATABASE_PASSWORD") {
            Ok(password) => Some(password),
            Err(std::env::VarError::NotPresent) => None,
            Err(std::env::VarError::NotUnicode(_)) => {
                return Err(wrong("PETSTORE_DATABASE_PASSWORD is not UTF-8 text".to_owned()));
            }
        };
        let client = Self::new(address, password.as_deref())?;
        let version = client.version(patience)?;
        if version.is_old() && !client.address.allows_old {
            let message = format!(
                "{} runs rqlite {version}, which may lose acknowledged pets in a power cut; version {} and later flush snapshots to the disk",
                client.address,
                version::NEEDED
            );
            return Err(Error::new(ErrorKind::RqliteOlder, message));
        }
        Ok(client)
    }

    /// The address, for people.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The version of rqlite on the node that answers.
    ///
    /// # Errors
    /// If no node answers in time.
    pub fn version(&self, patience: Duration) -> Result<Version, Failure> {
        let body = statement::encode(&[Statement::new("SELECT 1", [])]);
        self.try_nodes(patience, |node, limit| {
            let response = self.exchange(node, limit, "/db/query?level=none", Some(&body))?;
            response.version.ok_or_else(|| Trouble::foreign("", false))
        })
    }

    /// The host of the leader as the cluster knows it, such as `one:4001`; `None` if it has none.
    ///
    /// # Errors
    /// If no node answers in time.
    pub fn leader(&self, patience: Duration) -> Result<Option<String>, Failure> {
        let response = self.send("/nodes?timeout=400ms", None, patience)?;
        let nodes: serde_json::Value = serde_json::from_slice(&response.body).unwrap_or_default();
        let leader = nodes.as_object().into_iter().flatten().find(|(_, node)| node["leader"] == true);
        let address = leader.and_then(|(_, node)| node["api_addr"].as_str());
        Ok(address.map(|url| url.split_once("://").map_or(url, |(_, host)| host).to_owned()))
    }

    /// Asks for the rows of statements that only read, in one request: one list of rows for each.
    ///
    /// # Errors
    /// If a statement fails, or no node answers in time.
    pub fn read(
        &self,
        statements: &[Statement],
        level: Level,
        patience: Duration,
    ) -> Result<Vec<Rows>, Failure> {
        let path = match level {
            Level::None => "/db/query?level=none",
            Level::Linearizable => "/db/query?level=linearizable&linearizable_timeout=400ms",
            Level::Strong => "/db/query?level=strong",
        };
        // An old leader answers `linearizable` without asking a quorum.
        let refuses_old = level == Level::Linearizable && !self.address.allows_old;
        let outcomes = match self.ask(path, statements, patience, refuses_old) {
            // rqlite 9.4.5 waits in vain for the entry of the log that a node makes if it joins or leaves, until another
            // one follows. A strong read is such an entry.
            Err(Failure::Unavailable(reason) | Failure::Unknown(reason))
                if reason.cause == Cause::WaitsForLog =>
            {
                self.ask("/db/query?level=strong", statements, patience, refuses_old)?
            }
            outcomes => outcomes?,
        };
        Ok(outcomes.into_iter().map(|outcome| outcome.rows).collect())
    }

    /// Asks each host itself, and once, for the rows of a statement that only reads. They may be old. In place of the
    /// rows there is the reason why a host does not answer.
    pub fn read_from_each(&self, statement: &Statement) -> Vec<(&str, Result<Rows, String>)> {
        let body = statement::encode(std::slice::from_ref(statement));
        let ask = |node: &Node| {
            let response = self.exchange(node, ANSWER, "/db/query?level=none", Some(&body))?;
            if response.version.is_none() {
                return Err(Trouble::foreign("", false));
            }
            match statement::decode(&response.body, 1) {
                Ok(outcomes) => Ok(outcomes.into_iter().flat_map(|outcome| outcome.rows).collect()),
                Err(Unanswered::Failed(_, why) | Unanswered::Error(why) | Unanswered::Garbled(why)) => {
                    Err(Trouble::of_message(&why))
                }
            }
        };
        let answer = |node| ask(node).map_err(|trouble| trouble.reason.text);
        self.nodes.iter().map(|node| (node.host.as_str(), answer(node))).collect()
    }

    /// Carries out statements in one transaction: one outcome for each.
    ///
    /// # Errors
    /// If a statement fails, so that nothing is written, or no node answers in time.
    pub fn write(&self, statements: &[Statement], patience: Duration) -> Result<Vec<Outcome>, Failure> {
        // `/db/request` goes on after a statement that cannot be prepared, even within a transaction.
        // What an old node has carried out is not refused: that would make its outcome unknown.
        self.ask("/db/execute?transaction", statements, patience, false)
    }

    /// Writes a copy of the whole database to `to`, as the leader has it. The transfer has no time limit.
    ///
    /// # Errors
    /// If no node begins to answer in time, the transfer breaks off, or the copy cannot be written.
    pub fn download(&self, to: &mut impl Write, patience: Duration) -> Result<(), Error> {
        let mut response = self.try_nodes(patience, |node, _| {
            let mut request = self.agent.get(format!("{}/db/backup?{WHOLE_TIMEOUT}", node.base));
            if let Some(value) = &self.authorization {
                request = request.header(AUTHORIZATION, value);
            }
            let mut response =
                request.config().timeout_global(None).timeout_recv_response(Some(WHOLE)).build().call()?;
            match response.status().as_u16() {
                200 => Ok(response),
                _ => {
                    let body = response.body_mut().read_to_vec().unwrap_or_default();
                    Err(refusal(&response, &body))
                }
            }
        })?;
        std::io::copy(&mut response.body_mut().as_reader(), to)
            .map(drop)
            .map_err(|error| Error::io(format!("cannot copy the database of {}", self.address), error))
    }

    /// Replaces the whole database by an SQLite file.
    ///
    /// # Errors
    /// If no node takes it, or the outcome is unknown.
    pub fn load(&self, file: &[u8], patience: Duration) -> Result<(), Failure> {
        self.try_nodes(patience, |node, _| {
            let mut request = self
                .agent
                .post(format!("{}/db/load?{WHOLE_TIMEOUT}", node.base))
                .header(CONTENT_TYPE, "application/octet-stream");
            if let Some(value) = &self.authorization {
                request = request.header(AUTHORIZATION, value);
            }
            let mut response = request.config().timeout_global(Some(WHOLE)).build().send(file)?;
            let body = response.body_mut().read_to_vec()?;
            match response.status().as_u16() {
                200 => Ok(()),
                _ => Err(refusal(&response, &body)),
            }
        })
    }

    /// The requests to each host so far.
    pub fn meters(&self) -> Vec<HostMeter> {
        let meter = |node: &Node| HostMeter {
            host: node.host.clone(),
            requests: node.requests.load(Relaxed),
            failures: node.failures.load(Relaxed),
            duration: Duration::from_nanos(node.nanoseconds.load(Relaxed)),
        };
        self.nodes.iter().map(meter).collect()
    }

    fn ask(
        &self,
        path: &str,
        statements: &[Statement],
        patience: Duration,
        refuses_old: bool,
    ) -> Result<Vec<Outcome>, Failure> {
        let body = statement::encode(statements);
        self.try_nodes(patience, |node, limit| {
            let response = self.exchange(node, limit, path, Some(&body))?;
            if refuses_old && response.is_old {
                let version = response.version.filter(|version| version.is_old());
                let who = version.map_or("its leader runs an old rqlite".to_owned(), |version| {
                    format!("it runs rqlite {version}")
                });
                let why = format!("{who}, whose reads may be stale; version {} is needed", version::NEEDED);
                return Err(Trouble::new(why, false));
            }
            match statement::decode(&response.body, statements.len()) {
                Ok(outcomes) => Ok(Ok(outcomes)),
                Err(Unanswered::Failed(i, message)) => Ok(Err(Failure::Statement(i, message))),
                Err(Unanswered::Error(message)) => Err(Trouble::of_message(&message)),
                Err(Unanswered::Garbled(why)) => Err(Trouble::foreign(&why, true)),
            }
        })?
    }

    fn send(&self, path: &str, body: Option<&[u8]>, patience: Duration) -> Result<Response, Failure> {
        self.try_nodes(patience, |node, limit| self.exchange(node, limit, path, body))
    }

    /// Tries one node after the other, with pauses between, until one answers.
    fn try_nodes<T>(
        &self,
        patience: Duration,
        request: impl Fn(&Node, Duration) -> Result<T, Trouble>,
    ) -> Result<T, Failure> {
        let start = Instant::now();
        let [mut pause, longest] = PAUSES;
        let (mut limits, mut may_be_done, mut hung) = (NEXT.into_iter(), false, None);
        let mut limit = ANSWER;
        loop {
            let place = self.favourite.load(Relaxed);
            let node = &self.nodes[place];
            let begun = Instant::now();
            node.requests.fetch_add(1, Relaxed);
            let result = request(node, limit);
            let duration = u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX);
            node.nanoseconds.fetch_add(duration, Relaxed);
            let trouble = match result {
                Ok(answer) => return Ok(answer),
                Err(trouble) => trouble,
            };
            node.failures.fetch_add(1, Relaxed);
            node.shunned_until.store(self.milliseconds() + SHUNNED, Relaxed);
            log_line!(debug, "the node {} failed: {}", node.host, trouble.reason.text);
            let mut wait = pause;
            if begun.elapsed() >= limit {
                hung.get_or_insert(place);
                wait = Duration::ZERO;
            }
            let mut next = (place + 1) % self.nodes.len();
            // Until there is another leader, two others tell sooner than the node that hung.
            if hung == Some(next) && self.nodes.len() > 2 && limits.len() > 0 {
                next = (next + 1) % self.nodes.len();
            }
            limit = limits.next().unwrap_or(ANSWER);
            // Another thread may have moved on already.
            let _ = self.favourite.compare_exchange(place, next, Relaxed, Relaxed);
            self.names.forget();
            may_be_done |= trouble.may_be_done;
            if trouble.is_final || start.elapsed() + wait >= patience {
                let text = format!("{}: {}", node.host, trouble.reason.text);
                let reason = Reason { text, ..trouble.reason };
                return Err(match trouble.is_denied {
                    _ if may_be_done => Failure::Unknown(reason),
                    true => Failure::Denied(reason.text),
                    false => Failure::Unavailable(reason),
                });
            }
            std::thread::sleep(wait);
            pause = (pause + wait).min(longest);
        }
    }

    fn milliseconds(&self) -> u64 {
        u64::try_from(self.made.elapsed().as_millis()).unwrap_or(u64::MAX)
    }

    /// Makes the node with the host name of the leader the favourite, and returns its place. Ports differ: that of
    /// `leader` is Raft's.
    fn follow(&self, leader: &str) -> Option<usize> {
        let name = |host: &str| host.rsplit_once(':').map(|(name, _)| name.to_owned());
        let is_it = |node: &Node| name(&node.host) == name(leader);
        let mut places = (0..self.nodes.len()).filter(|&place| is_it(&self.nodes[place]));
        let place = places.next().filter(|_| places.next().is_none())?;
        if self.nodes[place].shunned_until.load(Relaxed) <= self.milliseconds() {
            self.favourite.store(place, Relaxed);
        }
        Some(place)
    }

    /// One request to one node.
    fn exchange(
        &self,
        node: &Node,
        limit: Duration,
        path: &str,
        body: Option<&[u8]>,
    ) -> Result<Response, Trouble> {
        let url = format!("{}{path}", node.base);
        let mut response = match body {
            Some(body) => {
                let mut request = self.agent.post(url).header(CONTENT_TYPE, "application/json");
                if let Some(value) = &self.authorization {
                    request = request.header(AUTHORIZATION, value);
                }
                limited(request, limit).send(body)?
            }
            None => {
                let mut request = self.agent.get(url);
                if let Some(value) = &self.authorization {
                    request = request.header(AUTHORIZATION, value);
                }
                limited(request, limit).call()?
            }
        };
        let version = version(&response);
        if let Some(version) = version {
            node.is_old.store(version.is_old(), Relaxed);
        }
        let leader = response.headers().get("X-Rqlite-Served-By").and_then(|name| name.to_str().ok());
        let leader = leader.and_then(|leader| self.follow(leader));
        // A node that passes a request on names its own version, so that of a leader that was never asked is unknown.
        let is_old = leader.map_or(node, |place| &self.nodes[place]).is_old.load(Relaxed);
        // Read to its end, so that the connection can be used again.
        let body = response.body_mut().with_config().limit(MOST_BYTES).read_to_vec()?;
        match response.status().as_u16() {
            200 => Ok(Response { body, version, is_old }),
            _ => Err(refusal(&response, &body)),
        }
    }
}

/// Gives a request its time limit. One that cannot connect ends before, so that nothing was sent for sure. `ANSWER` is
/// the agent's own: settings for one request cost more.
fn limited<B>(request: RequestBuilder<B>, limit: Duration) -> RequestBuilder<B> {
    if limit == ANSWER {
        return request;
    }
    let connect = Some(limit / 2);
    request.config().timeout_resolve(connect).timeout_connect(connect).timeout_global(Some(limit)).build()
}

/// The version of rqlite that a response names; `None` if it is not from rqlite.
fn version(response: &ureq::http::Response<ureq::Body>) -> Option<Version> {
    Version::parse(response.headers().get("X-Rqlite-Version")?.to_str().ok()?)
}

/// The trouble of a response with a status other than 200.
fn refusal(response: &ureq::http::Response<ureq::Body>, body: &[u8]) -> Trouble {
    let is_of_rqlite = response.headers().contains_key("X-Rqlite-Version");
    Trouble::of_status(response.status().as_u16(), body, is_of_rqlite)
}
