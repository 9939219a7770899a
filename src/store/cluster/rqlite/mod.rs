//! rqlite, which is SQLite under Raft, asked over HTTP.
//!
//! - `client/` asks one node after the other. It knows no table.
//! - `connection.rs` is a connection, whose reads see everything that was acknowledged before.
//! - `batch.rs` writes, and sends a request again if it or its response may be lost. `request.rs` is that request.
//! - `copies.rs` copies and replaces the whole database. `replicas.rs` compares the nodes.
//! - `schema.rs` brings the database up to date. `cluster.sql` has the tables and triggers that `schema.sql` lacks.
//!
//! Time limits, and the time that each must outlast. A new try may begin until the patience is over, so the last try
//! ends up to `ANSWER` later.
//!
//! | limit | seconds | |
//! |---|---|---|
//! | `connection::SHORT_PATIENCE` | 0.25 | of a read while the cluster is away: three refusals and the pauses between |
//! | `agent::CONNECT` | 1 | to resolve a name, and again to connect |
//! | `connection::AWAY` | 1 | between two tries while the cluster is away |
//! | `batch::PROBE_FOR` | 1 | patience of a probe |
//! | `linearizable_timeout` | 0.4 | of a node that asks its quorum, within `agent::NEXT` |
//! | `agent::ANSWER` | 2 | of one request: an election takes 1.9 to 2.8 s |
//! | `agent::NEXT` | 0.5 | of the five tries after the first one, then `ANSWER` again |
//! | `connection::PATIENCE` | 5 | of a read: outlasts the first six tries |
//! | `connection::SEND_FOR` | 8 | of a batch: outlasts an election and `ANSWER` twice, because its failure leaves doubt |
//! | `schema::PATIENCE` | 8 | at the start and of commands: outlasts an election |

mod batch;
mod connection;
mod copies;
mod replicas;
mod request;
mod schema;
#[cfg(test)]
mod tests;

use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError, Weak};

use crate::store::StoreError;
use petstore_base::error::{Error, ErrorKind};
use petstore_cluster::{Client, Statement};
use rusqlite::ToSql;

pub use connection::Cluster;
pub use copies::{fetch, load};
pub use petstore_cluster::{HostMeter, set_database_password};
pub use replicas::compare;
#[cfg(test)]
pub use tests::run;

/// The clients in use, by address: all connections of a process share one.
static CLIENTS: Mutex<Vec<(String, Weak<Client>)>> = Mutex::new(Vec::new());

/// The client for an address.
fn connect(path: &Path) -> Result<Arc<Client>, Error> {
    let address = path.to_string_lossy();
    let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
    clients.retain(|(_, client)| client.strong_count() > 0);
    if let Some(client) = clients
        .iter()
        .find_map(|(known, client)| client.upgrade().filter(|_| *known == address))
    {
        return Ok(client);
    }
    let client = Arc::new(Client::connect(&address, schema::PATIENCE)?);
    clients.push((address.into_owned(), Arc::downgrade(&client)));
    Ok(client)
}

/// A statement with these values.
fn statement(sql: &str, values: &[&dyn ToSql]) -> Result<Statement, StoreError> {
    Ok(Statement::new(sql, values)?)
}

fn random() -> Result<u64, Error> {
    getrandom::u64()
        .map_err(|error| Error::new(ErrorKind::Io, format!("cannot get random bits: {error}")))
}

/// A name that no other writer has.
fn random_name() -> Result<String, Error> {
    Ok(format!("{:016x}{:016x}", random()?, random()?))
}

/// The requests of this process to each host.
pub fn meters(path: &Path) -> Vec<HostMeter> {
    connect(path)
        .map(|client| client.meters())
        .unwrap_or_default()
}
