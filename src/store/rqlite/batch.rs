//! The writer: a batch is one request, which the cluster carries out as a whole or not at all.
//!
//! A writer numbers its batches, and the first statement of each batch records its number. So the writer can send the
//! request again, even to another node, until one answers: the number shows that a batch was already carried out, and
//! its pets are found by their ids. If a node kept the request and forwards it later, the cluster rejects it, however
//! late. The transaction itself decides the outcome of a create with a key, whichever instance of the service sends it.
//!
//! Changes of the small tables are first tried out on the mirror. They are valid only if nobody else has changed
//! anything since the mirror was read; the first statement checks this as well.

use std::cell::Cell;
use std::time::{Duration, Instant};

use rusqlite::ToSql;

use super::client::{ClusterFailure, ClusterValue, Statement, Trouble};
use super::random_name;
use super::request::{BatchRequest, Create, CreateResult, LEFT_OUT, REFUSED};
use super::revision::Revision;
use super::session::{Session, is_large};
use crate::base::clock::unix_time;
use crate::base::error::Error;
use crate::model::{IdempotencyKey, NewPet};
use crate::store::outcome::{Committed, Inserted};
use crate::store::{BUSY_TIMEOUT, Cause, StoreError, retries};

/// The time during which a batch is sent again until a node answers. After that, its outcome is unknown.
const SEND_FOR: Duration = Duration::from_secs(8);
/// The time during which a probe is sent again.
const PROBE_FOR: Duration = Duration::from_secs(1);
/// The time for which the result of a probe is used again.
const PROBE_HOLDS: Duration = Duration::from_secs(1);
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
    /// The changes other than creates.
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
            changes: Vec::new(),
            patience: SEND_FOR,
            probed: None,
        })
    }

    /// Ends the batch, whatever its outcome.
    fn end(&mut self) {
        self.creates.clear();
        self.changes.clear();
        self.reader.mirror.roll_back();
        let _ = self.reader.end();
    }

    /// Carries out creates and changes, if the small tables are those of the guard: all of them or none.
    ///
    /// # Errors
    /// If they were not carried out, or the outcome is unknown.
    fn send(
        &self,
        guard: Option<Revision>,
        creates: &[&Create],
        changes: &[Statement],
        patience: Duration,
    ) -> Result<Vec<CreateResult>, ClusterFailure> {
        let request = self.request(guard, creates, changes)?;
        self.deliver(&request, patience)
    }

    /// Makes the request of the next batch.
    fn request<'c>(
        &self,
        guard: Option<Revision>,
        creates: &'c [&'c Create],
        changes: &[Statement],
    ) -> Result<BatchRequest<'c>, ClusterFailure> {
        let now = match creates.iter().any(|create| create.key.is_some()) {
            true => self.retry_time()?,
            false => 0,
        };
        self.batch.set(self.batch.get() + 1);
        let id = (&*self.name, self.batch.get());
        let request = BatchRequest::new(id, guard, creates, changes, now);
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
    fn deliver(
        &self,
        request: &BatchRequest,
        patience: Duration,
    ) -> Result<Vec<CreateResult>, ClusterFailure> {
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

    /// Carries out the batch. If a statement of a create is rejected, each create is carried out alone, so that
    /// one does not fail the others.
    fn carry_out(&self) -> Result<Vec<CreateResult>, StoreError> {
        let creates: Vec<&Create> = self.creates.iter().collect();
        let changes = &self.changes;
        let guard = self.reader.seen().filter(|_| !changes.is_empty());
        match self.send(guard, &creates, changes, self.patience) {
            Err(ClusterFailure::Statement(1.., _)) if changes.is_empty() => {
                let alone = |create| match self.send(None, &[create], &[], self.patience) {
                    Ok(mut done) => done
                        .pop()
                        .unwrap_or_else(|| Err(StoreError::Internal(String::new()))),
                    Err(failure) => Err(explained(failure)),
                };
                Ok(creates.into_iter().map(alone).collect())
            }
            sent => sent.map_err(explained),
        }
    }
}

/// The reason why a batch was not carried out.
fn explained(failure: ClusterFailure) -> StoreError {
    match failure {
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
    /// Returns the statements of the batch, and ends it.
    pub fn request_only(&mut self) -> Vec<Statement> {
        let creates: Vec<&Create> = self.creates.iter().collect();
        let statements = self.request(None, &creates, &[]).unwrap().writes;
        self.end();
        statements
    }

    /// Sends the creates of the batch twice, as if the first response was lost.
    pub fn deliver_twice(&mut self) -> [Vec<CreateResult>; 2] {
        let creates: Vec<&Create> = self.creates.iter().collect();
        let request = self.request(None, &creates, &[]).unwrap();
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
        self.creates.len() + self.changes.len()
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

    pub fn commit(&mut self) -> Result<Committed, StoreError> {
        let has_work = !self.creates.is_empty() || !self.changes.is_empty();
        let done = if has_work {
            self.carry_out()
        } else {
            Ok(Vec::new())
        };
        self.end();
        if done.is_err() {
            self.probed = None;
        }
        done.map(|outcomes| Committed { outcomes })
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
            .send(None, &[], &[], self.patience.min(PROBE_FOR))
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
