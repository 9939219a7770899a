//! The service of the worker that writes: a batch shares a transaction and a flush of the disk, and each
//! request in it is a unit of its own.

use std::time::{Duration, Instant};

use crate::api::{Handler, Operation, Probe, Staged, Writing};
use crate::clock::unix_time;
use crate::http::{ApiError, Request, Response, name_all};
use crate::keys::KeyCare;
use crate::service::{Parts, Pipeline, sign, wrong_lane};
use crate::store::{PATIENCE, Units, Writer};
use crate::worker::Service;

/// Answers the requests of the lane for writing.
pub struct WriteService {
    writing: Writing,
    pipeline: Pipeline,
    key_care: KeyCare,
    /// When the writes so far have rested for so long that a copy of the database is to be whole without its
    /// write-ahead log.
    rests_at: Option<Instant>,
    /// Whether the service is ending.
    is_stopping: Box<dyn Fn() -> bool + Send>,
    /// Until when a lock is waited for, where the service is ending.
    waits_until: Option<Instant>,
}

/// Where nothing is written for so long, the database rests.
const QUIET: Duration = Duration::from_secs(1);

/// How long locks of other processes are waited for in all once the service is ending, after a wait that was
/// begun before.
const LAST_PATIENCE: Duration = Duration::from_secs(4);

/// What has come of a request before its batch is committed.
enum Outcome<'r> {
    /// The response, which does not depend on the commit.
    Response(Option<&'static Operation>, Response),
    /// What makes the response after the commit.
    Staged(&'static Operation, Staged<'r>),
    /// What is asked of the writer after the commit.
    Check(&'static Operation, fn(Probe) -> Result<Response, ApiError>),
}

/// A request of a batch before the commit.
struct Staging<'r> {
    request: &'r Request<'r>,
    outcome: Outcome<'r>,
    /// Whose request it is, where the access log wants to know.
    key_name: Option<String>,
}

/// A request that is refused has written, and only undoing the whole batch undoes that.
struct MustUndo;

impl WriteService {
    /// Of the only writer of a service. `is_stopping` says whether that is ending.
    pub fn new(store: Writer, parts: Parts, is_stopping: impl Fn() -> bool + Send + 'static) -> Self {
        let key_care = KeyCare::new(parts.authenticator.uses(), Instant::now());
        Self {
            writing: Writing::new(store),
            pipeline: Pipeline::new(parts),
            key_care,
            rests_at: None,
            is_stopping: Box::new(is_stopping),
            waits_until: None,
        }
    }

    /// How long the next batch may wait for the lock of another process.
    fn patience(&mut self) -> Duration {
        if !(self.is_stopping)() {
            return PATIENCE;
        }
        let now = Instant::now();
        self.waits_until.get_or_insert(now + LAST_PATIENCE).saturating_duration_since(now)
    }

