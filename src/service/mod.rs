//! The pipeline of one worker: from a request to its response, by way of the key, the router and a handler.
//! Where a failure becomes a response and a line in the log. Knows no SQL and no sockets.

mod authentication;
mod hosts;
mod reading;
mod router;
mod writing;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::time::{Duration, Instant};

use crate::api::{Call, Handler, Operation};
use crate::clock::unix_time;
use crate::config::Config;
use crate::http::{ACCESS_LOG, ApiError, Code, Request, Response, Target};
use crate::metrics::Metrics;
use crate::quiet_log::QuietLog;
use crate::store::{Database, KeyScope, StoreError, Trouble};
use authentication::AUTHORIZATION;
use router::Router;

pub use authentication::Authenticator;
pub use hosts::{Hosts, OnServed};
pub use reading::ReadService;
pub use writing::WriteService;

/// What is counted where a request gets to no operation.
const NO_OPERATION: &str = "none";

/// Has the counters of all that is known to happen be there from the start.
pub fn announce(metrics: &mut Metrics) {
    let operations = Router::SERVICE.operations();
    let operations = operations.chain([&crate::api::FILE]);
    for operation in operations {
        let success = operation.success.map_or(200, |success| success.status);
        let failures = operation.codes.iter().map(|code| code.status());
        failures.chain([success, 500, 503]).for_each(|status| metrics.announce(operation.id, status));
    }
    [401, 403, 404, 405, 421, 500, 503].iter().for_each(|status| metrics.announce(NO_OPERATION, *status));
    let statuses = Code::ALL.iter().map(|code| code.status());
    statuses.chain([200, 201, 204, 304]).for_each(|status| metrics.announce_response(status));
}

/// Told when the database is lost, so that the service ends.
pub type Lost = Arc<dyn Fn(&StoreError) + Send + Sync>;

/// What each worker gets of what all of them need.
#[derive(Clone)]
pub struct Parts {
    pub authenticator: Authenticator,
    pub lost: Lost,
    pub metrics: Metrics,
    pub hosts: Hosts,
}

/// What all workers do alike.
struct Pipeline {
    router: Router,
    parts: Parts,
    /// Whose request was entered last, where the access log wants to know.
    key_name: Option<String>,
    failures: QuietLog,
}

impl Pipeline {
    fn new(parts: Parts) -> Self {
        let failures = QuietLog::new("petstore::service");
        Self { router: Router::SERVICE, parts, key_name: None, failures }
    }

    /// Counts a response on its way. What is passed on is counted by the writer, and an answer to OPTIONS is that
    /// of no operation: lanes ask so too.
    fn count(&self, operation: Option<&Operation>, response: Response) -> Response {
        let is_none = operation.is_none_or(|operation| matches!(operation.handler, Handler::Check { .. }));
        if response.status() != 204 || !is_none {
            let id = operation.map_or(NO_OPERATION, |operation| operation.id);
            self.parts.metrics.handled(id, response.status());
        }
        response
    }

    /// A batch met trouble with the store. `of` names the requests that it concerns, as far as they are known.
    fn trouble(&mut self, of: &str, what: &str, error: &StoreError) {
        if error.is_lost() {
            (self.parts.lost)(error);
        } else {
            self.failures.say(of, &format!("{what}: {error}"));
        }
    }

    /// The host first, then the key, the route and the scope.
    ///
    /// # Errors
    /// The response, where the request gets no further.
    fn enter<'r>(&mut self, request: &'r Request<'r>, database: &Database) -> Result<Call<'r>, Response> {
        self.key_name = None;
        match self.parts.hosts.admit(request, database) {
            Ok(None) => {}
            Ok(Some(redirect)) => return Err(redirect),
            Err(error) => return Err(self.refuse(error, "host", request)),
        }
        let target = Target::parse(request.target);
        if request.method == "OPTIONS" {
            return Err(self.router.options(&target).unwrap_or_else(ApiError::into_response));
        }
        let mut scope = KeyScope::Full;
        if is_protected(&target) {
            match self.parts.authenticator.authenticate(request, database, unix_time()) {
                Ok((found, name)) => {
                    scope = found;
                    let is_logged = log::log_enabled!(target: ACCESS_LOG, log::Level::Info);
                    self.key_name = is_logged.then(|| name.to_owned());
                }
                Err(error) => return Err(self.refuse(error, "authentication", request)),
            }
        }
        let routed = self.router.route(request.method, &target);
        // What no row has may be a file of the deploy.
        let routed = routed.or_else(|error| match (error.code(), request.method) {
            (Code::NotFound, "GET" | "HEAD") => Ok(&crate::api::FILE),
            _ => Err(error),
        });
        let operation = routed.map_err(ApiError::into_response)?;
        if operation.writes() && scope == KeyScope::ReadOnly {
            return Err(operation.announce(authentication::insufficient_scope().into_response()));
        }
        Ok(Call::new(operation, request, target))
    }

