//! The service of a reading worker: a batch shares a snapshot.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::api::{Handler, ReadContext};
use crate::clock::unix_time;
use crate::http::{ApiError, Assets, Code, Request, Response};
use crate::service::{Done, Findings, Parts, Pipeline, run, wrong_lane};
use crate::store::{IS_SHARED, MOST_PUT_OFF, Reader};
use crate::worker::Service;

/// The bytes of responses at which a batch is sent, so that huge pages do not pile up.
const ENOUGH_BYTES: usize = 1024 * 1024;

/// Answers the requests of a read lane.
pub struct ReadService {
    context: ReadContext,
    pipeline: Pipeline,
    /// The message for requests that write, if it answers them: in the write lane of a service that only reads.
    refusal: Option<Cow<'static, str>>,
}

/// How often a service that only reads looks whether its database is still there.
const LOOK_EVERY: Duration = Duration::from_secs(1);

impl ReadService {
    pub fn new(store: Reader, assets: Arc<Assets>, parts: Parts) -> Self {
        Self { context: ReadContext::new(store, assets), pipeline: Pipeline::new(parts), refusal: None }
    }

    /// Answers the requests of the write lane of a service that only reads: creates are refused. `base_url` is the
    /// address to which they can go.
    pub fn refusing(store: Reader, parts: Parts, base_url: Option<&str>) -> Self {
        let refusal = base_url.map_or_else(
            || Code::ReadOnly.usual_message(),
            |url| format!("This service is read-only; nothing was changed. Send creates to {url}.").into(),
        );
        let mut service = Self::new(store, Arc::default(), parts);
        service.pipeline.is_read_only = true;
        Self { refusal: Some(refusal), ..service }
    }

    /// Handles a request up to its response.
    fn handle(&mut self, request: &Request, now: i64) -> (Findings, Done) {
        let Self { context, pipeline, refusal } = self;
        let (findings, entered) = pipeline.enter(request, context.store.database(), now);
        let call = match entered {
            Ok(call) => call,
            Err(done) => return (findings, done),
        };
        let operation = call.operation();
        context.store.bound_rows(operation.rows);
        let done = run(|| match operation.handler {
            Handler::Get(handler) => handler(context, &call),
            Handler::Check { read, read_only, .. } => read(context).map(|()| match refusal {
                Some(_) => Response::json_bytes(200, read_only.as_bytes()),
                None => Response::pass_on(),
            }),
            Handler::Post(_) => Err(refusal
                .clone()
                .map_or_else(wrong_lane, |message| ApiError::with_message(Code::ReadOnly, message).into())),
        });
        context.store.bound_rows(None);
        (findings, done)
    }
}

