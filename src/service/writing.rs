//! The service of the writing worker: a batch shares a transaction and a flush of the disk, and each request
//! in it is a unit that can be undone by itself.

use std::time::{Duration, Instant};

use crate::api::{Check, Handler, Operation, Staged, WriteContext};
use crate::clock::unix_time;
use crate::endpoint::Failure;
use crate::http::{Request, Response, name_all};
use crate::keys::KeyCare;
use crate::log_line::log_line;
use crate::service::{Findings, Parts, Pipeline, wrong_lane};
use crate::store::{BUSY_TIMEOUT, Units, Writer};
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
/// 5 s at most, does not count: together they fit the 10 s of `Deadlines::drain`.
const LAST_PATIENCE: Duration = Duration::from_secs(4);

/// The result of a request before its batch is committed.
enum Outcome<'r> {
    /// The response, which does not depend on the commit.
    Response(Option<&'static Operation>, Response),
    /// The closure that makes the response after the commit.
    Staged(&'static Operation, Staged<'r>),
    /// The health check to ask of the writer after the commit.
    Check(&'static Operation, Check),
}

/// A request of a batch before the commit.
struct Staging<'r> {
    request: &'r Request<'r>,
    outcome: Outcome<'r>,
    findings: Findings,
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
            Err(response) => {
                return Ok(Staging { request, outcome: Outcome::Response(None, response), findings });
            }
        };
        let operation = call.operation();
        let staged = pipeline.run(operation, request, || match operation.handler {
            Handler::Post(handler) => {
                context.store.begin_unit()?;
                let staged = handler(context, &call)?;
                context.store.keep_unit()?;
                Ok(Outcome::Staged(operation, staged))
            }
            Handler::Check { write, .. } => Ok(Outcome::Check(operation, write)),
            Handler::Get(_) => Err(wrong_lane()),
        });
        let outcome = match staged {
            Ok(outcome) => outcome,
            // A refused request must leave nothing behind.
            Err(response) if context.store.undo_unit() => Outcome::Response(Some(operation), response),
            Err(_) => return Err(MustUndo),
        };
        Ok(Staging { request, outcome, findings })
    }
}

impl WriteService {
    /// Moves and removes some records of retries. Returns whether there may be more to do.
    fn sweep_retries(&mut self) -> bool {
        self.context.store.sweep_retries().unwrap_or_else(|error| {
            log_line!(debug, "cannot move or delete records of retries yet: {error}");
            false
        })
    }
}

