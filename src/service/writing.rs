//! The service of the writing worker: a batch shares a transaction and a flush of the disk. If a request fails after it
//! has written, the batch is undone, and each of its requests gets a transaction of its own.

use std::time::{Duration, Instant};

use crate::api::{Check, Handler, Staged, WriteContext};
use crate::clock::unix_time;
use crate::endpoint::Failure;
use crate::http::{Request, Response, name_all};
use crate::keys::KeyCare;
use crate::service::{Done, Entry, Pipeline, Shared, run, wrong_lane};
use crate::store::{BUSY_TIMEOUT, Committed, IS_SHARED, StoreError, Writer};
use crate::worker::Service;

/// Answers the requests of the write lane.
pub struct WriteService {
    context: WriteContext,
    pipeline: Pipeline,
    key_care: KeyCare,
    /// When the writer has been idle long enough to move the write-ahead log into the database.
    rests_at: Option<Instant>,
    /// Whether the log has said why it cannot be moved.
    log_stays: bool,
    /// Whether the service is ending.
    is_stopping: Box<dyn Fn() -> bool + Send>,
    /// How long to wait for locks while the service is ending.
    waits_until: Option<Instant>,
}

/// How long nothing is written before the writer counts as idle.
const QUIET: Duration = Duration::from_secs(1);

/// The total time to wait for locks of other processes once the service is ending. A wait already under way, of
/// 5 s at most, does not count: together they fit the 10 s of `Deadlines::drain`. Without a quorum, a cluster takes up
/// to 15 s.
const LAST_PATIENCE: Duration = Duration::from_secs(4);

/// The result of a request before its batch is committed.
enum Outcome<'r> {
    /// It does not depend on the commit.
    Done(Done),
    /// The closure that makes the response after the commit.
    Staged(Staged<'r>),
    /// The health check to ask of the writer after the commit.
    Check(Check),
}

/// A request of a batch before the commit.
struct Staging<'r> {
    request: &'r Request<'r>,
    entry: Entry,
    outcome: Outcome<'r>,
}

/// A batch after the commit, and how long that took.
struct Batch<'r> {
    stagings: Vec<Staging<'r>>,
    committed: Result<Committed, StoreError>,
    flush: Duration,
}

/// A request of several has failed after it had written, so that all must be undone.
struct MustUndo;

impl WriteService {
    /// The service of the only writer. `is_stopping` tells whether the service is ending.
    pub fn new(store: Box<Writer>, shared: Shared, is_stopping: impl Fn() -> bool + Send + 'static) -> Self {
        let key_care = KeyCare::new(shared.authenticator.uses(), Instant::now());
        Self {
            context: WriteContext::new(store),
            pipeline: Pipeline::new(shared),
            key_care,
            rests_at: None,
            log_stays: false,
            is_stopping: Box::new(is_stopping),
            waits_until: None,
        }
    }

    /// How long the next batch may wait for the lock of another process.
    fn patience(&mut self) -> Duration {
        if !(self.is_stopping)() {
            return BUSY_TIMEOUT;
        }
        let now = Instant::now();
        self.waits_until.get_or_insert(now + LAST_PATIENCE).saturating_duration_since(now)
    }