    /// Runs a part of an operation; what fails or panics in there becomes a response.
    ///
    /// # Errors
    /// That response.
    fn run<T>(
        &mut self,
        operation: &Operation,
        request: &Request,
        part: impl FnOnce() -> Result<T, ApiError>,
    ) -> Result<T, Response> {
        let done = catch_unwind(AssertUnwindSafe(part)).unwrap_or_else(|panic| {
            let detail = format!("panicked: {}", message_of(panic.as_ref()));
            Err(ApiError::new(Code::Internal).detail(detail))
        });
        done.map_err(|error| operation.announce(self.refuse(error, operation.id, request)))
    }

    /// Says what failures were held back. Returns in how long more is to say.
    fn rest(&mut self, now: Instant) -> Option<Duration> {
        self.failures.settle(now);
        self.failures.due(now)
    }

    /// Where the failure of one request becomes its response, and where its cause is logged.
    fn refuse(&mut self, error: ApiError, part: &str, request: &Request) -> Response {
        if error.is_fatal() {
            let detail = error.private_detail().unwrap_or_default().to_owned();
            (self.parts.lost)(&StoreError::Unavailable(Trouble::Damaged, detail));
        } else if let Some(detail) = error.private_detail() {
            self.failures.say(&format!("request {}", request.id), &format!("{part}: {detail}"));
        }
        error.into_response()
    }
}

/// Says whose request a response answers, where the access log wants to know.
fn sign(response: Response, key_name: Option<String>) -> Response {
    match key_name {
        Some(name) => response.for_key(&name),
        None => response,
    }
}

/// The header fields that the service reads: that of the key, those that the operations declare, and those that
/// tell the names of the project from others.
pub fn header_fields(config: &Config) -> Vec<&'static str> {
    let mut fields: Vec<_> =
        Router::SERVICE.operations().flat_map(|operation| operation.headers).copied().collect();
    fields.push(AUTHORIZATION);
    if config.hosting.platform_host.is_some() {
        fields.extend(hosts::HOST_FIELDS);
    }
    fields.sort_unstable();
    fields.dedup();
    fields
}

/// Whether a key is asked for before anything else is looked at.
fn is_protected(target: &Target) -> bool {
    target.path.strip_prefix("/v1").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The gate chooses the lane by the method, and a handler's kind is its method.
fn wrong_lane() -> ApiError {
    ApiError::new(Code::Internal).detail("the request came down the wrong lane")
}

/// What a panic said.
fn message_of(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}

#[cfg(test)]
impl Parts {
    /// With an authenticator, and nothing else that is seen.
    fn for_tests(authenticator: Authenticator) -> Self {
        Self { authenticator, lost: Arc::new(|_| ()), metrics: Metrics::default(), hosts: Hosts::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn everything_below_v1_is_protected() {
        for path in ["/v1", "/v1/", "/v1/pets", "/v1/nowhere", "/%761/pets", "/v%31"] {
            assert!(is_protected(&Target::parse(path)), "{path}");
        }
        for path in ["/", "/healthz", "/v10/pets", "/v1%2Fpets", "*"] {
            assert!(!is_protected(&Target::parse(path)), "{path}");
        }
    }

    #[test]
    fn gate_passes_on_what_the_operations_declare_and_the_key() {
        assert_eq!(
            header_fields(&Config::default()),
            ["Accept-Encoding", "Authorization", "Content-Encoding", "Content-Type", "If-None-Match"]
        );
    }

    #[test]
    fn panics_are_quoted() {
        assert_eq!(message_of(&"a"), "a");
        assert_eq!(message_of(&"b".to_owned()), "b");
        assert_eq!(message_of(&1), "without a word");
    }
}