impl Service for WriteService {
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        let patience = self.patience();
        self.context.store.be_patient(patience);
        let staged = self.stage(requests, Units::Joined).or_else(|MustUndo| {
            self.context.store.undo();
            self.stage(requests, Units::Separate)
        });
        // With separate units staging never fails.
        let stagings = staged.unwrap_or_default();
        let began = Instant::now();
        let committed = self.context.store.commit();
        let flush = began.elapsed();
        let writing = stagings.iter().filter(|staging| matches!(staging.outcome, Outcome::Staged(..)));
        let writes = writing.clone().count();
        match &committed {
            Ok(committed) if writes > 0 => {
                self.context.succeeded();
                self.pipeline.parts.metrics.replayed(committed.replays);
            }
            Ok(_) => {}
            Err(error) => {
                let is_refused = |staging: &&Staging| match &staging.outcome {
                    Outcome::Response(Some(operation), response) => {
                        operation.writes() && response.status() == 503
                    }
                    _ => false,
                };
                self.pipeline.parts.metrics.undone(writes + stagings.iter().filter(is_refused).count());
                // A request that could not write at all has logged that itself.
                if writes > 0 || error.is_lost() {
                    let ids: Vec<&str> = writing.map(|staging| staging.request.id).collect();
                    let what = match writes {
                        1 if error.is_unknown() => "the outcome of 1 write is unknown".to_owned(),
                        _ if error.is_unknown() => format!("the outcome of {writes} writes is unknown"),
                        1 => "1 write failed and was undone".to_owned(),
                        _ => format!("{writes} writes failed and were undone"),
                    };
                    self.pipeline.trouble(&name_all(ids.into_iter()), &what, error);
                }
                self.context.failed(error.clone());
            }
        }
        if writes > 0 {
            self.pipeline.parts.metrics.committed(requests.len(), flush);
            self.rests_at = Some(Instant::now() + QUIET);
        }
        for Staging { request, outcome, findings } in stagings {
            let (operation, response) = match outcome {
                Outcome::Response(operation, response) => (operation, response),
                Outcome::Staged(operation, staged) => {
                    let done = match &committed {
                        Ok(committed) => self.pipeline.run(operation, request, || staged(committed)),
                        // Its cause has been logged for the whole batch.
                        Err(error) => Err(Failure::from(error.clone()).into_error().into_response()),
                    };
                    (Some(operation), done.unwrap_or_else(|refused| refused))
                }
                Outcome::Check(operation, check) => {
                    let context = &mut self.context;
                    let done = self.pipeline.run(operation, request, || check(context));
                    (Some(operation), done.unwrap_or_else(|refused| refused))
                }
            };
            responses.push(self.pipeline.finish(operation, findings, request, response));
        }
        if writes > 0 { flush } else { Duration::ZERO }
    }

    fn rest(&mut self) -> Option<Duration> {
        let now = Instant::now();
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
mod tests {
    use super::*;
    use crate::api::ROUTER;
    use crate::endpoint::Router;
    use crate::http::{ApiError, Code};
    use crate::model::ApiKey;
    use crate::model::{NewPet, Page, PetQuery};
    use crate::service::Authenticator;
    use crate::store::tests::{Folder, refuse_writes};
    use crate::store::{Cause, Reader, StoreError};

    const ROWS: &[Operation] = &[
        Operation::new("/good", "good", Handler::Post(|context, call| insert(context, call.json_body()?))),
        Operation::new(
            "/panic",
            "panic",
            Handler::Post(|context, call| {
                let _staged = insert(context, call.json_body()?)?;
                panic!("after the insert")
            }),
        ),
        Operation::new(
            "/refused",
            "refused",
            Handler::Post(|context, call| {
                let _staged = insert(context, call.json_body()?)?;
                Err(ApiError::new(Code::InvalidMember).into())
            }),
        ),
        Operation::new(
            "/early",
            "early",
            Handler::Post(|_, _| Err(ApiError::new(Code::InvalidMember).into())),
        ),
        Operation::new(
            "/ready",
            "ready",
            Handler::Check {
                read: |_| Ok(()),
                write: |context| Ok(context.takes_writes().map(|()| Response::new(204, b""))?),
                read_only: "",
            },
        ),
        Operation::new("/read", "read", Handler::Get(|_, _| Ok(Response::new(204, b"")))),
    ];

    fn insert<'r>(context: &mut WriteContext, body: &[u8]) -> Result<Staged<'r>, Failure> {
        let inserted = context.store.insert_pet(&NewPet::from_json(body)?)?;
        Ok(Box::new(move |committed| Ok(Response::json(201, &inserted.id(committed)))))
    }

    struct Bench {
        service: WriteService,
        reader: Reader,
        /// How long the flush of the last batch took.
        flush: Duration,
        folder: Folder,
    }

    fn bench() -> Bench {
        let folder = Folder::new();
        let store = Writer::open(&folder.database()).unwrap();
        let mut service = WriteService::new(store, Parts::for_tests(Authenticator::default()), || false);
        service.pipeline.router = &Router(&[ROWS]);
        let reader = Reader::open(&folder.database()).unwrap();
        Bench { service, reader, flush: Duration::ZERO, folder }
    }

    impl Bench {
        /// Sends all in one batch; returns the statuses.
        fn ask(&mut self, targets: &[&str]) -> Vec<u16> {
            let bodies: Vec<String> =
                targets.iter().map(|target| format!(r#"{{"name":"{target}","categoryId":1}}"#)).collect();
            let requests: Vec<Request> = targets
                .iter()
                .zip(&bodies)
                .map(|(target, body)| {
                    let method = if target.starts_with("/rea") { "GET" } else { "POST" };
                    Request { id: "-", method, target, headers: Vec::new(), body: body.as_bytes() }
                })
                .collect();
            let mut responses = Vec::new();
            self.flush = self.service.answer(&requests, &mut responses);
            responses.iter().map(Response::status).collect()
        }

        fn kept(&mut self) -> Vec<String> {
            let mut names = Vec::new();
            let all = PetQuery { page: Page { limit: 1000, after: None }, status: None };
            self.reader
                .visit_pets(&all, |pet| {
                    names.push(pet.name.to_owned());
                    std::ops::ControlFlow::Continue(())
                })
                .unwrap();
            names
        }
    }

    #[test]
    fn what_is_refused_is_not_written_by_a_batch_that_goes_on() {
        let mut bench = bench();
        let asked = ["/good", "/panic", "/good", "/refused", "/early", "/good", "/panic"];
        assert_eq!(bench.ask(&asked), [201, 500, 201, 400, 400, 201, 500]);
        assert_eq!(bench.kept(), ["/good", "/good", "/good"]);
        assert_eq!(bench.ask(&["/good"]), [201]);
        assert_eq!(bench.ask(&["/panic"]), [500]);
        assert_eq!(bench.kept().len(), 4);
    }

    #[test]
    fn request_down_the_wrong_lane_is_500() {
        let mut bench = bench();
        assert_eq!(bench.ask(&["/read", "/good"]), [500, 201]);
        assert_eq!(bench.kept(), ["/good"]);
    }

    #[test]
    fn failed_commit_fails_what_was_written_and_nothing_else() {
        let mut bench = bench();
        refuse_writes(&bench.service.context.store, true);
        assert_eq!(bench.ask(&["/good", "/early", "/good", "/nowhere"]), [503, 400, 503, 404]);
        assert_eq!(bench.ask(&["/ready"]), [503]);
        refuse_writes(&bench.service.context.store, false);
        assert_eq!(bench.kept(), [""; 0]);
        assert_eq!(bench.ask(&["/good"]), [201]);
    }

    #[test]
    fn readiness_comes_back_with_the_first_write_that_works() {
        let mut bench = bench();
        bench.service.pipeline.router = &ROUTER;
        bench.service.context.hold(Err(StoreError::Unavailable(Cause::Locked, "as if just seen".to_owned())));
        assert_eq!(bench.ask(&["/readyz"]), [503], "nothing has been written since");
        bench.service.pipeline.router = &Router(&[ROWS]);
        assert_eq!(bench.ask(&["/good"]), [201]);
        bench.service.pipeline.router = &ROUTER;
        assert_eq!(bench.ask(&["/readyz"]), [200]);
    }

    #[test]
    fn flush_is_told_where_there_was_one() {
        let mut bench = bench();
        bench.ask(&["/early"]);
        assert_eq!(bench.flush, Duration::ZERO);
        bench.ask(&["/good"]);
        assert_ne!(bench.flush, Duration::ZERO);
    }

    #[test]
    fn end_keeps_when_keys_were_last_used() {
        let mut bench = bench();
        let key = ApiKey {
            digest: [1; 32],
            name: "ci".to_owned(),
            scope: crate::model::KeyScope::Full,
            created_at: 0,
            expires_at: None,
            last_used_at: None,
        };
        bench.service.context.store.insert_key(&key).unwrap();
        bench.service.pipeline.parts.authenticator.uses().note(key.digest, 7);
        bench.service.stop();
        assert_eq!(bench.reader.keys().unwrap()[0].last_used_at, Some(7));
    }

    #[test]
    fn end_leaves_nothing_in_the_log_of_the_store() {
        let mut bench = bench();
        bench.ask(&["/good"]);
        let log = bench.folder.0.join("pets.db-wal");
        assert_ne!(std::fs::metadata(&log).unwrap().len(), 0);
        bench.service.stop();
        assert_eq!(std::fs::metadata(&log).unwrap().len(), 0);
    }
}
