//! One worker's service: from a request to its response, by way of the key, the router and a handler.

pub mod authentication;
pub mod router;

use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use crate::api::Context;
use crate::http::ApiError;
use crate::http::{Request, Response};
use crate::pulse::Pulse;
use crate::service::authentication::{Authenticator, Scope};
use crate::service::router::Target;
use crate::store::Store;
use crate::worker::Service;

/// Answers the requests of one lane.
pub struct PetService {
    context: Context,
    authenticator: Authenticator,
    /// Whether this is the service of the writer, who answers for the pulse.
    is_writer: bool,
    /// The requests of the batch whose responses must wait for the commit, by their places.
    uncommitted: Vec<usize>,
    answered: usize,
    complaints: Complaints,
}

/// Keeps a storm of failures that have one cause, such as a full disk, to one line a second in the log.
#[derive(Default)]
struct Complaints {
    last: Option<Instant>,
    held_back: u64,
}

impl Complaints {
    fn say(&mut self, line: &str) {
        if self.last.is_some_and(|last| last.elapsed() < Duration::from_secs(1)) {
            self.held_back += 1;
            return;
        }
        match std::mem::take(&mut self.held_back) {
            0 => log::error!("{line}"),
            more => log::error!("{line} ({more} more failed before)"),
        }
        self.last = Some(Instant::now());
    }
}

impl PetService {
    /// The service of a worker that reads.
    pub fn reader(store: Store, authenticator: Authenticator, pulse: Arc<Pulse>) -> Self {
        Self {
            context: Context::new(store, pulse),
            authenticator,
            is_writer: false,
            uncommitted: Vec::new(),
            answered: 0,
            complaints: Complaints::default(),
        }
    }

    /// The service of the one worker that writes.
    pub fn writer(store: Store, authenticator: Authenticator, pulse: Arc<Pulse>) -> Self {
        Self { is_writer: true, ..Self::reader(store, authenticator, pulse) }
    }

    /// Authentication first, then the route, then the scope, then the handler.
    fn handle(&mut self, request: &Request) -> Result<Response, ApiError> {
        let target = Target::parse(request.target);
        if request.method == "OPTIONS" {
            return router::options(&target);
        }
        let mut scope = None;
        if target.is_protected() {
            let now = unix_time();
            scope = Some(self.authenticator.authenticate(request, &self.context.store, now)?);
        }
        let operation = router::route(request.method, &target)?;
        let handled = if operation.writes && scope == Some(Scope::ReadOnly) {
            Err(authentication::insufficient_scope())
        } else {
            (operation.handler)(&mut self.context, request, &target)
        };
        let mut response =
            handled.unwrap_or_else(|error| self.response_for(error, operation.id, request.id()));
        if let Some(deprecation) = &operation.deprecation {
            deprecation.announce(&mut response);
        }
        Ok(response)
    }

    /// Where the failure of one request becomes its response, and where its cause is logged.
    fn response_for(&mut self, error: ApiError, operation: &str, request_id: &str) -> Response {
        if let Some(detail) = error.private_detail() {
            self.complaints.say(&format!("request {request_id}: {operation}: {detail}"));
        }
        error.into_response()
    }
}

/// Seconds since 1970, for the expiry of keys.
pub fn unix_time() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_secs()).unwrap_or(i64::MAX)
}

impl Service for PetService {
    fn begin(&mut self) {
        self.uncommitted.clear();
        self.answered = 0;
        if let Err(error) = self.context.store.begin_batch() {
            // The queries that follow meet the same trouble and answer for it one by one.
            self.complaints.say(&format!("cannot begin to read: {error}"));
        }
    }

    fn answer(&mut self, request: &Request) -> Response {
        let before = self.context.store.pending_writes();
        let place = self.answered;
        self.answered += 1;
        let response =
            self.handle(request).unwrap_or_else(|error| self.response_for(error, "routing", request.id()));
        if self.context.store.pending_writes() != before {
            self.uncommitted.push(place);
        }
        response
    }

    fn end(&mut self, responses: &mut [Response]) -> Duration {
        let began = Instant::now();
        let ended = self.context.store.end_batch();
        let took = began.elapsed();
        if let Err(error) = ended {
            self.context.pulse.doubt();
            let count = self.uncommitted.len();
            self.complaints.say(&format!("{count} writes failed and were undone: {error}"));
            for place in &self.uncommitted {
                responses[*place] = ApiError::from(error.clone()).into_response();
            }
        }
        self.answer_pulse();
        if self.uncommitted.is_empty() { Duration::ZERO } else { took }
    }

    fn wake(&mut self) {
        self.answer_pulse();
    }

    fn stop(&mut self) {
        if self.is_writer
            && let Err(error) = self.context.store.checkpoint()
        {
            log::warn!("the write-ahead log stays beside the database: {error}");
        }
    }
}

impl PetService {
    fn answer_pulse(&mut self) {
        if !self.is_writer {
            return;
        }
        let store = &mut self.context.store;
        self.context.pulse.answer(|| match store.probe() {
            Ok(()) => true,
            Err(error) => {
                log::error!("the store cannot be written: {error}");
                false
            }
        });
    }
}
