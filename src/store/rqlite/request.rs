//! A batch as one request: its statements, and the outcomes of its creates from their answers.

use std::collections::HashSet;

use rusqlite::{ToSql, params};

use super::client::{self, ClusterRows, ClusterValue, Statement};
use super::revision::Revision;
use crate::model::{IdempotencyKey, NewPet};
use crate::store::StoreError;
use crate::store::outcome::Outcome;
use crate::store::retries::{self, FIND, FORGET, RECORD};
use crate::store::statements::COLUMNS;

/// Records the batch, and the first id that its pets can have. `is_current` is NULL, and rejected, if the batch is not
/// the next one of its writer, or was made for another state of the database.
const BATCH: &str = "INSERT INTO cluster_batches (writer, batch, first, is_current) SELECT ?1, ?2, \
    1 + max((SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = 'pets'), (SELECT ifnull(max(id), 0) FROM pets)), \
    CASE WHEN (?3 IS NULL OR ?3 = (SELECT changes FROM cluster_changes) \
            AND ?4 = ifnull((SELECT seq FROM sqlite_sequence WHERE name = 'petstore log'), '')) \
        AND NOT EXISTS (SELECT 1 FROM cluster_batches WHERE writer = ?1 AND batch >= ?2) THEN 1 END \
    WHERE true ON CONFLICT (writer) DO UPDATE SET batch = excluded.batch, first = excluded.first, fits = ''";
/// Removes all but the newest 100,000 writers. One that still writes gets a new row with its next batch.
const PRUNE: &str =
    "DELETE FROM cluster_batches WHERE id <= (SELECT max(id) FROM cluster_batches) - 100000";
/// Rejects the batch if the ids of the pets without keys are not consecutive, because a trigger of another program has
/// left out a pet or added one.
const COUNTED: &str = "UPDATE cluster_batches \
    SET is_current = CASE WHEN changes() = ?2 AND last_insert_rowid() = first + ?2 - 1 THEN 1 END WHERE writer = ?1";
/// Notes if the statement before it has changed its pet.
const NOTE: &str = "UPDATE cluster_batches SET fits = fits || changes() WHERE writer = ?1";
/// Rejects the batch if the statement before it has not changed its pet.
const REQUIRE: &str = "UPDATE cluster_batches SET fits = CASE WHEN changes() = 1 THEN fits || 1 END WHERE writer = ?1";
/// Adds pets; a row of values for each follows.
const INSERT_MANY: &str = "INSERT INTO pets (name, category_id, status) VALUES ";
/// Adds a pet, unless the key `?4` is recorded; [`RECORD`] then sees `changes() = 0`.
const INSERT_ONCE: &str = "INSERT INTO pets (name, category_id, status) SELECT ?1, ?2, ?3 \
    WHERE NOT EXISTS (SELECT 1 FROM retries WHERE key = ?4)";
const FIRST: &str = "SELECT first, fits FROM cluster_batches WHERE writer = ?1 AND batch = ?2";
/// The message for a create that has made no pet although its batch was carried out.
pub const LEFT_OUT: &str = "a trigger of another program leaves out pets, or adds some";
/// SQLite's message contains this text if a statement has rejected the batch.
pub const REFUSED: &str = "cluster_batches.is_current";
/// The same, if a pet was changed since it was read.
pub const MISSED: &str = "cluster_batches.fits";

/// A create that waits for the commit.
pub struct Create {
    pub new: NewPet<'static>,
    pub key: Option<IdempotencyKey>,
}

/// What a batch does, in this order. All of it is carried out, or nothing.
#[derive(Default)]
pub struct Work<'b> {
    pub creates: Vec<&'b Create>,
    /// Statements that each change a pet that is as expected, and nothing otherwise.
    pub pets: Vec<&'b Statement>,
    /// Statements on small tables.
    pub others: &'b [Statement],
    /// Rejects the batch if a pet is not as expected.
    pub is_whole: bool,
}

/// The outcome of a create, or its failure.
pub type CreateResult = Result<Outcome, StoreError>;

/// The outcomes of the creates, and whether the pets to change were as expected.
#[derive(Clone, Debug, PartialEq)]
pub struct Done {
    pub creates: Vec<CreateResult>,
    pub fits: Vec<bool>,
}

/// The subject of the answer to a statement. Each statement is added together with its subject, so that an additional
/// statement cannot shift the answers of the others. The client rejects a response with fewer or more answers than
/// statements.
enum About {
    /// The creates without keys.
    Plain,
    /// The create with a key at this index of the batch.
    Once(usize),
    /// A change of a pet.
    Change,
    Nothing,
}

/// A batch as it is sent.
pub struct BatchRequest<'b> {
    creates: &'b [&'b Create],
    /// The indexes of the creates without keys, which get consecutive ids. They come before those with keys, so ids do
    /// not follow the order of requests.
    plain: Vec<usize>,
    /// The indexes of the creates with keys.
    once: Vec<usize>,
    /// [`BATCH`] comes first, then the inserts of the pets, each with what checks or records it.
    pub writes: Vec<Statement>,
    write_abouts: Vec<About>,
    /// [`FIRST`], and [`FIND`] for each create with a key: their rows have the outcomes of the creates.
    pub finds: Vec<Statement>,
}

