//! The writer: a batch is one request, which the cluster carries out as a whole or not at all.
//!
//! A writer numbers its batches, and the first statement of each batch records its number. So the writer can send the
//! request again, even to another node, until one answers: the number shows that a batch was already carried out, and
//! its pets are found by their ids. If a node kept the request and forwards it later, the cluster rejects it, however
//! late. The transaction itself decides the outcome of a create with a key, whichever instance of the service sends it.
//!
//! Changes of the small tables are first tried out on the mirror. They are valid only if nobody else has changed
//! anything since the mirror was read; the first statement checks this as well.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::ops::ControlFlow;
use std::time::{Duration, Instant};

use rusqlite::{ToSql, params};

use super::client::{ClusterFailure, ClusterValue, Statement, Trouble};
use super::random_name;
use super::request::{BatchRequest, Create, Done, LEFT_OUT, MISSED, REFUSED, Work};
use super::revision::Revision;
use super::session::{Session, is_large};
use crate::base::clock::unix_time;
use crate::base::error::Error;
use crate::model::{IdempotencyKey, NewPet, Pet, PetPatch};
use crate::store::outcome::{Changed, Committed, Inserted};
use crate::store::pets::pet;
use crate::store::statements::BY_ID;
use crate::store::{BUSY_TIMEOUT, Cause, StoreError, retries};

/// The time during which a batch is sent again until a node answers. After that, its outcome is unknown.
const SEND_FOR: Duration = Duration::from_secs(8);
/// The time during which a probe is sent again.
const PROBE_FOR: Duration = Duration::from_secs(1);
/// The time for which the result of a probe is used again.
const PROBE_HOLDS: Duration = Duration::from_secs(1);

/// The changes of a pet that is as it was read: the new values, the id, and the old values, in the order of the members.
pub const UPDATE: &str = "UPDATE pets SET name = ?, category_id = ?, status = ? \
    WHERE id = ? AND name IS ? AND category_id IS ? AND status IS ?";
pub const DELETE: &str =
    "DELETE FROM pets WHERE id = ? AND name IS ? AND category_id IS ? AND status IS ?";

/// A connection, and the batch under way on it. One that was opened to read writes nothing.
pub struct ClusterConnection {
    pub reader: Session,
    /// Its random name.
    name: String,
    /// The number of its last batch.
    batch: Cell<i64>,
    /// When the first create with a key was sent, and the time by which records of retries aged then.
    retries_began: Cell<Option<(Instant, i64)>>,
    creates: Vec<Create>,
    /// The changes of pets.
    pets: Vec<Statement>,
    /// The pets that were read to be changed, as the batch leaves them; `None` for one that it deletes.
    read: RefCell<HashMap<i64, Option<Pet<'static>>>>,
    /// The changes of small tables.
    changes: Vec<Statement>,
    patience: Duration,
    probed: Option<(Instant, Result<(), StoreError>)>,
}

impl ClusterConnection {
    /// Writes with this connection.
    ///
    /// # Errors
    /// If the system has no random numbers.
    pub fn new(reader: Session) -> Result<Self, Error> {
        Ok(Self {
            reader,
            name: random_name()?,
            batch: Cell::new(0),
            retries_began: Cell::new(None),
            creates: Vec::new(),
            pets: Vec::new(),
            read: RefCell::default(),
            changes: Vec::new(),
            patience: SEND_FOR,
            probed: None,
        })
    }

    /// Ends the batch, whatever its outcome.
    fn end(&mut self) {
        self.creates.clear();
        self.pets.clear();
        self.read.take();
        self.changes.clear();
        self.reader.mirror.roll_back();
        let _ = self.reader.end();
    }

    /// Carries out work, if the small tables are those of the guard: all of it or nothing.
    ///
    /// # Errors
    /// If it was not carried out, or the outcome is unknown.
    fn send(
        &self,
        guard: Option<Revision>,
        work: &Work,
        patience: Duration,
    ) -> Result<Done, ClusterFailure> {
        self.deliver(&self.request(guard, work)?, patience)
    }

