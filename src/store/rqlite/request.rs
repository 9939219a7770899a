//! A batch as one request: its statements, and what their answers tell of its creates.

use std::collections::HashSet;

use rusqlite::{ToSql, params};

use super::client::{self, Rows, Statement, Value};
use super::revision::Revision;
use crate::clock::unix_time;
use crate::model::{IdempotencyKey, NewPet};
use crate::store::StoreError;
use crate::store::engine::Outcome;
use crate::store::pets::{COLUMNS, places};
use crate::store::retries::{self, FIND, FORGET, RECORD};

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
/// Why a create of a batch that was carried out has made no pet.
pub const LEFT_OUT: &str = "a trigger of another program leaves out pets, or adds some";
/// What SQLite's message contains if a statement has refused the batch.
pub const REFUSED: &str = "cluster_writers.is_current";

/// A create that waits for the commit.
pub struct Create {
    pub new: NewPet<'static>,
    pub key: Option<IdempotencyKey>,
}

/// What has become of a create.
pub type Done = Result<Outcome, StoreError>;

/// A batch as it is sent.
pub struct Request<'c> {
    creates: &'c [&'c Create],
    /// The places of the creates without keys, which get consecutive ids. They come before those with keys, so ids do
    /// not follow the order of requests.
    plain: Vec<usize>,
    /// The places of the creates with keys.
    once: Vec<usize>,
    /// [`BATCH`] comes first, then the inserts of the pets, each with what checks or records it.
    pub writes: Vec<Statement>,
    /// [`FIRST`], then [`FIND`] for each create with a key: their rows tell the outcomes of the creates.
    pub finds: Vec<Statement>,
}

impl<'c> Request<'c> {
    pub fn new(
        (name, batch): (&str, i64),
        guard: Option<Revision>,
        creates: &'c [&'c Create],
        changes: &[Statement],
    ) -> Result<Self, StoreError> {
        let now = unix_time();
        let (plain, once): (Vec<usize>, Vec<usize>) =
            (0..creates.len()).partition(|place| creates[*place].key.is_none());
        let (state, mark) = guard.map(|seen| (seen.changes, seen.mark)).unzip();
        let mut writes = vec![Statement::new(BATCH, params![name, batch, state, now, mark])?];
        let mut finds = vec![Statement::new(FIRST, params![name, batch])?];
        let columns = COLUMNS.join(", ");
        if !plain.is_empty() {
            let count = i64::try_from(plain.len()).unwrap_or(i64::MAX);
            let row = format!("({})", ["?"; COLUMNS.len()].join(", "));
            let rows = vec![row; plain.len()].join(", ");
            let values: Vec<_> = plain.iter().flat_map(|place| creates[*place].new.values()).collect();
            let values: Vec<&dyn ToSql> = values.iter().map(|value| value as &dyn ToSql).collect();
            writes.push(Statement::new(&format!("INSERT INTO pets ({columns}) VALUES {rows}"), &values)?);
            writes.push(Statement::new(COUNTED, params![name, count])?);
        }
        // Inserts nothing if the key is recorded; `RECORD` then sees `changes() = 0`.
        let (values, key) = (places(COLUMNS.len()), COLUMNS.len() + 1);
        let insert_once = format!(
            "INSERT INTO pets ({columns}) SELECT {values} \
             WHERE NOT EXISTS (SELECT 1 FROM retries WHERE key = ?{key})"
        );
        for &place in &once {
            let Create { new, key: Some(key) } = creates[place] else { continue };
            let values = new.values();
            let values = values.iter().map(|value| value as &dyn ToSql).chain([&key.0 as _]);
            writes.push(Statement::new(&insert_once, &values.collect::<Vec<_>>())?);
            writes.push(Statement::new(RECORD, params![key.0, new.fingerprint(), now])?);
            finds.push(Statement::new(FIND, params![key.0])?);
        }
        if !once.is_empty() {
            writes.push(Statement::new(FORGET, params![retries::share(once.len()), now - retries::KEPT])?);
        }
        writes.extend_from_slice(changes);
        if batch == 1 {
            writes.push(Statement::plain(PRUNE));
        }
        Ok(Self { creates, plain, once, writes, finds })
    }

    /// The outcomes of the creates, whose pets without keys have the ids from `first` on.
    fn done(&self, first: i64, once: impl Iterator<Item = Option<Done>>) -> Option<Vec<Done>> {
        let mut done = vec![None; self.creates.len()];
        self.plain.iter().zip(first..).for_each(|(place, id)| done[*place] = Some(Ok(Outcome::Made(id))));
        self.once.iter().zip(once).for_each(|(place, outcome)| done[*place] = outcome);
        done.into_iter().collect()
    }

    /// The outcomes of the creates, from the answers to the writes; `None` unless each made a pet.
    pub fn made(&self, answers: &[client::Answer]) -> Option<Vec<Done>> {
        let mut inserts = answers.iter().skip(1).step_by(2);
        let first = match self.plain.len() {
            0 => 0,
            // COUNTED has checked this.
            count => inserts.next()?.last_insert_id + 1 - i64::try_from(count).ok()?,
        };
        let made = |answer: &client::Answer| {
            (answer.rows_affected == 1).then_some(Ok(Outcome::Made(answer.last_insert_id)))
        };
        self.done(first, inserts.map(made))
    }

    /// The outcomes of the creates, from the rows of the finds; `None` if the batch was not carried out.
    pub fn found(&self, found: &[Rows]) -> Option<Vec<Done>> {
        let &[Value::Integer(first)] = found.first()?.first()?.as_slice() else { return None };
        let mut made = HashSet::new();
        let once = self.once.iter().zip(&found[1..]).map(|(place, rows)| {
            let Some([Value::Integer(pet), Value::Blob(fingerprint)]) = rows.first().map(Vec::as_slice)
            else {
                return Some(Err(StoreError::Internal(LEFT_OUT.to_owned())));
            };
            let is_same = self.creates[*place].new.fingerprint() == fingerprint.as_slice();
            // The record is of this batch if its pet is, and then of the first create with the key.
            let is_first = *pet >= first && made.insert(*pet);
            Some(Ok(match (is_same, is_first) {
                (true, true) => Outcome::Made(*pet),
                (true, false) => Outcome::Replayed(*pet),
                (false, _) => Outcome::Reused,
            }))
        });
        self.done(first, once)
    }
}