impl<'b> BatchRequest<'b> {
    pub fn new(
        (name, batch): (&str, i64),
        guard: Option<Revision>,
        work: &'b Work<'b>,
        now: i64,
    ) -> Result<Self, StoreError> {
        let creates = &work.creates;
        let (plain, once): (Vec<usize>, Vec<usize>) =
            (0..creates.len()).partition(|place| creates[*place].key.is_none());
        let (state, mark) = guard.map(|seen| (seen.changes, seen.mark)).unzip();
        let mut writes = vec![(
            About::Nothing,
            Statement::new(BATCH, params![name, batch, state, mark])?,
        )];
        // Before the creates: a key that is forgotten now is a new one.
        if !once.is_empty() {
            let forget = params![retries::share(once.len()), now - retries::KEPT];
            writes.push((About::Nothing, Statement::new(FORGET, forget)?));
        }
        let mut finds = vec![Statement::new(FIRST, params![name, batch])?];
        if !plain.is_empty() {
            let count = i64::try_from(plain.len()).unwrap_or(i64::MAX);
            let row = format!("({})", ["?"; COLUMNS.len()].join(", "));
            let rows = vec![row; plain.len()].join(", ");
            let values: Vec<_> = plain
                .iter()
                .flat_map(|place| creates[*place].new.values())
                .collect();
            let values: Vec<&dyn ToSql> = values.iter().map(|value| value as &dyn ToSql).collect();
            let insert = format!("{INSERT_MANY}{rows}");
            writes.push((About::Plain, Statement::new(&insert, &values)?));
            writes.push((
                About::Nothing,
                Statement::new(COUNTED, params![name, count])?,
            ));
        }
        for &place in &once {
            let Create {
                new,
                key: Some(key),
            } = creates[place]
            else {
                continue;
            };
            let values = new.values();
            let values = values
                .iter()
                .map(|value| value as &dyn ToSql)
                .chain([&key.0 as _]);
            writes.push((
                About::Once(place),
                Statement::new(INSERT_ONCE, &values.collect::<Vec<_>>())?,
            ));
            let record = params![key.0, new.fingerprint(), now];
            writes.push((About::Nothing, Statement::new(RECORD, record)?));
            finds.push(Statement::new(FIND, params![key.0])?);
        }
        let note = if work.is_whole { REQUIRE } else { NOTE };
        for &change in &work.pets {
            writes.push((About::Change, change.clone()));
            writes.push((About::Nothing, Statement::new(note, params![name])?));
        }
        let others = work.others.iter().cloned();
        writes.extend(others.map(|statement| (About::Nothing, statement)));
        if batch == 1 {
            writes.push((About::Nothing, Statement::plain(PRUNE)));
        }
        let (write_abouts, writes) = writes.into_iter().unzip();
        Ok(Self {
            creates,
            plain,
            once,
            writes,
            write_abouts,
            finds,
        })
    }

    /// Gives the creates without keys consecutive ids.
    fn number_plain(&self, done: &mut [Option<CreateResult>], first: i64) {
        self.plain
            .iter()
            .zip(first..)
            .for_each(|(place, id)| done[*place] = Some(Ok(Outcome::Made(id))));
    }

    /// The outcomes, from the answers to the writes; `None` unless each create made a pet.
    pub fn made(&self, answers: &[client::StatementAnswer]) -> Option<Done> {
        let mut done = vec![None; self.creates.len()];
        let mut fits = Vec::new();
        for (about, answer) in self.write_abouts.iter().zip(answers) {
            let id = answer.last_insert_id;
            match about {
                // COUNTED has checked this.
                About::Plain => {
                    self.number_plain(&mut done, id - i64::try_from(self.plain.len()).ok()? + 1);
                }
                About::Once(place) if answer.rows_affected == 1 => {
                    done[*place] = Some(Ok(Outcome::Made(id)));
                }
                About::Change => fits.push(answer.rows_affected == 1),
                About::Once(_) | About::Nothing => {}
            }
        }
        let creates = done.into_iter().collect::<Option<_>>()?;
        Some(Done { creates, fits })
    }

    /// The outcomes, from the rows of the finds; `None` if the batch was not carried out.
    pub fn found(&self, found: &[ClusterRows]) -> Option<Done> {
        let (first, once) = found.split_first()?;
        let [ClusterValue::Integer(first), ClusterValue::Text(fits)] = first.first()?.as_slice()
        else {
            return None;
        };
        let first = *first;
        let (mut done, mut made) = (vec![None; self.creates.len()], HashSet::new());
        self.number_plain(&mut done, first);
        for (place, rows) in self.once.iter().zip(once) {
            done[*place] = Some(match rows.first().map(Vec::as_slice) {
                Some([ClusterValue::Integer(pet), ClusterValue::Blob(fingerprint)]) => {
                    let is_same = self.creates[*place].new.fingerprint() == fingerprint.as_slice();
                    // The record is of this batch if its pet is, and then of the first create with the key.
                    let is_first = *pet >= first && made.insert(*pet);
                    Ok(match (is_same, is_first) {
                        (true, true) => Outcome::Made(*pet),
                        (true, false) => Outcome::Replayed(*pet),
                        (false, _) => Outcome::Reused,
                    })
                }
                _ => Err(StoreError::Internal(LEFT_OUT.to_owned())),
            });
        }
        Some(Done {
            creates: done.into_iter().collect::<Option<_>>()?,
            fits: fits.chars().map(|digit| digit == '1').collect(),
        })
    }
}