    /// Makes the request of the next batch.
    fn request<'b>(
        &self,
        guard: Option<Revision>,
        work: &'b Work<'b>,
    ) -> Result<BatchRequest<'b>, ClusterFailure> {
        let has_keys = work.creates.iter().any(|create| create.key.is_some());
        let now = if has_keys { self.retry_time()? } else { 0 };
        self.batch.set(self.batch.get() + 1);
        let request = BatchRequest::new((&self.name, self.batch.get()), guard, work, now);
        request.map_err(|error| ClusterFailure::Statement(0, error.to_string()))
    }

    /// The time by which records of retries age: see [`retries::begin`]. So a wrong clock makes none much older.
    fn retry_time(&self) -> Result<i64, ClusterFailure> {
        let (began, time) = if let Some(began) = self.retries_began.get() {
            began
        } else {
            let client = &self.reader.client;
            let rows = client.read(
                &[Statement::plain(retries::ENDS)],
                client.fresh,
                self.patience,
            )?;
            let ends = match rows.concat().first().map(Vec::as_slice) {
                Some([ClusterValue::Integer(oldest), ClusterValue::Integer(newest)]) => {
                    Some((*oldest, *newest))
                }
                _ => None,
            };
            let began = (Instant::now(), retries::begin(ends, unix_time()));
            self.retries_began.set(Some(began));
            began
        };
        Ok(time.saturating_add_unsigned(began.elapsed().as_secs()))
    }

    /// Sends a request until its outcome is known.
    fn deliver(&self, request: &BatchRequest, patience: Duration) -> Result<Done, ClusterFailure> {
        let written = self.reader.client.write(&request.writes, patience);
        match &written {
            Ok(answers) => {
                if let Some(done) = request.made(answers) {
                    return Ok(done);
                }
            }
            // An earlier try was carried out, or the guard has rejected the batch.
            Err(ClusterFailure::Statement(0, why)) if why.contains(REFUSED) => {}
            Err(failure) => return Err(failure.clone()),
        }
        let unknown = |why| ClusterFailure::Node(Trouble::new(why, true));
        let found = self
            .reader
            .client
            .read(&request.finds, self.reader.client.fresh, patience);
        let found = found.map_err(|error| unknown(error.to_string()))?;
        match (request.found(&found), written) {
            (Some(done), _) => Ok(done),
            (None, Err(failure)) => Err(failure),
            (None, Ok(_)) => Err(unknown("the records of the batch are gone".to_owned())),
        }
    }

    /// Carries out the batch. If a statement is rejected, each create and each change of a pet is carried out alone, so that
    /// one does not fail the others.
    fn carry_out(&self, is_whole: bool) -> Result<Committed, StoreError> {
        let guard = self.reader.seen().filter(|_| !self.changes.is_empty());
        let all = Work {
            creates: self.creates.iter().collect(),
            pets: self.pets.iter().collect(),
            others: &self.changes,
            is_whole,
        };
        let fits = |fits| if fits { Ok(()) } else { Err(overtaken()) };
        let is_one = is_whole || all.creates.len() + all.pets.len() == 1;
        match self.send(guard, &all, self.patience) {
            Err(ClusterFailure::Statement(1.., _)) if self.changes.is_empty() && !is_one => {
                let alone = |work: &Work| self.send(None, work, self.patience).map_err(explained);
                let create = |create| {
                    let creates = vec![create];
                    let mut done = alone(&Work {
                        creates,
                        ..Work::default()
                    })?;
                    done.creates
                        .pop()
                        .unwrap_or_else(|| Err(StoreError::Internal(String::new())))
                };
                let change = |pet| {
                    let pets = vec![pet];
                    let done = alone(&Work {
                        pets,
                        ..Work::default()
                    })?;
                    fits(done.fits == [true])
                };
                Ok(Committed {
                    outcomes: all.creates.into_iter().map(create).collect(),
                    changes: all.pets.into_iter().map(change).collect(),
                })
            }
            Err(failure) => Err(explained(failure)),
            Ok(done) => Ok(Committed {
                outcomes: done.creates,
                changes: done.fits.into_iter().map(fits).collect(),
            }),
        }
    }

    /// Changes a pet, or deletes it, if it is still as it was read.
    fn change_pet(&mut self, id: i64, new: Option<Pet<'static>>) -> Result<Changed, StoreError> {
        let Some(old) = self.pet_to_change(id, |pet| pet.into_owned())? else {
            return Ok(Changed::Now);
        };
        let (old, new_pet) = (NewPet::from(old), new.clone().map(NewPet::from));
        let old_values = old.values();
        let new_values = new_pet.as_ref().map(NewPet::values);
        let sql = if new.is_some() { UPDATE } else { DELETE };
        let new_values = new_values.iter().flatten().map(|value| value as &dyn ToSql);
        let old_values = old_values.iter().map(|value| value as &dyn ToSql);
        let values: Vec<&dyn ToSql> = new_values.chain([&id as _]).chain(old_values).collect();
        self.pets.push(Statement::new(sql, &values)?);
        self.read.get_mut().insert(id, new);
        Ok(Changed::Later(self.pets.len() - 1))
    }
}

/// The failure of a request whose pet another instance has changed since it was read.
fn overtaken() -> StoreError {
    let detail = "another instance has changed the pet".to_owned();
    StoreError::Unavailable(Cause::Conflict, detail)
}

/// The reason why a batch was not carried out.
fn explained(failure: ClusterFailure) -> StoreError {
    match failure {
        ClusterFailure::Statement(_, why) if why.contains(MISSED) => overtaken(),
        ClusterFailure::Statement(0, why) if why.contains(REFUSED) => {
            StoreError::Unavailable(Cause::Conflict, "the cluster refused the batch".to_owned())
        }
        ClusterFailure::Statement(_, why) if why.contains(REFUSED) => {
            StoreError::Internal(LEFT_OUT.to_owned())
        }
        failure => failure.into(),
    }
}

