//! The service of the writing worker: a batch is one request to the cluster. A request whose pet another instance has changed
//! meanwhile is handled again.

use std::collections::{HashMap, HashSet};
use std::slice;
use std::time::{Duration, Instant};

use super::{Batch, KeyCopy};
use crate::app::api::pets::{Change, Create, no_pet};
use crate::app::api::{ALIVE, READY};
use crate::app::endpoint::{ApiError, Call, Code, Failure, Staged};
use crate::app::pipeline::writing::fate;
use crate::app::pipeline::{Entered, Handled, Pipeline, RequestInfo, SharedState, run, wrong_lane};
use crate::model::{ApiKey, Digest, Pet};
use crate::ops::keys::{KeyTable, KeyTasks};
use crate::store::cluster::{CONTENDS_FOR, Cluster, Done, Work};
use crate::store::{Cause, Reader, StoreError};
use petstore_base::clock::unix_time;
use petstore_base::http::{Request, Response, name_all};
use petstore_gate::Service;

/// A service without requests reads the keys again after this time.
const LOOK_EVERY: Duration = Duration::from_secs(60);
/// The patience of the work at the stop.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

/// Answers the requests of the write lane.
pub struct ClusterWrites {
    pub(super) keys: ClusterKeys,
    copy: KeyCopy,
    pipeline: Pipeline,
    key_tasks: KeyTasks,
    /// When to read the keys again.
    look_at: Instant,
}

/// The cluster, and the private database with its keys.
pub(super) struct ClusterKeys {
    pub(super) cluster: Cluster,
    database: Reader,
}

impl KeyTable for ClusterKeys {
    fn keys(&self) -> Result<Vec<ApiKey>, StoreError> {
        self.database.keys()
    }

    fn record_uses(&mut self, uses: &[(Digest, i64)], now: i64) -> Result<(), StoreError> {
        let uses = uses
            .iter()
            .map(|&(digest, at)| Work::UseKey { digest, at, now });
        let kept = self.cluster.commit_all(&uses.collect::<Vec<_>>());
        kept.map(drop)
    }
}

/// What a response waits for.
enum Awaits<'r> {
    Nothing(Handled),
    /// The outcome at this place of the work.
    Create(usize, Create<'r>),
    /// The commit of what this and earlier requests change of the pet with this id. Its own change is at this place of the work,
    /// if it makes one.
    Change(i64, Option<usize>, Staged),
    Probe,
}

impl ClusterWrites {
    /// `database` is the private one.
    pub fn new(cluster: Cluster, copy: KeyCopy, database: Reader, shared: SharedState) -> Self {
        let (uses, damage) = (shared.authenticator.uses.clone(), shared.damage.clone());
        Self {
            keys: ClusterKeys { cluster, database },
            copy,
            pipeline: Pipeline::new(shared),
            key_tasks: KeyTasks::new(uses, damage, Instant::now()),
            look_at: Instant::now(),
        }
    }

