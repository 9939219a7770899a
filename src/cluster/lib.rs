//! A client of rqlite: asks a cluster over HTTP (`rqlite.io/docs/api/`). Knows no table and no batch.
//!
//! One [`Client`] serves all threads. A request goes to the favourite node: the leader once it is known, otherwise the
//! one that answered last. If it fails, another node is asked, as long as the caller is patient: a repetition must do
//! no harm. A node that is not the leader forwards the request by itself and names the leader, which the client then
//! follows: a linearizable read takes 0.2 ms there, and 0.45 ms through another node.

#![allow(
    missing_debug_implementations,
    reason = "connections say nothing of use"
)]

mod address;
mod agent;
mod failure;
mod meter;
mod statement;
// With TLS, and nodes that RQLITED names.
#[cfg(feature = "ring")]
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use ureq::http::header::CONTENT_TYPE;
use ureq::http::{HeaderMap, HeaderValue};
use ureq::{Agent, Body, RequestBuilder};

use agent::{ANSWER, NEXT, Names};
use failure::WAITS;
use petstore_base::environment::from_environment;
use petstore_base::error::{Error, ErrorKind, fail};
use petstore_base::secret::Secret;

pub use address::ClusterAddress;

pub use failure::{ClusterFailure, Trouble};
pub use meter::HostMeter;
pub use statement::{ClusterRows, ClusterValue, Statement, StatementAnswer};

/// The first and the longest pause between two tries. The pause doubles after each try.
const PAUSES: [Duration; 2] = [Duration::from_millis(50), Duration::from_millis(500)];
/// How long `follow` avoids a node that failed.
const SHUNNED: Duration = Duration::from_secs(30);
/// The longest body of a response, in bytes. The largest page takes 38 MiB: 101 rows of 64 KiB, each byte of which takes up
/// to six bytes as JSON.
const MOST_BYTES: u64 = 64 << 20;
/// The time limit for a node to prepare a copy of the database, or to load one.
const WHOLE: Duration = Duration::from_secs(600);
/// The timeout of a node that forwards the request to the leader, which is 30 s by default.
const WHOLE_TIMEOUT: &str = "timeout=600s";
/// The header field that only responses of rqlite have.
const VERSION_FIELD: &str = "X-Rqlite-Version";
/// The first version that flushes a snapshot to the disk before it drops the log that it replaces.
const NEEDED: [u16; 2] = [9, 4];
const JSON: &str = "application/json";

/// The path of a read of the node itself, whose rows may be old (`rqlite.io/docs/api/read-consistency/`).
pub const ANY_NODE: &str = "/db/query?level=none";
/// The path of a read for which the leader first asks a quorum whether it still leads.
const LINEARIZABLE: &str = "/db/query?level=linearizable&linearizable_timeout=400ms";
/// The path of a read that goes through the log.
const STRONG: &str = "/db/query?level=strong";

/// The nodes of a cluster, and the connections to them.
pub struct Client {
    agent: Agent,
    names: Names,
    /// The address of the nodes. Messages show it without options.
    pub address: ClusterAddress,
    /// The path of a read that sees every acknowledged write. An old rqlite answers `linearizable` without asking a
    /// quorum. During an upgrade, an old node may lead even if a new node answers.
    pub fresh: &'static str,
    nodes: Vec<Node>,
    /// The index of the node that is asked first.
    favourite: AtomicUsize,
}

struct Node {
    host: String,
    /// Such as `http://one:4001`.
    base: String,
    history: Mutex<History>,
}

/// The outcome of the requests to a node.
struct History {
    meter: HostMeter,
    failed_at: Option<Instant>,
}

impl Node {
    fn new(scheme: &str, host: &str) -> Self {
        let meter = HostMeter {
            host: host.to_owned(),
            requests: 0,
            failures: 0,
            duration: Duration::ZERO,
        };
        let history = Mutex::new(History {
            meter,
            failed_at: None,
        });
        Self {
            host: host.to_owned(),
            base: format!("{scheme}://{host}"),
            history,
        }
    }

