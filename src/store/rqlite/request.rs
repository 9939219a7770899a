//! A batch as one request: its statements, and what their answers tell of its creates.

use std::collections::HashSet;

use rusqlite::{ToSql, params};

use super::client::{self, Rows, Statement, Value};
use super::revision::Revision;
use super::values::statement;
use crate::clock::unix_time;
use crate::model::PetStatus;
use crate::store::StoreError;
use crate::store::engine::Outcome;

/// The writer of the row that closes the cluster. Its `batch` is the Unix time until which nobody may write, and its
/// `first` is the number of the restore: see `whole.rs`. [`BATCH`] names it too.
pub const CLOSER: &str = "restore";
/// Records the batch, and the first id that its pets can have. `is_current` is NULL, and refused, if the batch is not
/// the next one of its writer, was made for another state of the database, or the database is closed.
const BATCH: &str = "INSERT INTO cluster_writers (writer, batch, first, is_current) SELECT ?1, ?2, \
    1 + max((SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = 'pets'), (SELECT ifnull(max(id), 0) FROM pets)), \
    CASE WHEN (?3 IS NULL OR ?3 = (SELECT changes FROM cluster_changes) \
            AND ?5 = ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'petstore log'), '')) \
        AND NOT EXISTS (SELECT 1 FROM cluster_writers WHERE writer = ?1 AND batch >= ?2) \
        AND NOT EXISTS (SELECT 1 FROM cluster_writers WHERE writer = 'restore' AND batch > ?4) THEN 1 END \
    WHERE true ON CONFLICT (writer) DO UPDATE SET batch = excluded.batch, first = excluded.first";
/// Removes all but the newest 100,000 writers. One that still writes gets a new row with its next batch.
const PRUNE: &str = "DELETE FROM cluster_writers WHERE id <= (SELECT max(id) FROM cluster_writers) - 100000";
/// Refuses the batch if the ids of the pets without keys are not consecutive, because a trigger of another program has
/// left one out or added one.
const COUNTED: &str = "UPDATE cluster_writers \
    SET is_current = CASE WHEN changes() = ?2 AND last_insert_rowid() = first + ?2 - 1 THEN 1 END WHERE writer = ?1";
const FIRST: &str = "SELECT first FROM cluster_writers WHERE writer = ?1 AND batch = ?2";
/// Inserts nothing if the key is recorded; [`RECORD`] then sees `changes() = 0`.
const INSERT_ONCE: &str = "INSERT INTO pets (name, category_id, status) SELECT ?1, ?2, ?3 \
    WHERE NOT EXISTS (SELECT 1 FROM older_retries WHERE key = ?4)";
const RECORD: &str = "INSERT INTO older_retries (key, fingerprint, pet, at) SELECT ?1, ?2, last_insert_rowid(), ?3 \
    WHERE changes() = 1";
const FIND: &str = "SELECT fingerprint, pet FROM older_retries WHERE key = ?1";

/// Why a create of a batch that was carried out has made no pet.
pub const LEFT_OUT: &str = "a trigger of another program leaves out pets, or adds some";
/// What SQLite's message contains if a statement has refused the batch.
pub const REFUSED: &str = "cluster_writers.is_current";

/// A create that waits for the commit.
pub struct Create {
    pub name: String,
    pub category_id: i64,
    pub status: Option<PetStatus>,
    /// Its key, and the fingerprints by which another create is known to be the same one.
    pub once: Option<([u8; 16], [[u8; 16]; 2])>,
}

/// What has become of a create.
pub type Done = Result<Outcome, StoreError>;

/// A batch as it is sent.
pub struct Request {
    /// First [`BATCH`]. If there are creates without keys, then their INSERT and [`COUNTED`]. Then [`INSERT_ONCE`] and
    /// [`RECORD`] for each create with a key, then the changes, and in a writer's first batch [`PRUNE`]. Creates
    /// without keys come first, so ids do not follow the order of requests.
    pub statements: Vec<Statement>,
    /// [`FIRST`], then [`FIND`] for each create with a key: their rows tell the outcomes of the creates.
    pub finds: Vec<Statement>,
}