    /// Carries the requests out up to the commit. With joined units this fails where a request is refused
    /// after it has written, with separate ones never.
    fn stage<'r>(&mut self, requests: &'r [Request<'r>], units: Units) -> Result<Vec<Staging<'r>>, MustUndo> {
        if let Err(error) = self.writing.store.begin(units) {
            // The statements that follow meet the same trouble and answer for it one by one.
            self.pipeline.trouble("", "cannot begin to write", &error);
        }
        let stage = |request| {
            let outcome = self.stage_one(request)?;
            Ok(Staging { request, outcome, key_name: self.pipeline.key_name.take() })
        };
        requests.iter().map(stage).collect()
    }

    fn stage_one<'r>(&mut self, request: &'r Request<'r>) -> Result<Outcome<'r>, MustUndo> {
        let Self { writing, pipeline, .. } = self;
        let call = match pipeline.enter(request, &writing.store) {
            Ok(call) => call,
            Err(response) => return Ok(Outcome::Response(None, response)),
        };
        let operation = call.operation;
        let staged = pipeline.run(operation, request, || match operation.handler {
            Handler::Post(handler) => {
                writing.store.begin_unit()?;
                let staged = handler(writing, &call)?;
                writing.store.keep_unit()?;
                Ok(Outcome::Staged(operation, staged))
            }
            Handler::Check { write, .. } => Ok(Outcome::Check(operation, write)),
            Handler::Get(_) => Err(wrong_lane()),
        });
        match staged {
            Ok(outcome) => Ok(outcome),
            // What is refused must not be written.
            Err(response) if writing.store.undo_unit() => Ok(Outcome::Response(Some(operation), response)),
            Err(_) => Err(MustUndo),
        }
    }
}

impl Service for WriteService {
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        let patience = self.patience();
        self.writing.store.be_patient(patience);
        let staged = self.stage(requests, Units::Joined).or_else(|MustUndo| {
            self.writing.store.undo();
            self.stage(requests, Units::Separate)
        });
        // Separate units are undone one by one, so there is something here.
        let stagings = staged.unwrap_or_default();
        let began = Instant::now();
        let committed = self.writing.store.commit();
        let flush = began.elapsed();
        let writing = stagings.iter().filter(|staging| matches!(staging.outcome, Outcome::Staged(..)));
        let writes = writing.clone().count();
        match &committed {
            Ok(_) if writes > 0 => self.writing.succeeded(),
            Ok(_) => {}
            Err(error) => {
                let is_refused = |staging: &&Staging| match &staging.outcome {
                    Outcome::Response(Some(operation), response) => {
                        operation.writes() && response.status() == 503
                    }
                    _ => false,
                };
                self.pipeline.parts.metrics.undone(writes + stagings.iter().filter(is_refused).count());
                // A request that could not write at all has said so itself.
                if writes > 0 || error.is_lost() {
                    let ids: Vec<&str> = writing.map(|staging| staging.request.id).collect();
                    let what = format!("{writes} writes failed and were undone");
                    self.pipeline.trouble(&name_all(ids.into_iter()), &what, error);
                }
                self.writing.failed(error.clone());
            }
        }
        if writes > 0 {
            self.pipeline.parts.metrics.committed(requests.len(), flush);
            self.rests_at = Some(Instant::now() + QUIET);
        }
        for Staging { request, outcome, key_name } in stagings {
            let (operation, response) = match outcome {
                Outcome::Response(operation, response) => (operation, response),
                Outcome::Staged(operation, staged) => {
                    let done = self.pipeline.run(operation, request, || match &committed {
                        Ok(committed) => Ok(staged(committed)),
                        // Its cause has been logged for the whole batch.
                        Err(error) => Err(ApiError::from(error.clone()).without_detail()),
                    });
                    let announce = |response| operation.announce(response);
                    (Some(operation), done.map_or_else(|response| response, announce))
                }
                Outcome::Check(operation, check) => {
                    let probe = Probe::new(&mut self.writing);
                    let done = self.pipeline.run(operation, request, || check(probe));
                    let announce = |response| operation.announce(response);
                    (Some(operation), done.map_or_else(|response| response, announce))
                }
            };
            responses.push(sign(self.pipeline.count(operation, response), key_name));
        }
        if writes > 0 { flush } else { Duration::ZERO }
    }

    fn rest(&mut self) -> Option<Duration> {
        let now = Instant::now();
        // Nobody is waited for: requests would wait behind it.
        self.writing.store.be_patient(Duration::ZERO);
        if self.rests_at.take_if(|at| *at <= now).is_some()
            && let Err(error) = self.writing.store.checkpoint()
        {
            log::debug!("the write-ahead log stays for now: {error}");
            self.rests_at = Some(now + QUIET);
        }
        // Without a request too, so that a file that has gone is not missed for long.
        if let Err(error) = self.writing.store.look() {
            self.pipeline.trouble("", "cannot find the database", &error);
        }
        let care = self.key_care.rest(&mut self.writing.store, now, unix_time());
        let quiet = self.rests_at.map(|at| at.saturating_duration_since(now));
        [Some(care), Some(QUIET), quiet, self.pipeline.rest(now)].into_iter().flatten().min()
    }