    /// Handles the requests up to the commit.
    fn stage<'r>(&mut self, requests: &'r [Request<'r>]) -> Result<Vec<Staging<'r>>, MustUndo> {
        if let Err(error) = self.context.store.begin() {
            // The statements that follow fail as well, each with its own response.
            self.pipeline.trouble("", "cannot begin to write", &error);
        }
        let now = unix_time();
        let is_alone = requests.len() == 1;
        requests.iter().map(|request| self.stage_one(request, is_alone, now)).collect()
    }

    fn stage_one<'r>(
        &mut self,
        request: &'r Request<'r>,
        is_alone: bool,
        now: i64,
    ) -> Result<Staging<'r>, MustUndo> {
        let Self { context, pipeline, .. } = self;
        let mut entry = Entry::default();
        let call = match pipeline.enter(request, &*context.store, now, &mut entry) {
            Ok(call) => call,
            Err(failure) => return Ok(Staging { request, entry, outcome: Outcome::Done(Err(failure)) }),
        };
        let written = context.store.written();
        let staged = run(|| match call.operation().handler {
            Handler::Post(handler) => Ok(Outcome::Staged(handler(context, &call)?)),
            Handler::Check { write, .. } => Ok(Outcome::Check(write)),
            Handler::Get(_) => Err(wrong_lane()),
        });
        // A request that fails must leave nothing behind.
        let outcome = match staged {
            Ok(outcome) => outcome,
            Err(failure) => {
                if context.store.written() > written {
                    if !is_alone {
                        return Err(MustUndo);
                    }
                    context.store.undo();
                }
                Outcome::Done(Err(failure))
            }
        };
        Ok(Staging { request, entry, outcome })
    }

    /// Handles and commits a batch.
    fn write<'r>(&mut self, requests: &'r [Request<'r>]) -> Result<Batch<'r>, MustUndo> {
        let stagings = self.stage(requests)?;
        let began = Instant::now();
        let committed = self.context.store.commit();
        Ok(Batch { stagings, committed, flush: began.elapsed() })
    }

    /// Answers requests that share a transaction. Returns how long its flush took.
    fn answer_together(
        &mut self,
        requests: &[Request],
        responses: &mut Vec<Response>,
    ) -> Result<Duration, MustUndo> {
        let mut batch = self.write(requests)?;
        // Another instance of a cluster has changed what the batch relied on, such as the keys. The second try asks
        // first, so only a restore, or yet another change, can refuse it.
        if IS_SHARED && batch.committed.as_ref().is_err_and(StoreError::is_conflict) {
            batch = self.write(requests)?;
        }
        let Batch { stagings, committed, flush } = batch;
        let writes = self.note(&stagings, &committed);
        if writes > 0 {
            self.pipeline.shared.metrics.committed(requests.len(), flush);
            self.rests_at = Some(Instant::now() + QUIET);
        }
        responses.extend(stagings.into_iter().map(|staging| self.respond(staging, &committed)));
        Ok(if writes > 0 { flush } else { Duration::ZERO })
    }

    /// Counts and logs what became of a batch. Returns how many writes it had.
    fn note(&mut self, stagings: &[Staging], committed: &Result<Committed, StoreError>) -> usize {
        let writing = stagings.iter().filter(|staging| matches!(staging.outcome, Outcome::Staged(..)));
        let writes = writing.clone().count();
        match committed {
            Ok(committed) if writes > 0 => {
                self.context.succeeded();
                self.pipeline.shared.metrics.replayed(committed.replays);
            }
            Ok(_) => {}
            Err(error) => {
                let is_refused = |staging: &&Staging| {
                    matches!(staging.outcome, Outcome::Done(Err(Failure::Store(StoreError::Unavailable(..)))))
                };
                self.pipeline.shared.metrics.undone(writes + stagings.iter().filter(is_refused).count());
                // A request that could not write at all is logged by itself.
                if writes > 0 || error.is_lost() {
                    let ids: Vec<&str> = writing.map(|staging| staging.request.id).collect();
                    self.pipeline.trouble(&name_all(ids.into_iter()), &fate(writes, error), error);
                }
                self.context.failed(error.clone());
            }
        }
        writes
    }

    /// Makes the response to a request of a batch.
    fn respond(&mut self, staging: Staging, committed: &Result<Committed, StoreError>) -> Response {
        let Staging { request, entry, outcome } = staging;
        let done = match (outcome, committed) {
            (Outcome::Done(done), _) => done,
            (Outcome::Staged(staged), Ok(committed)) => run(|| staged(committed)),
            // Its cause has been logged for the whole batch.
            (Outcome::Staged(_), Err(error)) => Ok(Failure::from(error.clone()).into_response()),
            (Outcome::Check(check), _) => run(|| check(&mut self.context)),
        };
        self.pipeline.finish(request, entry, done)
    }
}

impl WriteService {
    /// What is due now: moves the log, and looks. Returns in how long more is due.
    fn rest_at(&mut self, now: Instant) -> Option<Duration> {
        // Do not wait for a lock, because requests would wait behind it.
        self.context.store.be_patient(Duration::ZERO);
        if self.rests_at.take_if(|at| *at <= now).is_some() {
            let emptied = self.context.store.checkpoint();
            if let Err(error) = &emptied {
                // A lock passes. Any other cause is told once.
                let is_news = !error.passes() && !error.is_lost() && !self.log_stays;
                if is_news {
                    log::warn!("the write-ahead log stays for now: {error}");
                    self.log_stays = true;
                } else {
                    log::debug!("the write-ahead log stays for now: {error}");
                }
                self.rests_at = Some(now + QUIET);
            } else {
                self.log_stays = false;
            }
        }
        // Also when there are no requests, so that a moved file is noticed soon.
        if let Err(error) = self.context.store.look() {
            self.pipeline.trouble("", "cannot find the database", &error);
        }
        let care = self.key_care.do_due(&mut *self.context.store, now, unix_time());
        let quiet = self.rests_at.map(|at| at.saturating_duration_since(now));
        [Some(care), Some(QUIET), quiet].into_iter().flatten().min()
    }
}

/// What became of so many writes whose commit failed.
fn fate(writes: usize, error: &StoreError) -> String {
    match (writes, error.is_unknown()) {
        (1, true) => "the outcome of 1 write is unknown".to_owned(),
        (_, true) => format!("the outcome of {writes} writes is unknown"),
        (1, false) => "1 write failed and was undone".to_owned(),
        (_, false) => format!("{writes} writes failed and were undone"),
    }
}

impl Service for WriteService {
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        let patience = self.patience();
        self.context.store.be_patient(patience);
        self.answer_together(requests, responses).unwrap_or_else(|MustUndo| {
            requests.chunks(1).flat_map(|request| self.answer_together(request, responses)).sum()
        })
    }

    fn rest(&mut self) -> Option<Duration> {
        self.rest_at(Instant::now())
    }

    fn stop(&mut self) {
        let patience = self.patience().min(QUIET);
        let store = &mut *self.context.store;
        store.be_patient(patience);
        for (what, done) in [
            ("cannot store when API keys were last used", self.key_care.write(store)),
            ("the write-ahead log stays next to the database", store.checkpoint()),
        ] {
            if let Err(error) = done
                && !error.is_lost()
            {
                log::warn!("{what}: {error}");
            }
        }
    }
}

#[cfg(test)]
mod tests;
