//! The service of a reading worker: a batch shares a snapshot.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use crate::app::endpoint::{ApiError, Code, Handler, ReadContext};
use crate::app::pipeline::{Entered, Handled, Pipeline, RequestInfo, SharedState, run, wrong_lane};
use crate::store::Reader;
use petstore_base::clock::unix_time;
use petstore_base::http::response::Disposition;
use petstore_base::http::{Request, Response};
use petstore_gate::Service;

/// A batch ends when its responses have this size in bytes, so that large pages do not pile up in memory.
pub(super) const ENOUGH_BYTES: usize = 1024 * 1024;

/// Answers the requests of a read lane.
pub struct ReadService {
    pub(super) context: ReadContext,
    pub(super) pipeline: Pipeline,
    /// The message for writes, in the write lane of a read-only service; `None` in a read lane.
    refusal: Option<Cow<'static, str>>,
}

/// The interval at which a read-only service checks that its database is still there.
const CHECK_EVERY: Duration = Duration::from_secs(1);

impl ReadService {
    pub fn new(store: Reader, shared: SharedState) -> Self {
        let (assets, settings) = (Arc::clone(&shared.assets), Arc::clone(&shared.settings));
        Self {
            context: ReadContext::new(store, shared.damage.clone(), assets, settings),
            pipeline: Pipeline::new(shared),
            refusal: None,
        }
    }

    /// Creates the service of the write lane of a read-only service. It rejects writes, and its message names the
    /// public URL, if there is one, as the place for them.
    pub fn refusing(store: Reader, shared: SharedState) -> Self {
        let refusal = shared.settings.base_url.as_ref().map_or_else(
            || Code::ReadOnly.usual_message(),
            |url| {
                format!("This service is read-only; nothing was changed. Send requests that change something to {url}.").into()
            },
        );
        Self {
            refusal: Some(refusal),
            ..Self::new(store, shared)
        }
    }

    /// Handles a request up to its response.
    fn handle(&mut self, request: &Request, now: i64, entry: &mut RequestInfo) -> Handled {
        let Self {
            context,
            pipeline,
            refusal,
        } = self;
        let call = match pipeline.enter(request, &context.store, now, entry)? {
            Entered::Call(call) => call,
            Entered::Answered(response) => return Ok(response),
        };
        run(|| match call.operation.handler {
            Handler::Get(handler) => handler(context, &call),
            Handler::Health {
                read,
                read_only_body,
                ..
            } => read(context).map(|()| match refusal {
                Some(_) => Response::json_bytes(200, read_only_body.as_bytes()),
                None => Response::only(Disposition::RetryOnWriter),
            }),
            Handler::Write(..) => Err(refusal.clone().map_or_else(wrong_lane, |message| {
                ApiError::with_message(Code::ReadOnly, message).into()
            })),
        })
    }

    /// Answers requests in one snapshot, each with what `handle` does.
    pub(super) fn answer_with(
        &mut self,
        requests: &[Request],
        responses: &mut Vec<Response>,
        mut handle: impl FnMut(&mut Self, &Request, i64, &mut RequestInfo) -> Handled,
    ) -> Duration {
        if let Err(error) = self.context.store.begin() {
            // The following queries fail as well, each with its own response.
            self.pipeline.trouble("", "cannot begin to read", &error);
        }
        let now = unix_time();
        let mut bytes = 0;
        for request in requests {
            let mut entry = RequestInfo::default();
            let done = handle(self, request, now, &mut entry);
            let response = self.pipeline.finish(request, entry, done);
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
}

impl Service for ReadService {
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        self.answer_with(requests, responses, Self::handle)
    }

    fn rest(&mut self) -> Option<Duration> {
        self.refusal.as_ref()?;
        // Without requests too, so that a replaced file is noticed soon.
        if let Err(error) = self.context.store.check_path() {
            self.pipeline
                .trouble("", "cannot look at the database", &error);
        }
        Some(CHECK_EVERY)
    }
}

#[cfg(test)]
mod tests;