impl Request {
    pub fn new(
        (name, batch): (&str, i64),
        guard: Option<Revision>,
        creates: &[&Create],
        changes: &[Statement],
    ) -> Result<Self, StoreError> {
        let (state, mark) = guard.map(|seen| (seen.changes, seen.mark)).unzip();
        let mut statements = vec![statement(BATCH, params![name, batch, state, unix_time(), mark])?];
        let mut finds = vec![statement(FIRST, params![name, batch])?];
        let plain: Vec<&&Create> = creates.iter().filter(|create| create.once.is_none()).collect();
        if !plain.is_empty() {
            let rows = vec!["(?, ?, ?)"; plain.len()].join(", ");
            let text = format!("INSERT INTO pets (name, category_id, status) VALUES {rows}");
            let values = plain.iter().flat_map(|it| [&it.name as &dyn ToSql, &it.category_id, &it.status]);
            statements.push(statement(&text, &values.collect::<Vec<_>>())?);
            let count = i64::try_from(plain.len()).unwrap_or(i64::MAX);
            statements.push(statement(COUNTED, params![name, count])?);
        }
        for create in creates {
            let Some((key, [fingerprint, _])) = &create.once else { continue };
            let values = params![create.name, create.category_id, create.status, key];
            statements.push(statement(INSERT_ONCE, values)?);
            statements.push(statement(RECORD, params![key, fingerprint, unix_time()])?);
            finds.push(statement(FIND, params![key])?);
        }
        statements.extend_from_slice(changes);
        if batch == 1 {
            statements.push(statement(PRUNE, &[])?);
        }
        Ok(Self { statements, finds })
    }
}

/// The outcomes of the creates, from the answers to the statements of a [`Request`]; `None` unless each made a pet.
pub fn made(creates: &[&Create], answers: &[client::Outcome]) -> Option<Vec<Done>> {
    let plain = creates.iter().filter(|create| create.once.is_none()).count();
    // One statement inserted the pets without keys, and the next one counted them.
    let last = answers.get(1).map_or(0, |answer| answer.last_insert_id);
    let mut places = (1..).step_by(2);
    let mut ids = (1..=plain).rev().map(|left| Some(last - i64::try_from(left).ok()? + 1));
    if plain > 0 {
        places.next();
    }
    let outcome = |create: &&Create| match create.once {
        None => ids.next()?.map(|id| Ok(Outcome::Made(id))),
        Some(_) => {
            let answer = answers.get(places.next()?)?;
            (answer.rows_affected == 1).then_some(Ok(Outcome::Made(answer.last_insert_id)))
        }
    };
    creates.iter().map(outcome).collect()
}

/// The outcomes of the creates, from the rows of [`FIRST`] and of a [`FIND`] for each key; `None` if it was not carried out.
pub fn outcomes<'c>(creates: &[&'c Create], found: &[Rows]) -> Option<Vec<Done>> {
    let (first, records) = found.split_first()?;
    let &[Value::Integer(first)] = first.first()?.as_slice() else { return None };
    let (mut next, mut records, mut made) = (first, records.iter(), HashSet::new());
    let outcome = |create: &'c Create| {
        let Some((key, fingerprints)) = &create.once else {
            next += 1;
            return Some(Ok(Outcome::Made(next - 1)));
        };
        let record = records.next()?.first();
        let Some([Value::Blob(fingerprint), Value::Integer(pet)]) = record.map(Vec::as_slice) else {
            return Some(Err(StoreError::Internal(LEFT_OUT.to_owned())));
        };
        let is_same = fingerprints.iter().any(|own| own == fingerprint.as_slice());
        // The record is of this batch if its pet is, and then of the first create with the key.
        let is_first = *pet >= first && made.insert(key);
        Some(Ok(match (is_same, is_first) {
            (true, true) => Outcome::Made(*pet),
            (true, false) => Outcome::Replayed(*pet),
            (false, _) => Outcome::Reused,
        }))
    };
    creates.iter().copied().map(outcome).collect()
}
