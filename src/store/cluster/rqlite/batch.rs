//! Writes: a batch is one request, which the cluster carries out as a whole or not at all.
//!
//! A connection numbers its batches, and the first statement of each batch records its number. So it can send the request
//! again, even to another node, until one answers: the number shows that a batch was already carried out, and its pets are
//! found by their ids. If a node kept the request and forwards it later, the cluster rejects it, however late. The
//! transaction itself decides the outcome of a create with a key, whichever instance of the service sends it.
//!
//! What changes something that was read is a compare-and-set: its statement has the values that were read, and the batch notes
//! whether it found them.

use std::slice;
use std::time::{Duration, Instant};

use super::connection::{Cluster, SEND_FOR};
use super::request::{BatchRequest, LEFT_OUT, MISSED, Outcomes, REFUSED};
use crate::store::cluster::{Done, Work};
use crate::store::{Cause, StoreError, idempotency};
use petstore_cluster::{ClusterFailure, ClusterValue, Statement, Trouble};

/// The time during which a probe is sent again.
const PROBE_FOR: Duration = Duration::from_secs(1);
/// The time for which the result of a probe is used again.
const PROBE_HOLDS: Duration = Duration::from_secs(1);

impl Cluster {
    /// Carries out work in one transaction: an outcome for each part. One that is [`Overtaken`](Done::Overtaken), or that a
    /// rule of another program rejects, does not affect the others.
    ///
    /// # Errors
    /// If it was not carried out, or the outcome is unknown.
    pub fn commit(&mut self, work: &[Work]) -> Result<Vec<Result<Done, StoreError>>, StoreError> {
        let sent = self.send(work, false, self.patience).map_err(explained);
        let is_rejected = matches!(sent, Err(StoreError::Rejected(_)));
        if !is_rejected || work.len() == 1 {
            return self.noted(sent);
        }
        // Once the cluster is away, the others are not sent.
        let mut away = None;
        let mut alone = |part| {
            if let Some(error) = &away {
                return Err(StoreError::clone(error));
            }
            let sent = self.send(slice::from_ref(part), false, self.patience);
            let sent = self.noted(sent.map_err(explained));
            let unsent =
                |error: &StoreError| StoreError::Unavailable(Cause::Unreachable, error.to_string());
            away = sent
                .as_ref()
                .err()
                .filter(|error| error.passes())
                .map(unsent);
            let left_out = || Err(StoreError::Rejected(LEFT_OUT.to_owned()));
            sent?.pop().unwrap_or_else(left_out)
        };
        Ok(work.iter().map(&mut alone).collect())
    }

    /// Carries out work in one transaction: all of it or nothing.
    ///
    /// # Errors
    /// If it was not carried out, such as because one part would be overtaken, or the outcome is unknown.
    pub fn commit_all(&mut self, work: &[Work]) -> Result<Vec<Done>, StoreError> {
        if work.is_empty() {
            return Ok(Vec::new());
        }
        let sent = self.send(work, true, self.patience).map_err(explained);
        self.noted(sent)?.into_iter().collect()
    }

    /// Checks that the cluster takes writes: sends an empty batch through the quorum, at most once a second.
    ///
    /// # Errors
    /// If it does not.
    pub fn probe(&mut self) -> Result<(), StoreError> {
        if let Some((at, probed)) = &self.probed
            && at.elapsed() < PROBE_HOLDS
        {
            return probed.clone();
        }
        let sent = self.send(&[], false, self.patience.min(PROBE_FOR));
        let probed = sent.map(drop).map_err(explained);
        self.probed = Some((Instant::now(), probed.clone()));
        probed
    }

    /// Sets the time during which a batch is sent again until a node answers; `None`: the usual time.
    pub fn set_patience(&mut self, patience: Option<Duration>) {
        self.patience = patience.unwrap_or(SEND_FOR);
    }

    /// After a failure, a probe asks again.
    fn noted<T>(&mut self, sent: Result<T, StoreError>) -> Result<T, StoreError> {
        if sent.is_err() {
            self.probed = None;
        }
        sent
    }

    fn send(
        &mut self,
        work: &[Work],
        is_whole: bool,
        patience: Duration,
    ) -> Result<Outcomes, ClusterFailure> {
        let request = self.request(work, is_whole)?;
        self.deliver(&request, patience)
    }

    /// Makes the request of the next batch.
    fn request<'w>(
        &mut self,
        work: &'w [Work],
        is_whole: bool,
    ) -> Result<BatchRequest<'w>, ClusterFailure> {
        let has_keys = work
            .iter()
            .any(|part| matches!(part, Work::Create { key: Some(_), .. }));
        let now = if has_keys { self.retry_time()? } else { 0 };
        self.batch += 1;
        let request = BatchRequest::new((&self.name, self.batch), work, is_whole, now);
        request.map_err(|error| ClusterFailure::Statement(0, error.to_string()))
    }

    /// The time by which records of retries age. So a wrong clock makes none much older.
    fn retry_time(&mut self) -> Result<i64, ClusterFailure> {
        let (client, patience) = (&self.client, self.patience);
        self.retry_clock.now(|| {
            let ask = [Statement::plain(idempotency::ENDS)];
            let rows = client.read(&ask, client.fresh, patience)?;
            Ok(match rows.concat().first().map(Vec::as_slice) {
                Some([ClusterValue::Integer(oldest), ClusterValue::Integer(newest)]) => {
                    Some((*oldest, *newest))
                }
                _ => None,
            })
        })
    }

    /// Sends a request until its outcome is known.
    fn deliver(
        &self,
        request: &BatchRequest,
        patience: Duration,
    ) -> Result<Outcomes, ClusterFailure> {
        let client = &self.client;
        let written = client.write(&request.writes, patience);
        match &written {
            Ok(answers) => {
                if let Some(done) = request.made(answers) {
                    return Ok(done);
                }
            }
            // An earlier try was carried out.
            Err(ClusterFailure::Statement(0, why)) if why.contains(REFUSED) => {}
            Err(failure) => return Err(failure.clone()),
        }
        let unknown = |why| ClusterFailure::Node(Trouble::new(why, true));
        let found = client.read(&request.finds, client.fresh, patience);
        let found = found.map_err(|error| unknown(error.to_string()))?;
        request
            .found(&found)
            .ok_or_else(|| unknown("the records of the batch are gone".to_owned()))
    }
}

/// The reason why a batch was not carried out.
fn explained(failure: ClusterFailure) -> StoreError {
    match failure {
        ClusterFailure::Statement(_, why) if why.contains(MISSED) => {
            StoreError::Unavailable(Cause::Overtaken, "it is not as it was read".to_owned())
        }
        ClusterFailure::Statement(_, why) if why.contains(REFUSED) => {
            StoreError::Rejected(LEFT_OUT.to_owned())
        }
        // The statements of petstore are tested: what fails is a rule of another program. None is on the record of a batch,
        // which comes first.
        failure @ ClusterFailure::Statement(1.., _) => match failure.into() {
            StoreError::Internal(why) => StoreError::Rejected(why),
            error => error,
        },
        failure => failure.into(),
    }
}

#[cfg(test)]
impl Cluster {
    /// Returns the statements of a batch, and sends none.
    pub fn request_only(&mut self, work: &[Work]) -> Vec<Statement> {
        self.request(work, false).unwrap().writes
    }

    /// Sends a batch twice, as if the first response was lost.
    pub fn deliver_twice(&mut self, work: &[Work]) -> [Outcomes; 2] {
        let request = self.request(work, false).unwrap();
        [(); 2].map(|()| self.deliver(&request, SEND_FOR).unwrap())
    }
}