    /// Handles a request up to the commit of the work, to which it adds its own.
    fn handle<'r>(
        &mut self,
        request: &'r Request<'r>,
        batch: &mut Batch,
        work: &mut Vec<Work>,
        now: i64,
        entry: &mut RequestInfo,
    ) -> Result<Awaits<'r>, Failure> {
        batch.check(request)?;
        let database = &self.keys.database;
        let call = match self.pipeline.enter(request, database, now, entry)? {
            Entered::Call(call) => call,
            Entered::Answered(response) => return Ok(Awaits::Nothing(Ok(response))),
        };
        run(|| match call.operation.id {
            "createPet" => {
                let create = Create::parse(&call)?;
                work.push(Work::Create {
                    new: create.new.borrowed().into_owned(),
                    key: create.key,
                });
                Ok(Awaits::Create(work.len() - 1, create))
            }
            "updatePet" | "deletePet" => {
                let change = Change::parse(&call)?;
                let id = change.id.ok_or_else(no_pet)?;
                let pets = batch.pets(&self.keys.cluster, id)?;
                Ok(plan(&call, change, id, pets, work))
            }
            "checkHealth" => Ok(Awaits::Nothing(Ok(Response::json_bytes(200, ALIVE)))),
            "checkReadiness" => Ok(Awaits::Probe),
            _ => Err(wrong_lane()),
        })
    }

    /// Answers requests with one commit. Returns the places of those that are overtaken, until a time: they have no response
    /// yet.
    fn answer_together(
        &mut self,
        requests: &[Request],
        responses: &mut Vec<Response>,
        until: Instant,
        flush: &mut Duration,
    ) -> Vec<usize> {
        let mut batch = Batch::new(&mut self.keys.cluster, &self.copy, requests);
        // A panic may have left the snapshot of the batch before.
        let ended = self.keys.database.end();
        let begun = ended.and_then(|()| self.keys.database.begin());
        let (now, mut work, mut unanswered) = (unix_time(), Vec::new(), Vec::new());
        for request in requests {
            let mut entry = RequestInfo::default();
            let awaits = self.handle(request, &mut batch, &mut work, now, &mut entry);
            let awaits = awaits.unwrap_or_else(|failure| Awaits::Nothing(Err(failure)));
            unanswered.push((request, entry, awaits));
        }
        if let Err(error) = begun.and_then(|()| self.keys.database.end()) {
            self.pipeline.trouble("", "cannot begin to write", &error);
        }
        let began = Instant::now();
        let sent = if work.is_empty() {
            Ok(Vec::new())
        } else {
            self.keys.cluster.commit(&work)
        };
        if !work.is_empty() {
            let took = began.elapsed();
            self.pipeline.shared.metrics.committed(requests.len(), took);
            *flush += took;
        }
        if let Err(error) = &sent {
            let waits = |awaits: &Awaits| matches!(awaits, Awaits::Create(..) | Awaits::Change(..));
            let waiting = unanswered.iter().filter(|(.., awaits)| waits(awaits));
            let ids = waiting.map(|(request, ..)| request.id);
            self.report_undone(&ids.collect::<Vec<_>>(), error);
        }
        // What follows a change that was not made has seen another pet.
        let (mut stale, mut overtaken) = (HashSet::new(), Vec::new());
        for (request, entry, awaits) in unanswered {
            let done = match self.responded(awaits, &sent, &mut stale) {
                Some(done) => done,
                None if Instant::now() < until => {
                    overtaken.push(responses.len());
                    responses.push(Response::new(503, b""));
                    continue;
                }
                None => {
                    let why = "another instance has changed the pet".to_owned();
                    Err(StoreError::Unavailable(Cause::Overtaken, why).into())
                }
            };
            responses.push(self.pipeline.finish(request, entry, done));
        }
        overtaken
    }

    /// The outcome of a request; `None` if it is overtaken. `stale` has the pets of changes that were planned and not made.
    fn responded(
        &mut self,
        awaits: Awaits,
        sent: &Result<Vec<Result<Done, StoreError>>, StoreError>,
        stale: &mut HashSet<i64>,
    ) -> Option<Handled> {
        Some(match (awaits, sent) {
            (Awaits::Nothing(handled), _) => handled,
            (Awaits::Probe, _) => match self.keys.cluster.probe() {
                // A check has no outcome that could be unknown.
                Err(error) if error.is_unknown() => {
                    Err(ApiError::new(Code::StorageUnavailable).into())
                }
                Err(error) => Err(error.into()),
                Ok(()) => Ok(Response::json_bytes(200, READY)),
            },
            // The cause was logged once for the whole batch.
            (_, Err(error)) => Ok(Failure::from(error.clone()).into_response()),
            (Awaits::Create(place, create), Ok(done)) => match &done[place] {
                Ok(Done::Created(outcome)) => run(|| Ok(create.respond(*outcome)?)),
                Ok(_) => Err(Failure::Fault("a create without an outcome".to_owned())),
                Err(error) => Err(error.clone().into()),
            },
            (Awaits::Change(id, place, staged), Ok(done)) => {
                match place.map(|place| &done[place]) {
                    Some(Ok(Done::Overtaken)) => {
                        stale.insert(id);
                        return None;
                    }
                    Some(Err(error)) => {
                        stale.insert(id);
                        return Some(Err(error.clone().into()));
                    }
                    // It has found the pet as it expected.
                    Some(Ok(_)) => {
                        stale.remove(&id);
                    }
                    None if stale.contains(&id) => return None,
                    None => {}
                }
                staged.map_err(Failure::from)
            }
        })
    }

    /// Counts and logs the requests with these ids, whose commit failed.
    pub(super) fn report_undone(&mut self, ids: &[&str], error: &StoreError) {
        self.pipeline.shared.metrics.undone(ids.len());
        let fate = fate(ids.len(), error.is_unknown());
        let of = name_all(ids.iter().copied());
        self.pipeline
            .failures
            .say(&format!("{of}: {fate}: {error}"));
    }
}

/// Plans the change of a pet as it is now, after the changes of earlier requests.
fn plan<'r>(
    call: &Call<'r>,
    change: Change<'r>,
    id: i64,
    pets: &mut HashMap<i64, Pet<'static>>,
    work: &mut Vec<Work>,
) -> Awaits<'r> {
    let Some(old) = pets.get(&id).cloned() else {
        return Awaits::Change(id, None, Err(no_pet()));
    };
    let staged = change.respond(call, &old);
    if staged.is_err() {
        return Awaits::Change(id, None, staged);
    }
    let new = change.patch.map(|patch| patch.apply(&old).into_owned());
    if new.as_ref() == Some(&old) {
        return Awaits::Change(id, None, staged);
    }
    match &new {
        Some(new) => pets.insert(id, new.clone()),
        None => pets.remove(&id),
    };
    work.push(Work::Change { old, new });
    Awaits::Change(id, Some(work.len() - 1), staged)
}

impl Service for ClusterWrites {
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        self.keys.cluster.set_patience(None);
        let until = Instant::now() + CONTENDS_FOR;
        let (first, mut flush) = (responses.len(), Duration::ZERO);
        for place in self.answer_together(requests, responses, until, &mut flush) {
            let request = slice::from_ref(&requests[place - first]);
            let mut own = Vec::new();
            while own.is_empty() {
                let overtaken = self.answer_together(request, &mut own, until, &mut flush);
                own.truncate(1 - overtaken.len());
            }
            responses.splice(place..=place, own);
        }
        flush
    }

    fn rest(&mut self) -> Option<Duration> {
        // Requests would wait meanwhile.
        self.keys.cluster.set_patience(Some(Duration::ZERO));
        let now = Instant::now();
        if now >= self.look_at {
            self.look_at = now + LOOK_EVERY;
            // The next request reports why it cannot be reached.
            let _ = self.copy.begin(&mut self.keys.cluster);
        }
        let care = self.key_tasks.do_due(&mut self.keys, now, unix_time());
        Some(care.min(LOOK_EVERY))
    }

    fn stop(&mut self) {
        self.keys.cluster.set_patience(Some(LAST_PATIENCE));
        if let Err(error) = self.key_tasks.write(&mut self.keys, unix_time()) {
            log::warn!("cannot store when API keys were last used: {error}");
        }
    }
}
