//! The service of the writing worker: a batch shares a transaction and a flush of the disk. If a request fails after it
//! has written, the batch is undone, and each of its requests gets a transaction of its own.

use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};
use std::{slice, thread};

use crate::app::endpoint::{Failure, Handler, Staged, WriteContext, WriterCheck};
use crate::app::pipeline::{
    Entered, Handled, Lost, Pipeline, RequestInfo, SharedState, run, wrong_lane,
};
use crate::ops::keys::KeyTasks;
use crate::store::{BUSY_TIMEOUT, BatchWriter, StoreError, Writer};
use petstore_base::clock::unix_time;
use petstore_base::http::{Request, Response, name_all};
use petstore_gate::Service;

/// Answers the requests of the write lane.
pub struct WriteService {
    context: WriteContext,
    pipeline: Pipeline,
    key_tasks: KeyTasks,
    /// The time of the next checkpoint, unless there is a write before.
    rests_at: Option<Instant>,
    /// Why the database is lost.
    lost: Arc<OnceLock<StoreError>>,
    /// Ends the service.
    end: Lost,
}

/// The writer counts as idle if it has written nothing for this long.
const QUIET: Duration = Duration::from_secs(1);

/// A short log gets its checkpoint this long after the last write. A checkpoint costs four flushes, so one after each
/// create of a quiet service would cost more than the create.
const LONG_QUIET: Duration = Duration::from_secs(3600);

/// The busy timeout of the work at the stop.
const LAST_PATIENCE: Duration = Duration::from_secs(1);

/// The step that a response waits for.
enum Awaits {
    /// The response is ready, and does not depend on the commit.
    Nothing(Handled),
    /// The commit; then this is the response.
    Commit(Staged),
    /// The writer's part of a health check, which runs after the commit.
    Check(WriterCheck),
}

/// A request of a batch that is not answered yet.
struct Unanswered<'r> {
    request: &'r Request<'r>,
    entry: RequestInfo,
    awaits: Awaits,
}

/// The whole batch must be undone, and its requests handled again: one of several failed after it had written.
struct MustUndo;

impl WriteService {
    /// The service of the only writer.
    pub fn new(store: Writer, mut shared: SharedState) -> Self {
        let lost = Arc::new(OnceLock::new());
        let noted = Arc::clone(&lost);
        let note: Lost = Arc::new(move |error| drop(noted.set(error.clone())));
        let end = std::mem::replace(&mut shared.lost, note);
        let key_tasks = KeyTasks::new(
            shared.authenticator.uses.clone(),
            shared.damage.clone(),
            Instant::now(),
        );
        let (context, pipeline) = (WriteContext::new(store), Pipeline::new(shared));
        Self {
            context,
            pipeline,
            key_tasks,
            rests_at: None,
            lost,
            end,
        }
    }

    /// Ends the service if the database is lost, unless only this process has what it held: then requests fail until
    /// that is saved.
    fn end_if_lost(&mut self) {
        if let Some(error) = self.lost.get()
            && self.context.store.rescue()
        {
            (self.end)(error);
        }
    }

