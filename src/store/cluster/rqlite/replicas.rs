//! Checks that all nodes of a cluster have the same database. Raft keeps their logs equal. But a node whose disk was
//! full may have lost changes that it applied, and a node that was recovered with `peers.json` may have changes that no
//! other node has.
//!
//! It asks each host of the address directly, and compares its rows with those of the leader, slice by slice. Nodes go
//! on changing meanwhile, so it reads rows that differ again until they agree, or have differed for [`SETTLE`].

use std::path::Path;
use std::time::{Duration, Instant};

use rusqlite::params;

use super::connection::{REVISION, revision};
use super::schema::PATIENCE;
use super::{connect, statement};
use crate::store::StoreError;
use crate::store::cluster::Revision;
use crate::store::statements::COLUMNS;
use petstore_base::error::{Error, ErrorKind, fail};
use petstore_cluster::{ClusterRows, Statement};

/// How long a row may differ before its node counts as different.
const SETTLE: Duration = Duration::from_secs(5);
const PAUSE: Duration = Duration::from_millis(100);
/// The most pets of a slice. A node answers this many well within `ANSWER`. A slice ends after a million bytes of
/// values, so even if each byte takes six as JSON, it stays far below `MOST_BYTES`.
const SLICE: i64 = 4000;

/// The tables whose rows only operators add.
const SMALL: [&str; 2] = [
    "SELECT * FROM api_keys ORDER BY id",
    "SELECT * FROM imports ORDER BY input",
];

const REPLACE: &str = "keep a copy of it (/db/backup?noleader&vacuum), and replace it before the leader restarts: stop it, \
    remove its id, see in /nodes that id and address are gone, empty its folder, and start it with a new id";
const UNCLEAR: &str = "restart no node, and keep a copy of each (/db/backup?noleader&vacuum): \
    too few agree with the leader to tell which is right";

/// The database of a node.
struct NodeState {
    revision: Revision,
    /// The pets of a slice, or the values of all small tables as one row.
    rows: ClusterRows,
}

impl NodeState {
    fn of(mut answers: Vec<ClusterRows>) -> Result<Self, StoreError> {
        let revision = revision(&answers.remove(0))?;
        let rows = answers.concat();
        Ok(Self {
            revision,
            rows: if answers.len() > 1 {
                vec![rows.concat()]
            } else {
                rows
            },
        })
    }
}

/// The next pets after this id, up to the last one, and at most `most` of them.
fn slice(after: i64, last: i64, most: i64) -> Result<Statement, StoreError> {
    let columns = COLUMNS.join(", ");
    let size = COLUMNS
        .map(|column| format!("ifnull(octet_length({column}), 0)"))
        .join(" + ");
    let sql = format!(
        "SELECT id, {columns} FROM (SELECT *, \
         sum({size}) OVER (ORDER BY id ROWS BETWEEN UNBOUNDED PRECEDING AND 1 PRECEDING) AS before \
         FROM (SELECT * FROM pets WHERE id > ?1 AND id <= ?2 ORDER BY id LIMIT ?3)) \
         WHERE ifnull(before, 0) < 1000000 ORDER BY id"
    );
    statement(&sql, params![after, last, most])
}

/// A host of the address, as it was when last asked.
struct Host<'c> {
    name: &'c str,
    place: usize,
    state: Result<NodeState, String>,
    /// The fault, once it is certain, and true if an operator can repair the node.
    finding: Option<(String, bool)>,
}

impl Host<'_> {
    /// Returns the number of rows that agree with the leader's before the first that does not, and true if all agree.
    /// No row agrees before the node has everything that the leader had at the beginning.
    fn agreement(&self, leader: &NodeState, begun: &Revision) -> (usize, bool) {
        match &self.state {
            Ok(state) if state.revision.has_all_of(begun) => {
                let pairs = leader.rows.iter().zip(&state.rows);
                (
                    pairs.take_while(|(one, other)| one == other).count(),
                    leader.rows == state.rows,
                )
            }
            Ok(_) | Err(_) => (0, false),
        }
    }

    fn found(&self, leader: &Revision, begun: &Revision) -> (String, bool) {
        let name = self.name;
        match self.state.as_ref().map(|state| &state.revision) {
            Err(why) => (
                format!("{name} cannot be compared with the leader: {why}"),
                false,
            ),
            Ok(own) if own.has_keys_of(leader) && own.has_all_of(begun) => (
                format!("{name} has other pets or settings than the leader; "),
                true,
            ),
            Ok(own) => {
                let line = format!(
                    "{name} has ids up to {} and {} other changes, but the leader {} and {}; \
                     if a check in a few minutes says so too, ",
                    own.seq, own.changes, leader.seq, leader.changes
                );
                (line, true)
            }
        }
    }
}

/// Returns the faults of the nodes of a cluster, one line each.
///
/// # Errors
/// If the cluster does not answer, or is restored meanwhile.
pub fn compare(path: &Path) -> Result<Vec<String>, Error> {
    let client = connect(path)?;
    let ask = Statement::plain(REVISION);
    let asked = client.read(std::slice::from_ref(&ask), client.fresh, PATIENCE)?;
    let begun = revision(&asked.concat())?;
    let small = SMALL.map(Statement::plain).to_vec();
    let mut hosts: Vec<Host> = (client.address.hosts.iter().enumerate())
        .map(|(place, name)| Host {
            name,
            place,
            state: Err(String::new()),
            finding: None,
        })
        .collect();
    // The pets up to this id agree; `None`: the small tables come first.
    let mut after = None;
    let (mut since, mut most) = (Instant::now(), SLICE);
    while hosts.iter().any(|host| host.finding.is_none()) {
        let wanted = match after {
            None => small.clone(),
            Some(id) => vec![slice(id, begun.seq, most)?],
        };
        let wanted = [vec![ask.clone()], wanted].concat();
        let leader = NodeState::of(client.read(&wanted, client.fresh, PATIENCE)?)?;
        if leader.revision.mark != begun.mark {
            let message = format!(
                "{} was restored while its nodes were compared",
                client.address
            );
            return fail(ErrorKind::Conflict, message);
        }
        let (mut agreed, mut are_same) = (leader.rows.len(), true);
        for host in hosts.iter_mut().filter(|host| host.finding.is_none()) {
            let answers = client.read_from(host.place, &wanted);
            host.state =
                answers.and_then(|it| NodeState::of(it).map_err(|error| error.to_string()));
            let (count, is_same) = host.agreement(&leader, &begun);
            (agreed, are_same) = (agreed.min(count), are_same && is_same);
        }
        if are_same && leader.rows.is_empty() {
            break;
        }
        if let Some(last) = leader.rows[..agreed].last() {
            after = after.map_or(Some(i64::MIN), |_| last[0].integer());
            (since, most) = (Instant::now(), SLICE);
        } else if since.elapsed() < SETTLE {
            most = 1;
            std::thread::sleep(PAUSE);
        } else {
            for host in hosts.iter_mut().filter(|host| host.finding.is_none()) {
                let (count, is_same) = host.agreement(&leader, &begun);
                host.finding =
                    (count == 0 && !is_same).then(|| host.found(&leader.revision, &begun));
            }
            (since, most) = (Instant::now(), SLICE);
        }
    }
    let agreeing = hosts.iter().filter(|host| host.finding.is_none()).count();
    let advice = if 2 * agreeing > hosts.len() {
        REPLACE
    } else {
        UNCLEAR
    };
    let findings = hosts.into_iter().filter_map(|host| host.finding);
    Ok(findings
        .map(|(line, is_advised)| if is_advised { line + advice } else { line })
        .collect())
}