    fn history(&self) -> MutexGuard<'_, History> {
        self.history.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The passwords that the program has set, by address.
static PASSWORDS: Mutex<BTreeMap<String, Secret>> = Mutex::new(BTreeMap::new());

/// Sets the password for a cluster. It counts from the next use of this address on, in the whole process, and in place of
/// the one in `PETSTORE_DATABASE_PASSWORD`. With the feature `cluster`.
///
/// ```
/// let address = "rqlites://pets@one.example,two.example/";
/// petstore_cluster::set_database_password(address, "hush-hush");
/// ```
pub fn set_database_password(address: &str, password: impl Into<Secret>) {
    passwords().insert(address.to_owned(), password.into());
}

fn passwords() -> MutexGuard<'static, BTreeMap<String, Secret>> {
    PASSWORDS.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Client {
    /// Makes a client without asking the cluster for anything.
    ///
    /// # Errors
    /// If the certificate authorities cannot be read, there is a password without a user, or it cannot be sent.
    pub fn new(address: ClusterAddress, password: Option<&str>) -> Result<Self, Error> {
        let password = password.unwrap_or_default();
        let wrong = |message: &str| Error::new(ErrorKind::Config("database"), message);
        let authorization = match &address.user {
            None if password.is_empty() => None,
            None => {
                return Err(wrong(
                    "there is a password for the database, but no user in its address",
                ));
            }
            Some(user) => {
                let pair = STANDARD.encode(format!("{user}:{password}"));
                let mut value = HeaderValue::try_from(format!("Basic {pair}"))
                    .map_err(|_| wrong("the password of the database cannot be sent"))?;
                value.set_sensitive(true);
                Some(value)
            }
        };
        let names = Names::default();
        let agent = agent::agent(&address, authorization, names.clone())?;
        let scheme = if address.is_tls { "https" } else { "http" };
        let nodes = address
            .hosts
            .iter()
            .map(|host| Node::new(scheme, host))
            .collect();
        let fresh = if address.allows_old {
            STRONG
        } else {
            LINEARIZABLE
        };
        Ok(Self {
            agent,
            names,
            address,
            fresh,
            nodes,
            favourite: AtomicUsize::new(0),
        })
    }

    /// Makes a client for the address of a database, and checks the version of a node. The password comes from
    /// the program or the environment.
    ///
    /// # Errors
    /// If the address is wrong, no node answers in time, the password is rejected, or rqlite is too old.
    pub fn connect(address: &str, patience: Duration) -> Result<Self, Error> {
        let wrong = |why: String| Error::new(ErrorKind::Config("database"), why);
        let given = passwords().get(address).cloned();
        let address = ClusterAddress::parse(address)
            .map_err(|why| wrong(format!("the address of the database {why}")))?;
        let password = match given {
            Some(_) => given,
            None => from_environment("PETSTORE_DATABASE_PASSWORD")?.map(Secret::from),
        };
        let client = Self::new(address, password.as_deref())?;
        let version = client.rqlite_version(patience)?;
        if is_old(&version) && !client.address.allows_old {
            let [major, minor] = NEEDED;
            let message = format!(
                "{} runs rqlite {version}, which may lose acknowledged pets in a power cut; version {major}.{minor} and later flush snapshots to the disk",
                client.address
            );
            return fail(ErrorKind::RqliteOlder, message);
        }
        Ok(client)
    }

    /// Returns the version of rqlite on the node that answers, such as `9.4.5`.
    ///
    /// # Errors
    /// If no node answers in time.
    pub fn rqlite_version(&self, patience: Duration) -> Result<String, ClusterFailure> {
        let body = statement::encode(&[Statement::plain("SELECT 1")]);
        self.try_nodes(patience, |node, limit| {
            let (headers, _) = self.exchange(node, limit, ANY_NODE, JSON, &body)?;
            let version = headers
                .get(VERSION_FIELD)
                .and_then(|version| version.to_str().ok());
            let version = version.ok_or_else(|| Trouble::foreign("", false))?;
            Ok(version.trim_start_matches('v').to_owned())
        })
    }

    /// Asks for the rows of statements that only read, in one request: one list of rows for each.
    ///
    /// # Errors
    /// If a statement fails, or no node answers in time.
    pub fn read(
        &self,
        statements: &[Statement],
        path: &str,
        patience: Duration,
    ) -> Result<Vec<ClusterRows>, ClusterFailure> {
        let outcomes = match self.ask(path, statements, patience) {
            // When a node joins or leaves, rqlite 9.4.5 holds back linearizable reads until the log has one more
            // entry. A strong read adds an entry.
            Err(ClusterFailure::Node(trouble)) if trouble.text.ends_with(WAITS) => {
                self.ask(STRONG, statements, patience)
            }
            outcomes => outcomes,
        };
        outcomes.map(rows).map_err(|failure| match failure {
            // A read changes nothing, so it may have been carried out.
            ClusterFailure::Node(trouble) => ClusterFailure::Node(Trouble {
                may_be_done: false,
                ..trouble
            }),
            failure => failure,
        })
    }

    /// Asks the host at this index, once and directly, for the rows of statements that only read. They may be old.
    ///
    /// # Errors
    /// Why the host does not answer.
    pub fn read_from(
        &self,
        place: usize,
        statements: &[Statement],
    ) -> Result<Vec<ClusterRows>, String> {
        let body = statement::encode(statements);
        match self.ask_node(
            &self.nodes[place],
            ANSWER,
            ANY_NODE,
            &body,
            statements.len(),
        ) {
            Ok(Ok(outcomes)) => Ok(rows(outcomes)),
            Ok(Err(failure)) => Err(failure.to_string()),
            Err(trouble) => Err(trouble.text),
        }
    }

    /// Carries out statements in one transaction: one outcome for each.
    ///
    /// # Errors
    /// If a statement fails, so that nothing is written, or no node answers in time.
    pub fn write(
        &self,
        statements: &[Statement],
        patience: Duration,
    ) -> Result<Vec<StatementAnswer>, ClusterFailure> {
        // `/db/request` goes on after a statement that cannot be prepared, even within a transaction.
        self.ask("/db/execute?transaction", statements, patience)
    }

    /// Writes a copy of the whole database to `to`, as the leader has it. The transfer has no time limit.
    ///
    /// # Errors
    /// If no node begins to answer in time, the transfer breaks off, or the copy cannot be written.
    pub fn download(&self, to: &mut impl Write, patience: Duration) -> Result<(), Error> {
        let mut response = self.try_nodes(patience, |node, _| {
            let request = self
                .agent
                .get(format!("{}/db/backup?{WHOLE_TIMEOUT}", node.base))
                .config();
            let request = request
                .timeout_global(None)
                .timeout_recv_response(Some(WHOLE))
                .build();
            let mut response = request.call()?;
            if response.status().as_u16() == 200 {
                return Ok(response);
            }
            let body = response.body_mut().read_to_vec().unwrap_or_default();
            Err(refusal(&response, &body))
        })?;
        std::io::copy(&mut response.body_mut().as_reader(), to)
            .map(drop)
            .map_err(|error| {
                Error::io(
                    format!("cannot copy the database of {}", self.address),
                    error,
                )
            })
    }

    /// Replaces the whole database by an SQLite file.
    ///
    /// # Errors
    /// If no node takes it, or the outcome is unknown.
    pub fn load(&self, file: &[u8], patience: Duration) -> Result<(), ClusterFailure> {
        let path = format!("/db/load?{WHOLE_TIMEOUT}");
        self.try_nodes(patience, |node, _| {
            self.exchange(node, WHOLE, &path, "application/octet-stream", file)
                .map(drop)
        })
    }

    /// The requests to each host so far.
    pub fn meters(&self) -> Vec<HostMeter> {
        self.nodes
            .iter()
            .map(|node| node.history().meter.clone())
            .collect()
    }

    fn ask(
        &self,
        path: &str,
        statements: &[Statement],
        patience: Duration,
    ) -> Result<Vec<StatementAnswer>, ClusterFailure> {
        let body = statement::encode(statements);
        self.try_nodes(patience, |node, limit| {
            self.ask_node(node, limit, path, &body, statements.len())
        })?
    }

    /// Asks one node. A statement that failed is an answer.
    fn ask_node(
        &self,
        node: &Node,
        limit: Duration,
        path: &str,
        body: &[u8],
        count: usize,
    ) -> Result<Result<Vec<StatementAnswer>, ClusterFailure>, Trouble> {
        let (_, answer) = self.exchange(node, limit, path, JSON, body)?;
        statement::decode(&answer, count)
    }

    /// Tries one node after the other, with pauses between, until one answers.
    fn try_nodes<T>(
        &self,
        patience: Duration,
        request: impl Fn(&Node, Duration) -> Result<T, Trouble>,
    ) -> Result<T, ClusterFailure> {
        let start = Instant::now();
        let [mut pause, longest] = PAUSES;
        let (mut limit, mut limits, mut may_be_done) = (ANSWER, NEXT.into_iter(), false);
        loop {
            let place = self.favourite.load(Relaxed);
            let node = &self.nodes[place];
            let begun = Instant::now();
            let result = request(node, limit);
            let mut history = node.history();
            history.meter.requests += 1;
            history.meter.duration += begun.elapsed();
            let trouble = match result {
                Ok(answer) => return Ok(answer),
                Err(trouble) => trouble,
            };
            history.meter.failures += 1;
            history.failed_at = Some(Instant::now());
            drop(history);
            log::debug!("the node {} failed: {}", node.host, trouble.text);
            // Another thread may have moved on already.
            let next = (place + 1) % self.nodes.len();
            let _ = self
                .favourite
                .compare_exchange(place, next, Relaxed, Relaxed);
            self.names.forget();
            may_be_done |= trouble.may_be_done;
            // After a node that hung, there is no pause.
            let wait = if begun.elapsed() >= limit {
                Duration::ZERO
            } else {
                pause
            };
            if trouble.is_final || start.elapsed() + wait >= patience {
                let text = format!("{}: {}", node.host, trouble.text);
                return Err(ClusterFailure::Node(Trouble {
                    text,
                    may_be_done,
                    ..trouble
                }));
            }
            std::thread::sleep(wait);
            pause = (pause + wait).min(longest);
            limit = limits.next().unwrap_or(ANSWER);
        }
    }

    /// Makes the node with the host name of the leader the favourite. Ports differ: that of `leader` is Raft's.
    fn follow(&self, leader: &str) {
        let name = |host: &str| host.rsplit_once(':').map(|(name, _)| name.to_owned());
        let mut places =
            (0..self.nodes.len()).filter(|&place| name(&self.nodes[place].host) == name(leader));
        let (Some(place), None) = (places.next(), places.next()) else {
            return;
        };
        if self.nodes[place]
            .history()
            .failed_at
            .is_none_or(|at| at.elapsed() >= SHUNNED)
        {
            self.favourite.store(place, Relaxed);
        }
    }

    /// Posts a body to one node. Returns the header fields and the body of a response with status 200.
    fn exchange(
        &self,
        node: &Node,
        limit: Duration,
        path: &str,
        content_type: &str,
        body: &[u8],
    ) -> Result<(HeaderMap, Vec<u8>), Trouble> {
        let request = self
            .agent
            .post(format!("{}{path}", node.base))
            .header(CONTENT_TYPE, content_type);
        let mut response = limited(request, limit).send(body)?;
        if let Some(leader) = response
            .headers()
            .get("X-Rqlite-Served-By")
            .and_then(|name| name.to_str().ok())
        {
            self.follow(leader);
        }
        // Read to its end, so that the connection can be used again.
        let body = response
            .body_mut()
            .with_config()
            .limit(MOST_BYTES)
            .read_to_vec()?;
        match response.status().as_u16() {
            200 => Ok((response.into_parts().0.headers, body)),
            _ => Err(refusal(&response, &body)),
        }
    }
}

/// Sets the time limit of a request. A request that cannot connect ends earlier, so that it is certain that nothing was
/// sent. `ANSWER` is the default of the agent, because a setting for a single request costs more.
fn limited<B>(request: RequestBuilder<B>, limit: Duration) -> RequestBuilder<B> {
    if limit == ANSWER {
        return request;
    }
    let connect = Some(limit.min(ANSWER) / 2);
    request
        .config()
        .timeout_resolve(connect)
        .timeout_connect(connect)
        .timeout_global(Some(limit))
        .build()
}

/// Returns `true` if a version such as `9.4.5` or `10.0.0-rc1` may lose what it has acknowledged.
fn is_old(version: &str) -> bool {
    let mut numbers = version
        .split(['.', '-'])
        .map(|number| number.parse().unwrap_or(0));
    [(); 2].map(|()| numbers.next().unwrap_or(0)) < NEEDED
}

fn rows(outcomes: Vec<StatementAnswer>) -> Vec<ClusterRows> {
    outcomes.into_iter().map(|outcome| outcome.rows).collect()
}

/// The trouble of a response with a status other than 200.
fn refusal(response: &ureq::http::Response<Body>, body: &[u8]) -> Trouble {
    Trouble::of_status(
        response.status().as_u16(),
        body,
        response.headers().contains_key(VERSION_FIELD),
    )
}
