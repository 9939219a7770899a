//! A batch as one request: its statements, and the outcomes of its parts from their answers.

use std::borrow::Cow;
use std::collections::HashSet;

use rusqlite::{ToSql, params};

use super::statement;
use crate::model::{ApiKey, Digest, IdempotencyKey, NewPet, Pet};
use crate::store::cluster::{Done, Work};
use crate::store::idempotency::{self, FIND, FORGET, RECORD};
use crate::store::keys::{EXPIRE_KEY, KEEP_USE};
use crate::store::statements::INSERT_AS;
use crate::store::{Outcome, StoreError};
use petstore_base::clock::unix_time;
use petstore_cluster::{ClusterRows, ClusterValue, Statement, StatementAnswer};

/// Records the batch, and the first id that its pets can have. `is_current` is NULL, and rejected, if the batch is not
/// the next one of its writer.
const BATCH: &str = "INSERT INTO cluster_batches (writer, batch, first, is_current) SELECT ?1, ?2, \
    1 + max((SELECT ifnull(max(seq), 0) FROM sqlite_sequence WHERE name = 'pets'), (SELECT ifnull(max(id), 0) FROM pets)), \
    CASE WHEN NOT EXISTS (SELECT 1 FROM cluster_batches WHERE writer = ?1 AND batch >= ?2) THEN 1 END \
    WHERE true ON CONFLICT (writer) DO UPDATE SET batch = excluded.batch, first = excluded.first, fits = ''";
/// Removes all but the newest 100,000 writers. One that still writes gets a new row with its next batch.
const PRUNE: &str =
    "DELETE FROM cluster_batches WHERE id <= (SELECT max(id) FROM cluster_batches) - 100000";
/// Rejects the batch if the ids of the pets without keys are not consecutive, because a trigger of another program has
/// left out a pet or added one.
const COUNTED: &str = "UPDATE cluster_batches \
    SET is_current = CASE WHEN changes() = ?2 AND last_insert_rowid() = first + ?2 - 1 THEN 1 END WHERE writer = ?1";
/// Notes if the statement before it has changed a row.
const NOTE: &str = "UPDATE cluster_batches SET fits = fits || changes() WHERE writer = ?1";
/// Rejects the batch if the statement before it has changed no row.
const REQUIRE: &str = "UPDATE cluster_batches SET fits = CASE WHEN changes() = 1 THEN fits || 1 END WHERE writer = ?1";
/// Adds pets; a row of values for each follows.
const INSERT_MANY: &str = "INSERT INTO pets (name, category_id, status) VALUES ";
/// Adds a pet, unless the key `?4` is recorded; [`RECORD`] then sees `changes() = 0`.
const INSERT_ONCE: &str = "INSERT INTO pets (name, category_id, status) SELECT ?1, ?2, ?3 \
    WHERE NOT EXISTS (SELECT 1 FROM retries WHERE key = ?4)";
/// The changes of a pet that is as it was read: the new values, the id, and the old values, in the order of the members.
pub const UPDATE: &str = "UPDATE pets SET name = ?, category_id = ?, status = ? \
    WHERE id = ? AND name IS ? AND category_id IS ? AND status IS ?";
pub const DELETE: &str =
    "DELETE FROM pets WHERE id = ? AND name IS ? AND category_id IS ? AND status IS ?";
/// Adds a key, if `?7` is still the newest of its name.
const ADD_KEY: &str = "INSERT INTO api_keys (digest, name, read_only, is_admin, created_at, expires_at) \
    SELECT ?1, ?2, ?3, ?4, ?5, ?6 \
    WHERE ?7 IS (SELECT digest FROM api_keys WHERE name = ?2 AND length(digest) = 32 ORDER BY id DESC LIMIT 1)";
/// Deletes a key, if `?2` is still the newest of its name.
const DELETE_KEY: &str = "DELETE FROM api_keys WHERE digest = ?1 AND ?2 IS (SELECT newest.digest FROM api_keys AS newest \
    WHERE newest.name = api_keys.name AND length(newest.digest) = 32 ORDER BY newest.id DESC LIMIT 1)";