    fn stop(&mut self) {
        let patience = self.patience().min(QUIET);
        let store = &mut self.writing.store;
        store.be_patient(patience);
        let kept =
            self.key_care.write(store).map_err(|error| ("when API keys were last used is not kept", error));
        let moved =
            store.checkpoint().map_err(|error| ("the write-ahead log stays beside the database", error));
        for (what, error) in
            [kept.err(), moved.err()].into_iter().flatten().filter(|(_, error)| !error.is_lost())
        {
            log::warn!("{what}: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::http::Code;
    use crate::model::NewPet;
    use crate::service::Authenticator;
    use crate::service::router::Router;
    use crate::store::tests::{Folder, refuse_writes};
    use crate::store::{ApiKey, PetQuery, Reader, StoreError, Trouble};

    const ROWS: &[Operation] = &[
        Operation::new("/good", "good", "", Handler::Post(|writing, call| insert(writing, call.body()))),
        Operation::new(
            "/panic",
            "panic",
            "",
            Handler::Post(|writing, call| {
                let _staged = insert(writing, call.body())?;
                panic!("after the insert")
            }),
        ),
        Operation::new(
            "/refused",
            "refused",
            "",
            Handler::Post(|writing, call| {
                let _staged = insert(writing, call.body())?;
                Err(ApiError::new(Code::InvalidMember))
            }),
        ),
        Operation::new("/early", "early", "", Handler::Post(|_, _| Err(ApiError::new(Code::InvalidMember)))),
        Operation::new(
            "/ready",
            "ready",
            "",
            Handler::Check {
                read: |_| Ok(()),
                write: |probe| Ok(probe.takes_writes().map(|()| Response::new(204, b""))?),
            },
        ),
        Operation::new("/read", "read", "", Handler::Get(|_, _| Ok(Response::new(204, b"")))),
    ];

    fn insert<'r>(writing: &mut Writing, body: &[u8]) -> Result<Staged<'r>, ApiError> {
        let inserted = writing.store.insert_pet(&NewPet::from_json(body)?)?;
        Ok(Box::new(move |committed| Response::json(201, &inserted.id(committed))))
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
        service.pipeline.router = Router(&[ROWS]);
        let reader = Reader::open(&folder.database()).unwrap();
        Bench { service, reader, flush: Duration::ZERO, folder }
    }

    impl Bench {
        /// Asks for all in one batch; returns the statuses.
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
            let all = PetQuery { limit: 1000, status: None, after: None };
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
        refuse_writes(&bench.service.writing.store, true);
        assert_eq!(bench.ask(&["/good", "/early", "/good", "/nowhere"]), [503, 400, 503, 404]);
        assert_eq!(bench.ask(&["/ready"]), [503]);
        refuse_writes(&bench.service.writing.store, false);
        assert_eq!(bench.kept(), [""; 0]);
        assert_eq!(bench.ask(&["/good"]), [201]);
    }

    #[test]
    fn readiness_comes_back_with_the_first_write_that_works() {
        let mut bench = bench();
        bench.service.pipeline.router = Router::SERVICE;
        bench
            .service
            .writing
            .hold(Err(StoreError::Unavailable(Trouble::Locked, "as if just seen".to_owned())));
        assert_eq!(bench.ask(&["/readyz"]), [503], "nothing has been written since");
        bench.service.pipeline.router = Router(&[ROWS]);
        assert_eq!(bench.ask(&["/good"]), [201]);
        bench.service.pipeline.router = Router::SERVICE;
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
            scope: crate::store::KeyScope::Full,
            created_at: 0,
            expires_at: None,
            last_used_at: None,
        };
        bench.service.writing.store.insert_key(&key).unwrap();
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