    /// Handles a request up to the commit.
    fn handle<'r>(
        &mut self,
        request: &'r Request<'r>,
        is_alone: bool,
        now: i64,
    ) -> Result<Unanswered<'r>, MustUndo> {
        let Self {
            context, pipeline, ..
        } = self;
        let mut entry = RequestInfo::default();
        let entered = pipeline.enter(request, &context.store, now, &mut entry);
        let mut batch = BatchWriter::new(&mut context.store);
        let handled = entered.and_then(|entered| match entered {
            Entered::Answered(response) => Ok(Awaits::Nothing(Ok(response))),
            Entered::Call(call) => run(|| match call.operation.handler {
                Handler::Write(_, handler) => {
                    pipeline.shared.damage.found()?;
                    batch.change_as(call.key_name.clone());
                    Ok(Awaits::Commit(handler(&mut batch, &call)?))
                }
                Handler::Health { write, .. } => Ok(Awaits::Check(write)),
                Handler::Get(_) => Err(wrong_lane()),
            }),
        });
        if handled.is_err() && batch.must_undo() {
            // A request that fails must leave nothing behind.
            if !is_alone {
                return Err(MustUndo);
            }
            context.store.undo();
        }
        let awaits = handled.unwrap_or_else(|failure| Awaits::Nothing(Err(failure)));
        Ok(Unanswered {
            request,
            entry,
            awaits,
        })
    }

    /// Answers requests in one transaction. Returns the duration of the flush, or zero if nothing was written.
    fn answer_together(
        &mut self,
        requests: &[Request],
        responses: &mut Vec<Response>,
    ) -> Result<Duration, MustUndo> {
        if let Err(error) = self.context.store.begin() {
            // The following statements fail as well, each with its own response.
            self.pipeline.trouble("", "cannot begin to write", &error);
        }
        let is_alone = requests.len() == 1;
        let now = unix_time();
        let mut unanswered = Vec::with_capacity(requests.len());
        for request in requests {
            unanswered.push(self.handle(request, is_alone, now)?);
        }
        let writes = unanswered
            .iter()
            .filter(|one| matches!(one.awaits, Awaits::Commit(_)))
            .count();
        let began = Instant::now();
        let committed = self.context.store.commit();
        let flush = began.elapsed();
        // One of them has broken a rule of another program that counts at the commit.
        if matches!(committed, Err(StoreError::Rejected(_))) && !is_alone {
            return Err(MustUndo);
        }
        match &committed {
            Ok(()) if writes > 0 => self.context.written(Ok(())),
            Ok(()) => {}
            Err(error) => {
                self.context.written(Err(error.clone()));
                self.report_undone(&unanswered, error);
            }
        }
        for Unanswered {
            request,
            entry,
            awaits,
        } in unanswered
        {
            let done = match (awaits, &committed) {
                (Awaits::Nothing(done), _) => done,
                (Awaits::Commit(staged), Ok(())) => staged.map_err(Failure::from),
                // The cause was logged once for the whole batch.
                (Awaits::Commit(_), Err(error)) => Ok(Failure::from(error.clone()).into_response()),
                (Awaits::Check(check), _) => run(|| check(&mut self.context)),
            };
            responses.push(self.pipeline.finish(request, entry, done));
        }
        if writes == 0 {
            return Ok(Duration::ZERO);
        }
        self.pipeline
            .shared
            .metrics
            .committed(requests.len(), flush);
        let pause = if self.context.store.has_long_log() {
            QUIET
        } else {
            LONG_QUIET
        };
        self.rests_at = Some(Instant::now() + pause);
        Ok(flush)
    }

    /// Answers each request in a transaction of its own. Returns the duration of all flushes.
    fn answer_each(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        let mut flushes = Duration::ZERO;
        for request in requests {
            // One request by itself need not be undone. If it were, the later ones must not get its response.
            let Ok(flush) = self.answer_together(slice::from_ref(request), responses) else {
                break;
            };
            flushes += flush;
        }
        flushes
    }

    /// Counts and logs a batch whose commit failed.
    fn report_undone(&mut self, unanswered: &[Unanswered], error: &StoreError) {
        let writes = unanswered
            .iter()
            .filter(|one| matches!(one.awaits, Awaits::Commit(_)));
        let ids: Vec<&str> = writes.map(|one| one.request.id).collect();
        let could_not_write = |one: &&Unanswered| {
            matches!(
                one.awaits,
                Awaits::Nothing(Err(Failure::Store(StoreError::Unavailable(..))))
            )
        };
        let refused = unanswered.iter().filter(could_not_write).count();
        self.pipeline.shared.metrics.undone(ids.len() + refused);
        // A request that could not write at all is logged on its own.
        if !ids.is_empty() || error.is_lost() {
            let fate = fate(ids.len(), error.is_unknown());
            self.pipeline
                .trouble(&name_all(ids.into_iter()), &fate, error);
        }
    }

    /// Does the work that is due: checkpoints the write-ahead log if the writer is idle, checks the database's path,
    /// and does the work on keys. Returns the time until more is due.
    fn rest_at(&mut self, now: Instant) -> Option<Duration> {
        // No busy timeout: requests would wait meanwhile.
        self.context.store.set_busy_timeout(Duration::ZERO);
        if self.rests_at.take_if(|at| *at <= now).is_some()
            && let Err(error) = self.context.store.renew_log()
            && !self.pipeline.shared.damage.note(&error)
        {
            if error.passes() || error.is_lost() {
                log::debug!("the write-ahead log stays for now: {error}");
                self.rests_at = Some(now + QUIET);
            } else {
                // Tried again only after the next write.
                log::warn!("the write-ahead log stays for now: {error}");
            }
        }
        // Without requests too, so that a moved file is noticed soon.
        if let Err(error) = self.context.store.check_path() {
            self.pipeline
                .trouble("", "cannot find the database", &error);
        }
        self.end_if_lost();
        let care = self
            .key_tasks
            .do_due(&mut self.context.store, now, unix_time());
        let quiet = self.rests_at.map(|at| at.saturating_duration_since(now));
        [Some(care), Some(QUIET), quiet].into_iter().flatten().min()
    }
}

/// Describes the outcome of writes whose commit failed, for the log.
pub(super) fn fate(writes: usize, is_unknown: bool) -> String {
    match (writes, is_unknown) {
        (1, true) => "the outcome of 1 write is unknown".to_owned(),
        (_, true) => format!("the outcome of {writes} writes is unknown"),
        (1, false) => "1 write failed and was undone".to_owned(),
        (_, false) => format!("{writes} writes failed and were undone"),
    }
}

impl Service for WriteService {
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        self.context.store.set_busy_timeout(BUSY_TIMEOUT);
        let flush = match self.answer_together(requests, responses) {
            Ok(flush) => flush,
            Err(MustUndo) => self.answer_each(requests, responses),
        };
        self.end_if_lost();
        flush
    }

    fn rest(&mut self) -> Option<Duration> {
        self.rest_at(Instant::now())
    }

    fn stop(&mut self) {
        let store = &mut self.context.store;
        store.set_busy_timeout(LAST_PATIENCE);
        for (what, done) in [
            (
                "cannot store when API keys were last used",
                self.key_tasks.write(store, unix_time()),
            ),
            (
                "the write-ahead log stays next to the database",
                store.checkpoint(),
            ),
        ] {
            if let Err(error) = done
                && !error.is_lost()
                && !self.pipeline.shared.damage.note(&error)
            {
                log::warn!("{what}: {error}");
            }
        }
        // Only a second signal ends the process with what nobody else has.
        while !store.rescue() {
            thread::sleep(QUIET);
        }
    }
}

#[cfg(test)]
mod tests;
