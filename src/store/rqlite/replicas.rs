//! Whether all nodes of a cluster have the same database. Raft keeps their logs the same, but a node whose disk was full
//! may have lost what it applied, and one that comes back after `peers.json` may have what the others never had.
//!
//! Each host of the address is asked itself, and compared with the leader. While pets are created, nodes are at
//! different revisions: what has an id up to that of a first look at the leader is the same on all that have come so
//! far, unless the counter of other changes has moved.

use std::path::Path;
use std::time::Duration;

use rusqlite::params;

use super::client::{Failure, Rows, Statement};
use super::connect;
use super::mirror::TABLES;
use super::revision::{REVISION, Revision};
use super::schema::PATIENCE;
use crate::error::{Error, ErrorKind, fail};
use crate::store::StoreError;
use crate::store::pets::COLUMNS;

/// How often to ask the nodes until all have come as far as the leader was, and nothing else changes meanwhile.
const ROUNDS: usize = 25;
const PAUSE: Duration = Duration::from_millis(200);

const REPLACE: &str = "keep a copy of it (/db/backup?noleader&vacuum), and replace it before the leader restarts: stop it, \
    remove its id, see in /nodes that id and address are gone, empty its folder, and start it with a new id";
const UNCLEAR: &str = "restart no node, and keep a copy of each (/db/backup?noleader&vacuum): \
    too few agree with the leader to tell which is right";

/// What a node has.
#[derive(Debug)]
struct State {
    revision: Revision,
    /// Tells contents apart; `None` if the node is not comparable with the leader.
    content: Option<String>,
}

impl State {
    fn of(mut rows: Rows) -> Result<Self, StoreError> {
        let content = rows.first_mut().and_then(Vec::pop).and_then(|value| value.text().map(str::to_owned));
        Ok(Self { revision: Revision::of(&rows)?, content })
    }
}

/// Asks for the state of a node. It has a content if the node has come as far as this revision.
///
/// The newest 100,000 pets are enough: a node that has missed one gives each later pet another id. Texts are told apart
/// by their lengths and ends.
fn question(at: &Revision) -> Result<Statement, StoreError> {
    let counts: String =
        (TABLES.iter().filter(|table| **table != "sqlite_sequence").chain(&["deploy_files"]))
            .map(|table| format!(" || ' ' || (SELECT count(*) FROM {table})"))
            .collect();
    let number = |(i, column): (usize, &&str)| {
        format!(
            "{} * ifnull(CASE typeof({column}) WHEN 'integer' THEN {column} & 16777215 \
             ELSE 31 * octet_length({column}) + unicode({column}) + 1009 * unicode(substr({column}, -1)) END, 0)",
            2 * i + 1
        )
    };
    let contents = COLUMNS.iter().enumerate().map(number).collect::<Vec<_>>().join(" + ");
    let sql = format!(
        "WITH now (changes, seq, mark) AS ({REVISION}) \
         SELECT changes, seq, mark, CASE WHEN changes = ?1 AND mark = ?2 AND seq >= ?3 THEN \
         (SELECT count(*) || ' ' || ifnull(max(id), 0) || ' ' || ifnull(sum((1 + (id & 65535)) \
         * (({contents}) & 16777215)), 0) \
         FROM pets WHERE id > ?3 - 100000 AND id <= ?3){counts} END FROM now"
    );
    Statement::new(&sql, params![at.changes, at.mark, at.seq])
}

/// What is wrong with the nodes of a cluster, one line each.
///
/// # Errors
/// If the cluster does not answer, or is changed all the time.
pub fn compare(path: &Path) -> Result<Vec<String>, Error> {
    let (client, level) = connect(path)?;
    let of_leader = |statement: Statement| -> Result<Rows, Failure> {
        Ok(client.read(&[statement], level, PATIENCE)?.into_iter().next().unwrap_or_default())
    };
    let at_now = || -> Result<Statement, Error> {
        Ok(question(&Revision::of(&of_leader(Statement::plain(REVISION))?)?)?)
    };
    let mut question = at_now()?;
    for round in 1..=ROUNDS {
        let leader = State::of(of_leader(question.clone())?)?;
        if leader.content.is_none() {
            // Something other than new pets has changed.
            question = at_now()?;
            continue;
        }
        let state = |rows: Rows| State::of(rows).map_err(|error| error.to_string());
        let hosts: Vec<(&str, Result<State, String>)> = (client.read_from_each(&question).into_iter())
            .map(|(host, rows)| (host, rows.and_then(state)))
            .collect();
        let is_behind = |state: &Result<State, String>| matches!(state, Ok(State { content: None, .. }));
        if round == ROUNDS || !hosts.iter().any(|(_, state)| is_behind(state)) {
            return Ok(findings(&leader, &hosts));
        }
        std::thread::sleep(PAUSE);
    }
    fail(ErrorKind::Conflict, format!("{} was changed while its nodes were compared", client.address))
}

fn findings(leader: &State, hosts: &[(&str, Result<State, String>)]) -> Vec<String> {
    let agrees = |state: &State| state.content == leader.content;
    let agreeing = hosts.iter().filter(|(_, state)| state.as_ref().is_ok_and(agrees)).count();
    let advice = if 2 * agreeing > hosts.len() { REPLACE } else { UNCLEAR };
    let finding = |(host, state): &(&str, Result<State, String>)| match state {
        Err(why) => Some(format!("{host} cannot be compared with the leader: {why}")),
        Ok(state) if agrees(state) => None,
        Ok(State { content: Some(_), .. }) => {
            Some(format!("{host} has other pets or settings than the leader; {advice}"))
        }
        Ok(State { revision, .. }) => Some(format!(
            "{host} has ids up to {} and {} other changes, but the leader {} and {}; \
             if a check in a few minutes says so too, {advice}",
            revision.seq, revision.changes, leader.revision.seq, leader.revision.changes
        )),
    };
    hosts.iter().filter_map(finding).collect()
}