/// Notes an import, unless it is noted already and `?6` is false. If its pets keep their ids, there must have been no pet
/// before the batch.
const NOTE_IMPORT: &str = "INSERT INTO imports (input, at, first_id, last_id) \
    SELECT ?1, ?2, ifnull(?3, (SELECT max(id) FROM pets) - (?5 - 1)), ifnull(?4, (SELECT max(id) FROM pets)) \
    WHERE (?6 OR NOT EXISTS (SELECT 1 FROM imports WHERE input = ?1)) \
        AND (?3 IS NULL OR (SELECT first FROM cluster_batches WHERE writer = ?7) = 1) \
    ON CONFLICT (input) DO UPDATE SET at = excluded.at, first_id = excluded.first_id, last_id = excluded.last_id";
const FIRST: &str = "SELECT first, fits FROM cluster_batches WHERE writer = ?1 AND batch = ?2";
/// The message for a create that has made no pet although its batch was carried out.
pub const LEFT_OUT: &str = "a trigger of another program leaves out pets, or adds some";
/// SQLite's message contains this text if a statement has rejected the batch.
pub const REFUSED: &str = "cluster_batches.is_current";
/// The same, if something was changed since it was read.
pub const MISSED: &str = "cluster_batches.fits";

/// The outcome of each part of a batch.
pub type Outcomes = Vec<Result<Done, StoreError>>;

/// The subject of the answer to a statement. Each statement is added together with its subject, so that an additional
/// statement cannot shift the answers of the others. The client rejects a response with fewer or more answers than
/// statements.
enum About {
    /// The creates without keys.
    Plain,
    /// The create with a key at this place of the batch.
    Once(usize),
    /// What is compared and set at this place of the batch.
    Compared,
    Nothing,
}

/// The outcome of each part, as far as it is known.
type Known = Vec<Option<Result<Done, StoreError>>>;

/// A pet without its id.
fn members<'p>(pet: &'p Pet<'_>) -> NewPet<'p> {
    NewPet {
        name: Cow::Borrowed(&pet.name),
        category_id: pet.category_id,
        status: pet.status,
    }
}

/// A batch as it is sent.
pub struct BatchRequest<'w> {
    work: &'w [Work],
    /// The places of the creates without keys, which get consecutive ids. They come before those with keys, so ids do
    /// not follow the order of requests.
    plain: Vec<usize>,
    /// The places of the creates with keys.
    once: Vec<usize>,
    /// The places of what is compared and set.
    compared: Vec<usize>,
    /// [`BATCH`] comes first, then the inserts of the pets, each with what checks or records it.
    pub writes: Vec<Statement>,
    write_abouts: Vec<About>,
    /// [`FIRST`], and [`FIND`] for each create with a key: their rows have the outcomes.
    pub finds: Vec<Statement>,
}

impl<'w> BatchRequest<'w> {
    /// The request of a writer's batch. `is_whole`: all of it is carried out or nothing. `now` is the time by which records of
    /// retries age.
    pub fn new(
        (name, batch): (&str, i64),
        work: &'w [Work],
        is_whole: bool,
        now: i64,
    ) -> Result<Self, StoreError> {
        let mut request = Self {
            work,
            plain: Vec::new(),
            once: Vec::new(),
            compared: Vec::new(),
            writes: vec![statement(BATCH, params![name, batch])?],
            write_abouts: vec![About::Nothing],
            finds: vec![statement(FIRST, params![name, batch])?],
        };
        let (mut plain, mut once, mut others) = (Vec::new(), Vec::new(), Vec::new());
        for (place, part) in work.iter().enumerate() {
            match part {
                Work::Create { new, key: None } => {
                    request.plain.push(place);
                    plain.push(new);
                }
                Work::Create {
                    new,
                    key: Some(key),
                } => {
                    request.once.push(place);
                    once.push((place, new, key));
                }
                other => others.push((place, other)),
            }
        }
        // Before the creates: a key that is forgotten now is a new one.
        if !once.is_empty() {
            let forget = params![
                idempotency::share(once.len()),
                now.saturating_sub(idempotency::KEPT)
            ];
            request.add(FORGET, forget)?;
        }
        request.insert_plain(&plain, name)?;
        for (place, new, key) in once {
            request.insert_once(place, new, key, now)?;
        }
        let note = if is_whole { REQUIRE } else { NOTE };
        for (place, other) in others {
            if request.change(other, name)? {
                request.compared.push(place);
                request.add(note, params![name])?;
            }
        }
        if batch == 1 {
            request.add(PRUNE, &[])?;
        }
        Ok(request)
    }