#[cfg(test)]
impl ClusterConnection {
    fn work(&self) -> Work<'_> {
        Work {
            creates: self.creates.iter().collect(),
            pets: self.pets.iter().collect(),
            ..Work::default()
        }
    }

    /// Returns the statements of the batch, and ends it.
    pub fn request_only(&mut self) -> Vec<Statement> {
        let statements = self.request(None, &self.work()).unwrap().writes;
        self.end();
        statements
    }

    /// Sends the batch twice, as if the first response was lost.
    pub fn deliver_twice(&mut self) -> [Done; 2] {
        let work = self.work();
        let request = self.request(None, &work).unwrap();
        let done = [(); 2].map(|()| self.deliver(&request, SEND_FOR).unwrap());
        self.end();
        done
    }
}

/// The methods of [`Writer`](crate::store::Writer), which describes them.
impl ClusterConnection {
    pub fn begin(&mut self) -> Result<(), StoreError> {
        self.end();
        self.reader.begin()
    }

    pub fn written(&self) -> usize {
        self.creates.len() + self.pets.len() + self.changes.len()
    }

    /// Changes are checked against what was read since the batch began.
    pub fn open_transaction(&mut self) -> Result<(), StoreError> {
        self.reader.ensure_begun()?;
        self.reader.mirror.begin()
    }

    /// Fails if the cluster was away when the batch began, so that nothing is sent.
    pub fn insert_pet(
        &mut self,
        new: &NewPet,
        key: Option<&IdempotencyKey>,
    ) -> Result<Inserted, StoreError> {
        self.reader.begun()?;
        self.creates.push(Create {
            new: new.clone().into_owned(),
            key: key.copied(),
        });
        Ok(Inserted::Later(self.creates.len() - 1))
    }

    pub fn change(&mut self, sql: &str, values: &[&dyn ToSql]) -> Result<usize, StoreError> {
        self.open_transaction()?;
        let count = if is_large(sql) {
            1
        } else {
            self.reader.mirror.execute(sql, values)?
        };
        self.changes.push(Statement::new(sql, values)?);
        Ok(count)
    }

    /// Passes a pet to `read`, as earlier requests of the batch leave it. The change then checks that it is still so.
    pub fn pet_to_change<T>(
        &self,
        id: i64,
        read: impl FnOnce(Pet) -> T,
    ) -> Result<Option<T>, StoreError> {
        let known = self.read.borrow().get(&id).cloned();
        let found = match known {
            Some(pet) => pet,
            None => {
                let mut found = None;
                self.reader.rows(BY_ID, params![id], &mut |row| {
                    found = Some(pet(row, |pet| pet.into_owned())?);
                    Ok(ControlFlow::Break(()))
                })?;
                self.read.borrow_mut().insert(id, found.clone());
                found
            }
        };
        Ok(found.map(read))
    }

    pub fn update_pet(&mut self, id: i64, patch: &PetPatch) -> Result<Changed, StoreError> {
        let new = self.pet_to_change(id, |pet| patch.apply(&pet).into_owned())?;
        self.change_pet(id, new)
    }

    pub fn delete_pet(&mut self, id: i64) -> Result<Changed, StoreError> {
        self.change_pet(id, None)
    }

    pub fn commit(&mut self) -> Result<Committed, StoreError> {
        self.commit_as(false)
    }

    pub fn commit_whole(&mut self) -> Result<Committed, StoreError> {
        self.commit_as(true)
    }

    fn commit_as(&mut self, is_whole: bool) -> Result<Committed, StoreError> {
        let done = if self.written() > 0 {
            self.carry_out(is_whole)
        } else {
            Ok(Committed::default())
        };
        self.end();
        if done.is_err() {
            self.probed = None;
        }
        done
    }

    pub fn undo(&mut self) {
        self.end();
    }

    /// Sends an empty batch through the quorum, at most once a second.
    pub fn probe(&mut self) -> Result<(), StoreError> {
        if let Some((at, probed)) = &self.probed
            && at.elapsed() < PROBE_HOLDS
        {
            return probed.clone();
        }
        let probed = self
            .send(None, &Work::default(), self.patience.min(PROBE_FOR))
            .map(drop)
            .map_err(explained);
        self.probed = Some((Instant::now(), probed.clone()));
        probed
    }

    /// A cluster has no locks to wait for. A shorter timeout shows that the service is idle or ending.
    pub fn set_busy_timeout(&mut self, timeout: Duration) {
        self.patience = if timeout < BUSY_TIMEOUT {
            timeout
        } else {
            SEND_FOR
        };
    }

    /// A cluster has its own log.
    pub fn checkpoint(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// A cluster has its own log.
    pub fn renew_log(&self) -> Result<(), StoreError> {
        Ok(())
    }

    /// A cluster has its own log.
    pub fn has_long_log(&self) -> bool {
        false
    }

    /// Nobody can delete a cluster.
    pub fn rescue(&self) -> bool {
        true
    }
}