impl Service for ReadService {
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        if let Err(error) = self.context.store.begin() {
            // The queries that follow fail as well, each with its own response.
            self.pipeline.trouble("", "cannot begin to read", &error);
        }
        let may_put_off = IS_SHARED && requests.len() > 1 && self.context.store.put_off();
        let now = unix_time();
        let (mut bytes, mut put_off) = (0, Vec::new());
        for (place, request) in requests.iter().enumerate() {
            let (findings, done) = self.handle(request, now);
            if may_put_off && self.context.store.has_put_off() {
                put_off.push(place);
            } else {
                let response = self.pipeline.finish(request, findings, done);
                bytes += response.body().len();
                responses.push(response);
            }
            if bytes >= ENOUGH_BYTES || put_off.len() == MOST_PUT_OFF {
                break;
            }
        }
        if IS_SHARED && !put_off.is_empty() {
            self.context.store.read_put_off();
            // In ascending order, so that each response gets the place of its request.
            for place in put_off {
                let (findings, done) = self.handle(&requests[place], now);
                responses.insert(place, self.pipeline.finish(&requests[place], findings, done));
            }
        }
        if let Err(error) = self.context.store.end() {
            self.pipeline.trouble("", "cannot end a snapshot", &error);
        }
        Duration::ZERO
    }

    fn rest(&mut self) -> Option<Duration> {
        let settled = self.pipeline.failures.settle(Instant::now());
        if self.refusal.is_none() {
            return settled;
        }
        // Also when there are no requests, so that a replaced file is noticed soon.
        if let Err(error) = self.context.store.look() {
            self.pipeline.trouble("", "cannot look at the database", &error);
        }
        Some(settled.map_or(LOOK_EVERY, |settled| settled.min(LOOK_EVERY)))
    }

    fn stop(&mut self) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::{Call, Operation};
    use crate::endpoint::{Failure, Router};
    use crate::service::Authenticator;
    use crate::store::{Cause, StoreError, Writer};
    use crate::testing::{Folder, logged};

    const ROWS: &[Operation] = &[
        Operation::new("/small", "small", Handler::Get(|_, _| Ok(Response::new(200, b"x")))),
        Operation::new("/page", "page", Handler::Get(|_, _| Ok(Response::new(200, vec![b'x'; 64 * 1024])))),
        Operation::new(
            "/half",
            "half",
            Handler::Get(|_, _| Ok(Response::new(200, vec![b'x'; ENOUGH_BYTES / 2]))),
        ),
        Operation { rows: Some(1), ..Operation::new("/dear", "dear", Handler::Get(read_without_end)) },
        Operation::new("/busy", "busy", Handler::Get(|_, _| Err(failed(Cause::Locked)))),
        Operation::new("/moved", "moved", Handler::Get(|_, _| Err(failed(Cause::Moved)))),
        Operation::new(
            "/ready",
            "ready",
            Handler::Check { read: |_| Ok(()), write: |_| Err(failed(Cause::Full)), read_only: "{}" },
        ),
        Operation::new(
            "/write",
            "write",
            Handler::Post(|_, _| Ok(Box::new(|_| Ok(Response::new(204, b""))))),
        ),
    ];

    fn failed(cause: Cause) -> Failure {
        StoreError::Unavailable(cause, "as if".to_owned()).into()
    }

    /// Reads far more than one row.
    fn read_without_end(context: &mut ReadContext, _: &Call) -> Result<Response, Failure> {
        for _ in 0..100_000 {
            context.store.pet(1, |_| ())?;
        }
        Ok(Response::new(204, b""))
    }

    /// The service of a new database, and one that refuses writes.
    fn services() -> (Folder, [ReadService; 2]) {
        let folder = Folder::new();
        drop(Writer::open(&folder.database()).unwrap());
        let parts = || Parts::for_tests(Authenticator::default());
        let store = || Reader::open(&folder.database()).unwrap();
        let services = [
            ReadService::new(store(), Arc::default(), parts()),
            ReadService::refusing(store(), parts(), Some("https://elsewhere")),
        ];
        let services = services.map(|mut service| {
            service.pipeline.router = &Router(&[ROWS]);
            service
        });
        (folder, services)
    }

    fn ask(asked: &[(&str, &str)]) -> Vec<u16> {
        let (_folder, [mut service, _]) = services();
        ask_of(&mut service, asked)
    }

    /// Sends all in one batch; returns the statuses of the ones that are answered.
    fn ask_of(service: &mut ReadService, asked: &[(&str, &str)]) -> Vec<u16> {
        let requests: Vec<Request> = asked
            .iter()
            .map(|(method, target)| Request { id: "-", method, target, headers: Vec::new(), body: b"" })
            .collect();
        let mut responses = Vec::new();
        assert_eq!(service.answer(&requests, &mut responses), Duration::ZERO, "nothing is flushed");
        responses.iter().map(Response::status).collect()
    }

    #[test]
    fn batch_ends_early_once_its_responses_are_large() {
        let (small, page, half) = (("GET", "/small"), ("GET", "/page"), ("GET", "/half"));
        assert_eq!(ask(&[half, half, small]), [200, 200]);
        assert_eq!(ask(&[half, page, small, small]), [200; 4]);
    }

    #[test]
    fn handler_that_visits_far_more_rows_than_its_row_states_is_stopped() {
        assert_eq!(ask(&[("GET", "/dear"), ("GET", "/small"), ("GET", "/dear")]), [500, 200, 500]);
    }

    #[test]
    fn request_down_the_wrong_lane_is_500() {
        assert_eq!(ask(&[("POST", "/write"), ("GET", "/small")]), [500, 200]);
    }

    #[test]
    fn each_request_counts_once_for_what_it_reached() {
        let (_folder, [mut service, _]) = services();
        service.pipeline.parts.count(&["small", "ready", "getFile", "none"]);
        let asked = [
            ("OPTIONS", "/small"),
            ("GET", "/small"),
            ("GET", "/ready"),
            ("GET", "/nowhere"),
            ("POST", "/nowhere"),
            ("DELETE", "/small"),
        ];
        assert_eq!(ask_of(&mut service, &asked), [204, 200, 204, 404, 404, 405]);
        let count = |operation: &str, status: u16| {
            let sample = format!("requests_total{{operation=\"{operation}\",status=\"{status}\"}}");
            service.pipeline.parts.counted(&sample)
        };
        let one = Some("1".to_owned());
        assert_eq!((count("small", 200), count(crate::api::FILE.id, 404)), (one.clone(), one.clone()));
        assert_eq!((count("none", 404), count("none", 405)), (one.clone(), one));
        // A probe of the gate, and what the writer is asked next and counts.
        assert_eq!((count("none", 204), count("ready", 204)), (None, None));
    }

    #[test]
    fn refusals_are_counted_by_their_cause() {
        let (_folder, services) = services();
        let counts = services.map(|mut service| {
            service.pipeline.parts.count(&[]);
            ask_of(&mut service, &[("GET", "/busy"), ("POST", "/write")]);
            ["storage_unavailable", "read_only"]
                .map(|code| service.pipeline.parts.counted(&format!("refusals_total{{code=\"{code}\"}}")))
        });
        let one = || Some("1".to_owned());
        assert_eq!(counts, [[one(), None], [one(), one()]]);
    }

    #[test]
    fn lost_database_is_reported_and_any_other_failure_logged() {
        let (_folder, [mut service, _]) = services();
        let losses = service.pipeline.parts.losses();
        let lines =
            logged(|| assert_eq!(ask_of(&mut service, &[("GET", "/busy"), ("GET", "/moved")]), [503; 2]));
        assert_eq!(lines, ["ERROR request -: busy: as if"]);
        let lost = |cause| StoreError::Unavailable(cause, "as if".to_owned());
        assert_eq!(losses.try_iter().collect::<Vec<_>>(), [lost(Cause::Moved)]);
        let lines = logged(|| {
            service.pipeline.trouble("r1", "cannot read", &lost(Cause::Locked));
            service.pipeline.trouble("r2", "cannot read", &lost(Cause::Damaged));
        });
        assert_eq!(lines, ["ERROR r1: cannot read: the database is locked by another process: as if"]);
        assert_eq!(losses.try_iter().collect::<Vec<_>>(), [lost(Cause::Damaged)]);
    }

    #[test]
    fn only_a_service_that_cannot_write_looks_again_at_rest() {
        let (folder, [mut service, mut refusing]) = services();
        assert_eq!((service.rest(), refusing.rest()), (None, Some(LOOK_EVERY)));
        let losses = refusing.pipeline.parts.losses();
        std::fs::remove_file(folder.database()).unwrap();
        refusing.rest();
        assert!(losses.try_recv().unwrap().is_lost());
        // Failures that were held back are told soon.
        for _ in 0..100 {
            service.pipeline.failures.say("", "a storm");
        }
        assert!(service.rest().unwrap() <= LOOK_EVERY);
    }
}