    fn add(&mut self, sql: &str, values: &[&dyn ToSql]) -> Result<(), StoreError> {
        self.add_about(About::Nothing, sql, values)
    }

    fn add_about(
        &mut self,
        about: About,
        sql: &str,
        values: &[&dyn ToSql],
    ) -> Result<(), StoreError> {
        self.writes.push(statement(sql, values)?);
        self.write_abouts.push(about);
        Ok(())
    }

    fn insert_plain(&mut self, pets: &[&NewPet], name: &str) -> Result<(), StoreError> {
        if pets.is_empty() {
            return Ok(());
        }
        let rows = vec!["(?, ?, ?)"; pets.len()].join(", ");
        let values: Vec<_> = pets.iter().flat_map(|new| new.values()).collect();
        let values: Vec<&dyn ToSql> = values.iter().map(|value| value as _).collect();
        self.add_about(About::Plain, &format!("{INSERT_MANY}{rows}"), &values)?;
        let count = i64::try_from(pets.len()).unwrap_or(i64::MAX);
        self.add(COUNTED, params![name, count])
    }

    fn insert_once(
        &mut self,
        place: usize,
        new: &NewPet,
        key: &IdempotencyKey,
        now: i64,
    ) -> Result<(), StoreError> {
        let values = new.values();
        let values = values.iter().map(|value| value as &dyn ToSql);
        let values: Vec<_> = values.chain([&key.0 as _]).collect();
        self.add_about(About::Once(place), INSERT_ONCE, &values)?;
        self.add(RECORD, params![key.0, new.fingerprint(), now])?;
        self.finds.push(statement(FIND, params![key.0])?);
        Ok(())
    }

    /// Adds the statement of a part other than a create. Returns true if it changes no row when the part is overtaken.
    fn change(&mut self, part: &Work, name: &str) -> Result<bool, StoreError> {
        match part {
            Work::Create { .. } => return Ok(false),
            Work::CreateAs(pet) => {
                let new = members(pet);
                let values = new.values();
                let values = values.iter().map(|value| value as &dyn ToSql);
                let values: Vec<_> = values.chain([&pet.id as _]).collect();
                self.add(INSERT_AS, &values)?;
                return Ok(false);
            }
            Work::Change { old, new } => self.change_pet(old, new.as_ref())?,
            Work::AddKey { key, newest } => self.add_key(key, newest.as_ref())?,
            Work::ExpireKey(digest, at) => {
                self.add(EXPIRE_KEY, params![digest, at])?;
                return Ok(false);
            }
            Work::DeleteKey { digest, newest } => {
                self.add_about(About::Compared, DELETE_KEY, params![digest, newest])?;
            }
            Work::UseKey { digest, at, now } => {
                self.add(KEEP_USE, params![digest, at.min(now), now])?;
                return Ok(false);
            }
            Work::NoteImport { input, ids, again } => {
                let (least, greatest) = ids.unzip();
                let count = i64::try_from(self.plain.len()).unwrap_or(i64::MAX);
                let values = params![input, unix_time(), least, greatest, count, again, name];
                self.add_about(About::Compared, NOTE_IMPORT, values)?;
            }
        }
        Ok(true)
    }

