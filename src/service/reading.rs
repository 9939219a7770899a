//! The service of a reading worker: a batch shares a snapshot.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::api::{Handler, ReadContext};
use crate::clock::unix_time;
use crate::http::{ApiError, Assets, Code, Request, Response};
use crate::service::{Parts, Pipeline, wrong_lane};
use crate::store::Reader;
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

    fn respond(&mut self, request: &Request, now: i64) -> Response {
        let Self { context, pipeline, refusal } = self;
        let (findings, entered) = pipeline.enter(request, context.store.database(), now);
        let call = match entered {
            Ok(call) => call,
            Err(response) => return pipeline.finish(None, findings, request, response),
        };
        let operation = call.operation();
        context.store.bound_rows(operation.rows);
        let done = pipeline.run(operation, request, || match operation.handler {
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
        let response = done.unwrap_or_else(|refused| refused);
        pipeline.finish(Some(operation), findings, request, response)
    }
}

impl Service for ReadService {
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        if let Err(error) = self.context.store.begin() {
            // The queries that follow fail as well, each with its own response.
            self.pipeline.trouble("", "cannot begin to read", &error);
        }
        let now = unix_time();
        let mut bytes = 0;
        for request in requests {
            let response = self.respond(request, now);
            bytes += response.body().len();
            responses.push(response);
            if bytes >= ENOUGH_BYTES {
                break;
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
    use crate::store::Writer;
    use crate::testing::Folder;

    const ROWS: &[Operation] = &[
        Operation::new("/small", "small", Handler::Get(|_, _| Ok(Response::new(200, b"x")))),
        Operation::new("/page", "page", Handler::Get(|_, _| Ok(Response::new(200, vec![b'x'; 64 * 1024])))),
        Operation::new(
            "/half",
            "half",
            Handler::Get(|_, _| Ok(Response::new(200, vec![b'x'; ENOUGH_BYTES / 2]))),
        ),
        Operation { rows: Some(1), ..Operation::new("/dear", "dear", Handler::Get(read_without_end)) },
        Operation::new(
            "/write",
            "write",
            Handler::Post(|_, _| Ok(Box::new(|_| Ok(Response::new(204, b""))))),
        ),
    ];

    /// Reads far more than one row.
    fn read_without_end(context: &mut ReadContext, _: &Call) -> Result<Response, Failure> {
        for _ in 0..100_000 {
            context.store.pet(1, |_| ())?;
        }
        Ok(Response::new(204, b""))
    }

    /// Sends all in one batch; returns the statuses of the ones that are answered.
    fn ask(asked: &[(&str, &str)]) -> Vec<u16> {
        let folder = Folder::new();
        drop(Writer::open(&folder.database()).unwrap());
        let store = Reader::open(&folder.database()).unwrap();
        let mut service = ReadService::new(store, Arc::default(), Parts::for_tests(Authenticator::default()));
        service.pipeline.router = &Router(&[ROWS]);
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
}
