//! The service of the writing worker: a batch shares a transaction and a flush of the disk, and each request
//! in it is a unit that can be undone by itself.

use std::time::{Duration, Instant};

use crate::api::{Check, Handler, Staged, WriteContext};
use crate::clock::unix_time;
use crate::endpoint::Failure;
use crate::http::{Request, Response, name_all};
use crate::keys::KeyCare;
use crate::log_line::log_line;
use crate::service::{Done, Findings, Parts, Pipeline, run, wrong_lane};
use crate::store::{BUSY_TIMEOUT, Committed, IS_SHARED, StoreError, Units, Writer};
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

/// When the next of many small steps follows, while no requests come.
const SOON: Duration = Duration::from_millis(20);

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
    findings: Findings,
    outcome: Outcome<'r>,
}

/// A refused request has written something that only undoing the whole batch removes.
struct MustUndo;

impl WriteService {
    /// The service of the only writer. `is_stopping` tells whether the service is ending.
    pub fn new(store: Writer, parts: Parts, is_stopping: impl Fn() -> bool + Send + 'static) -> Self {
        let key_care = KeyCare::new(parts.authenticator.uses(), Instant::now());
        Self {
            context: WriteContext::new(store),
            pipeline: Pipeline::new(parts),
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

    /// Handles the requests up to the commit. With joined units it fails if a request is refused after it has
    /// written; with separate units it never fails.
    fn stage<'r>(&mut self, requests: &'r [Request<'r>], units: Units) -> Result<Vec<Staging<'r>>, MustUndo> {
        if let Err(error) = self.context.store.begin(units) {
            // The statements that follow fail as well, each with its own response.
            self.pipeline.trouble("", "cannot begin to write", &error);
        }
        let now = unix_time();
        requests.iter().map(|request| self.stage_one(request, now)).collect()
    }

    fn stage_one<'r>(&mut self, request: &'r Request<'r>, now: i64) -> Result<Staging<'r>, MustUndo> {
        let Self { context, pipeline, .. } = self;
        let (findings, entered) = pipeline.enter(request, context.store.database(), now);
        let call = match entered {
            Ok(call) => call,
            Err(done) => return Ok(Staging { request, findings, outcome: Outcome::Done(done) }),
        };
        let staged = run(|| match call.operation().handler {
            Handler::Post(handler) => {
                context.store.begin_unit()?;
                let staged = handler(context, &call)?;
                context.store.keep_unit()?;
                Ok(Outcome::Staged(staged))
            }
            Handler::Check { write, .. } => Ok(Outcome::Check(write)),
            // It has begun no unit that could be undone.
            Handler::Get(_) => Ok(Outcome::Done(Err(wrong_lane()))),
        });
        let outcome = match staged {
            Ok(outcome) => outcome,
            // A refused request must leave nothing behind.
            Err(failure) if context.store.undo_unit() => Outcome::Done(Err(failure)),
            Err(_) => return Err(MustUndo),
        };
        Ok(Staging { request, findings, outcome })
    }

    /// Handles and commits a batch. Also returns how long the commit took.
    fn write<'r>(
        &mut self,
        requests: &'r [Request<'r>],
    ) -> (Vec<Staging<'r>>, Result<Committed, StoreError>, Duration) {
        let staged = self.stage(requests, Units::Joined).or_else(|MustUndo| {
            self.context.store.undo();
            self.stage(requests, Units::Separate)
        });
        // With separate units staging never fails.
        let stagings = staged.unwrap_or_default();
        let began = Instant::now();
        let committed = self.context.store.commit();
        (stagings, committed, began.elapsed())
    }

    /// Counts and logs what became of a batch. Returns how many writes it had.
    fn note(&mut self, stagings: &[Staging], committed: &Result<Committed, StoreError>) -> usize {
        let writing = stagings.iter().filter(|staging| matches!(staging.outcome, Outcome::Staged(..)));
        let writes = writing.clone().count();
        match committed {
            Ok(committed) if writes > 0 => {
                self.context.succeeded();
                self.pipeline.parts.metrics.replayed(committed.replays);
            }
            Ok(_) => {}
            Err(error) => {
                let is_refused = |staging: &&Staging| {
                    matches!(staging.outcome, Outcome::Done(Err(Failure::Store(StoreError::Unavailable(..)))))
                };
                self.pipeline.parts.metrics.undone(writes + stagings.iter().filter(is_refused).count());
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
        let Staging { request, findings, outcome } = staging;
        let done = match (outcome, committed) {
            (Outcome::Done(done), _) => done,
            (Outcome::Staged(staged), Ok(committed)) => run(|| staged(committed)),
            // Its cause has been logged for the whole batch.
            (Outcome::Staged(_), Err(error)) => Ok(Failure::from(error.clone()).into_error().into_response()),
            (Outcome::Check(check), _) => run(|| check(&mut self.context)),
        };
        self.pipeline.finish(request, findings, done)
    }
}

impl WriteService {
    /// What is due now: moves the log, sweeps, looks. Returns in how long more is due.
    fn rest_at(&mut self, now: Instant) -> Option<Duration> {
        // Do not wait for a lock, because requests would wait behind it.
        self.context.store.be_patient(Duration::ZERO);
        if self.rests_at.take_if(|at| *at <= now).is_some() {
            let emptied = self.context.store.empty_log();
            if let Err(error) = &emptied {
                // A lock passes. Any other cause is told once.
                let is_news = !error.passes() && !error.is_lost() && !self.log_stays;
                if is_news {
                    log_line!(warn, "the write-ahead log stays for now: {error}");
                    self.log_stays = true;
                } else {
                    log_line!(debug, "the write-ahead log stays for now: {error}");
                }
                self.rests_at = Some(now + QUIET);
            } else {
                self.log_stays = false;
            }
        }
        // Creates do their share. A step between them would cost a flush of its own, so it waits until none have come.
        let pause =
            self.rests_at.map_or(Duration::ZERO, |at| (at - (QUIET - SOON)).saturating_duration_since(now));
        let swept = pause.is_zero() && self.sweep_retries();
        if swept {
            self.rests_at = Some(now + QUIET);
        }
        let soon = if swept { Some(SOON) } else { Some(pause).filter(|pause| !pause.is_zero()) };
        // Also when there are no requests, so that a moved file is noticed soon.
        if let Err(error) = self.context.store.look() {
            self.pipeline.trouble("", "cannot find the database", &error);
        }
        let care = self.key_care.rest(&mut self.context.store, now, unix_time());
        let quiet = self.rests_at.map(|at| at.saturating_duration_since(now));
        [Some(care), Some(QUIET), quiet, soon, self.pipeline.failures.settle(now)].into_iter().flatten().min()
    }

    /// Moves and removes some records of retries. Returns whether there may be more to do.
    fn sweep_retries(&mut self) -> bool {
        self.context.store.sweep_retries().unwrap_or_else(|error| {
            log_line!(debug, "cannot move or delete records of retries yet: {error}");
            false
        })
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
        let (mut stagings, mut committed, mut flush) = self.write(requests);
        // Another instance of a cluster has changed what the batch relied on, such as the keys. The second try asks
        // first, so only a restore, or yet another change, can refuse it.
        if IS_SHARED && committed.as_ref().is_err_and(StoreError::is_conflict) {
            (stagings, committed, flush) = self.write(requests);
        }
        let writes = self.note(&stagings, &committed);
        if writes > 0 {
            self.pipeline.parts.metrics.committed(requests.len(), flush);
            self.rests_at = Some(Instant::now() + QUIET);
        }
        responses.extend(stagings.into_iter().map(|staging| self.respond(staging, &committed)));
        if writes > 0 { flush } else { Duration::ZERO }
    }

    fn rest(&mut self) -> Option<Duration> {
        self.rest_at(Instant::now())
    }

    fn stop(&mut self) {
        let patience = self.patience().min(QUIET);
        let store = &mut self.context.store;
        store.be_patient(patience);
        for (what, done) in [
            ("cannot store when API keys were last used", self.key_care.write(store)),
            ("the write-ahead log stays next to the database", store.checkpoint()),
        ] {
            if let Err(error) = done
                && !error.is_lost()
            {
                log_line!(warn, "{what}: {error}");
            }
        }
    }
}

#[cfg(test)]
mod tests;