    fn change_pet(&mut self, old: &Pet, new: Option<&Pet>) -> Result<(), StoreError> {
        let id = old.id;
        let (old, new) = (members(old), new.map(members));
        let (old_values, new_values) = (old.values(), new.as_ref().map(NewPet::values));
        let new_values = new_values.iter().flatten().map(|value| value as &dyn ToSql);
        let old_values = old_values.iter().map(|value| value as &dyn ToSql);
        let values: Vec<&dyn ToSql> = new_values.chain([&id as _]).chain(old_values).collect();
        let sql = if new.is_some() { UPDATE } else { DELETE };
        self.add_about(About::Compared, sql, &values)
    }

    fn add_key(&mut self, key: &ApiKey, newest: Option<&Digest>) -> Result<(), StoreError> {
        let (read_only, is_admin) = key.scope.columns();
        let values = params![
            key.digest,
            key.name,
            read_only,
            is_admin,
            key.created_at,
            key.expires_at,
            newest
        ];
        self.add_about(About::Compared, ADD_KEY, values)
    }

    /// Outcomes before anything is known of the creates.
    fn done(&self) -> Known {
        let known = |part: &Work| !matches!(part, Work::Create { .. });
        self.work
            .iter()
            .map(|part| known(part).then_some(Ok(Done::Changed)))
            .collect()
    }

    /// Gives the creates without keys consecutive ids.
    fn number_plain(&self, done: &mut Known, first: i64) {
        for (place, id) in self.plain.iter().zip(first..) {
            done[*place] = Some(Ok(Done::Created(Outcome::Made(id))));
        }
    }

    fn note_compared(&self, done: &mut Known, fits: impl Iterator<Item = bool>) {
        for (place, fits) in self.compared.iter().zip(fits) {
            if !fits {
                done[*place] = Some(Ok(Done::Overtaken));
            }
        }
    }

    /// The outcomes, from the answers to the writes; `None` unless each create made a pet.
    pub fn made(&self, answers: &[StatementAnswer]) -> Option<Outcomes> {
        let (mut done, mut fits) = (self.done(), Vec::new());
        for (about, answer) in self.write_abouts.iter().zip(answers) {
            let id = answer.last_insert_id;
            match about {
                // COUNTED has checked this.
                About::Plain => {
                    self.number_plain(&mut done, id - i64::try_from(self.plain.len()).ok()? + 1);
                }
                About::Once(place) if answer.rows_affected == 1 => {
                    done[*place] = Some(Ok(Done::Created(Outcome::Made(id))));
                }
                About::Compared => fits.push(answer.rows_affected == 1),
                About::Once(_) | About::Nothing => {}
            }
        }
        self.note_compared(&mut done, fits.into_iter());
        done.into_iter().collect()
    }

    /// The outcomes, from the rows of the finds; `None` if the batch was not carried out.
    pub fn found(&self, found: &[ClusterRows]) -> Option<Outcomes> {
        let (first, once) = found.split_first()?;
        let [ClusterValue::Integer(first), ClusterValue::Text(fits)] = first.first()?.as_slice()
        else {
            return None;
        };
        let (mut done, mut made) = (self.done(), HashSet::new());
        self.number_plain(&mut done, *first);
        self.note_compared(&mut done, fits.chars().map(|digit| digit == '1'));
        for (place, rows) in self.once.iter().zip(once) {
            let outcome = match (rows.first().map(Vec::as_slice), &self.work[*place]) {
                (
                    Some([ClusterValue::Integer(pet), ClusterValue::Blob(fingerprint)]),
                    Work::Create { new, .. },
                ) => {
                    let is_same = new.fingerprint() == fingerprint.as_slice();
                    // The record is of this batch if its pet is, and then of the first create with the key.
                    let is_first = pet >= first && made.insert(*pet);
                    Ok(Done::Created(match (is_same, is_first) {
                        (true, true) => Outcome::Made(*pet),
                        (true, false) => Outcome::Replayed(*pet),
                        (false, _) => Outcome::Reused,
                    }))
                }
                _ => Err(StoreError::Rejected(LEFT_OUT.to_owned())),
            };
            done[*place] = Some(outcome);
        }
        done.into_iter().collect()
    }
}
