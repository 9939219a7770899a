//! The pipeline of one worker, from a request to its response: host, key, router, handler. It turns failures into
//! responses and log lines. Knows no SQL and no sockets.

mod authentication;
mod cluster;
mod cors;
mod fault_injection;
mod reading;
mod refusals;
mod writing;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::app::api::{ACCEPT, FILE, MAX_PAGE_ROWS, is_deployed, page_size, router};
use crate::app::endpoint::{ApiError, Call, Code, Failure, HeaderField, Operation, Router};
use crate::app::settings::ApiSettings;
use crate::model::KeyScope;
use crate::store::{Damage, Reader, StoreError};
use authentication::AUTHORIZATION;
use petstore_base::http::response::Disposition;
use petstore_base::http::{ACCESS_LOG, Fields, LazyAssets, Request, Response, Size, Target};
use petstore_base::metrics::Metrics;
use petstore_base::quiet_log::QuietLog;
use petstore_hosting::{Admitted, FORWARDED_PROTO, HOST, Hosts, Redirect, link_canonical};

pub use authentication::Authenticator;
pub use cluster::{ClusterReads, ClusterWrites, KeyCopy};
pub use cors::cors;
pub use fault_injection::{Draws, Faults, PREFER, delays};
pub use reading::ReadService;
pub use refusals::refuse;
pub use writing::WriteService;

/// The request header field that a browser sends when it fetches the script of a service worker (Service Workers,
/// section 'Update').
const SERVICE_WORKER: &str = "Service-Worker";
/// The methods of a deployed file.
const METHODS_OF_FILES: &str = "GET, HEAD, OPTIONS";
/// The label in the metrics for a request that reaches no operation.
const NO_OPERATION: &str = "none";

/// The header field of each response to a known key.
pub const KEY_SCOPE: HeaderField = HeaderField {
    name: "Key-Scope",
    about: "What the API key may do: `read`, `full`, or `admin`, which also changes the settings of the project. Absent \
        without a valid key.",
    example: "full",
};

fn scope_word(scope: KeyScope) -> &'static str {
    match scope {
        KeyScope::ReadOnly => "read",
        scope => scope.as_str(),
    }
}

/// Creates the counters of all operations and of the causes of a 503, so that the metrics have them from the start.
pub fn announce(metrics: &mut Metrics, is_experimental: bool) {
    let operations = router(is_experimental)
        .operations()
        .chain([&FILE])
        .map(|operation| operation.id);
    for operation in operations.chain([NO_OPERATION]) {
        metrics.announce(operation);
    }
    for code in Code::ALL.iter().filter(|code| code.status() == 503) {
        metrics.refused(code.as_str(), 0);
    }
}

/// Called when the database is lost; it ends the service, or leaves that to the writer.
pub type Lost = Arc<dyn Fn(&StoreError) + Send + Sync>;

/// The state that all workers share; each gets a clone.
#[derive(Clone)]
pub struct SharedState {
    pub settings: Arc<ApiSettings>,
    /// The documents of the site.
    pub assets: Arc<LazyAssets>,
    pub authenticator: Authenticator,
    pub lost: Lost,
    pub damage: Damage,
    pub metrics: Metrics,
    pub hosts: Hosts,
}

/// The steps that reading and writing workers share.
struct Pipeline {
    router: &'static Router,
    shared: SharedState,
    failures: QuietLog,
    /// The header fields of the deprecated operations, printed once.
    announcements: Vec<(&'static str, Fields)>,
}

/// Facts about a request that its response needs.
#[derive(Default)]
struct RequestInfo {
    /// The operation, unless the request ends before it.
    operation: Option<&'static Operation>,
    /// The name of its key, for the access log.
    key_name: Option<Arc<str>>,
    /// The scope of its key, if that is known.
    scope: Option<KeyScope>,
    /// The canonical host, if the request is for another one.
    canonical: Option<Arc<str>>,
}

/// The outcome of a request. [`Pipeline::finish`] turns it into a response, and logs a failure.
type Handled = Result<Response, Failure>;

/// The result of the checks before the handler.
enum Entered<'r> {
    /// The request goes to the handler of its operation.
    Call(Call<'r>),
    /// The request already has its response, such as a redirect.
    Answered(Response),
}

impl Pipeline {
    fn new(shared: SharedState) -> Self {
        let failures = QuietLog::new(module_path!());
        let root = shared.settings.root().unwrap_or_default();
        let announcement = |row: &Operation| Some((row.id, row.deprecation?.announcement(root)));
        let router = router(shared.settings.is_experimental);
        let announcements = router.operations().filter_map(announcement).collect();
        Self {
            router,
            shared,
            failures,
            announcements,
        }
    }

    /// Adds the header fields of a deprecated operation.
    fn announce(&self, operation: &Operation, response: Response) -> Response {
        let own = self
            .announcements
            .iter()
            .find(|(id, _)| *id == operation.id);
        match own {
            Some((_, fields)) => response.with(fields),
            None => response,
        }
    }

    /// Makes the response, adds the header fields of a deprecation and of the canonical host, and counts it. A request
    /// that goes on to another worker is counted by that one. OPTIONS is not counted.
    fn finish(&mut self, request: &Request, entry: RequestInfo, done: Handled) -> Response {
        let operation = entry.operation;
        let code = match &done {
            Err(Failure::Refused(error)) => error.code,
            _ => Code::StorageUnavailable,
        };
        let mut response = done.unwrap_or_else(|failure| self.refuse(failure, operation, request));
        if let Some(operation) = operation {
            response = self.announce(operation, response);
        }
        if let Some(path) = self.shared.settings.root_path()
            && let Some(location) = response
                .field("Location")
                .filter(|_| response.status == 201)
        {
            let location = format!("/{path}{location}");
            response.fields.remove("Location");
            response = response.header("Location", location);
        }
        if let Some(canonical) = entry.canonical {
            response = link_canonical(&canonical, request, response);
        }
        if let Some(name) = entry.key_name {
            response = response.for_key(&name);
        }
        if let Some(scope) = entry.scope {
            response = response.header(KEY_SCOPE.name, scope_word(scope));
        }
        let is_options = operation.is_none() && response.status == 204;
        if !is_options && response.disposition == Disposition::Send {
            let id = operation.map_or(NO_OPERATION, |operation| operation.id);
            self.shared.metrics.handled(id, response.status);
        }
        if response.status == 503 {
            self.shared.metrics.refused(code.as_str(), 1);
        }
        response
    }

    /// Logs the store's failure in a batch. `of` names the affected requests; it may be empty. A lost database ends the
    /// service.
    fn trouble(&mut self, of: &str, what: &str, error: &StoreError) {
        if error.is_lost() {
            (self.shared.lost)(error);
        } else if !self.shared.damage.note(error) {
            let of = if of.is_empty() {
                String::new()
            } else {
                format!("{of}: ")
            };
            self.failures.say(&format!("{of}{what}: {error}"));
        }
    }

    /// Checks the host, the key, the route and the scope, in this order, and finds the operation of the request. `now`
    /// is Unix time in seconds.
    ///
    /// # Errors
    /// The failure of one of these checks.
    fn enter<'r>(
        &mut self,
        request: &'r Request<'r>,
        database: &Reader,
        now: i64,
        entry: &mut RequestInfo,
    ) -> Result<Entered<'r>, Failure> {
        let target = Target::parse(request.target);
        match self.shared.hosts.admit(request, database)? {
            Admitted::Served { canonical } => entry.canonical = canonical,
            Admitted::Redirected(Redirect { from, to, .. }) if is_protected(&target) => {
                return Err(not_redirected(&from, &to, self.shared.settings.root()).into());
            }
            Admitted::Redirected(Redirect { to, status, .. }) => {
                let location = format!("https://{to}{}", request.target);
                let response = Response::new(status, b"").header("Location", location);
                return Ok(Entered::Answered(response));
            }
            Admitted::Misdirected => return Err(ApiError::new(Code::MisdirectedRequest).into()),
        }
        if request.method == "OPTIONS" {
            let options = self.router.options(&target);
            let is_file = options.is_err() && is_deployed(database, &target.path)?;
            let of_file = || Response::new(204, b"").header("Allow", METHODS_OF_FILES);
            return Ok(Entered::Answered(if is_file {
                of_file()
            } else {
                options?
            }));
        }
        let (mut caller, mut key_name) = (None, None);
        if is_protected(&target) {
            let is_logged = log::log_enabled!(target: ACCESS_LOG, log::Level::Info);
            match self
                .shared
                .authenticator
                .authenticate(request, database, now)
            {
                Ok(known) => {
                    (entry.scope, caller) = (Some(known.key.scope), Some(known.caller));
                    entry.key_name = is_logged.then(|| Arc::clone(&known.name));
                    key_name = Some(Arc::clone(&known.name));
                }
                Err(refused) => {
                    entry.key_name = is_logged
                        .then(|| self.shared.authenticator.refused(request))
                        .flatten()
                        .map(Into::into);
                    return Err(refused);
                }
            }
        } else if request.header_values(SERVICE_WORKER).next().is_some() {
            return Err(refuse_worker(is_deployed(database, &target.path)?).into());
        }
        let operation = match self.router.route(request.method, &target) {
            Err(error) if error.code == Code::NotFound => {
                Self::route_to_file(request, database, &target)?
            }
            operation => operation?,
        };
        if operation.writes() && entry.scope == Some(KeyScope::ReadOnly) {
            let refused = authentication::insufficient_scope().into_response();
            return Ok(Entered::Answered(self.announce(operation, refused)));
        }
        entry.operation = Some(operation);
        Ok(Entered::Call(Call {
            operation,
            request,
            target,
            caller,
            key_name,
            scope: entry.scope,
        }))
    }

    /// Routes a path that matches no row, which may be a file of the deploy.
    fn route_to_file(
        request: &Request,
        database: &Reader,
        target: &Target,
    ) -> Result<&'static Operation, Failure> {
        if ["GET", "HEAD"].contains(&request.method) {
            return Ok(&FILE);
        }
        let is_file = is_deployed(database, &target.path)?;
        let refused = ApiError::new(Code::MethodNotAllowed).header("Allow", METHODS_OF_FILES);
        Err(if is_file {
            refused
        } else {
            ApiError::new(Code::NotFound)
        }
        .into())
    }

    /// Turns the failure of a request into its response, and logs the detail that the client must not see.
    fn refuse(
        &mut self,
        failure: Failure,
        operation: Option<&Operation>,
        request: &Request,
    ) -> Response {
        match &failure {
            Failure::Store(error) if error.is_lost() => (self.shared.lost)(error),
            Failure::Store(error) if self.shared.damage.note(error) => {}
            failure => {
                if let Some(detail) = failure.detail() {
                    let part = operation.map_or("before its operation", |operation| operation.id);
                    self.failures
                        .say(&format!("request {}: {part}: {detail}", request.id));
                }
            }
        }
        failure.into_response()
    }
}

/// Rejects a request for the API at a name that redirects: a client could lose its credentials or its body on the way.
/// `root` is the URL of the service, if it is configured.
fn not_redirected(from: &str, to: &str, root: Option<&str>) -> ApiError {
    let root = root.map_or_else(|| format!("https://{to}"), str::to_owned);
    let message =
        format!("{from} redirects to {to}, and the API is not redirected. It is at {root}/v1.");
    ApiError::with_message(Code::MisdirectedRequest, message)
}

/// Runs a part of an operation. A panic, which the panic hook logs, becomes a failure.
fn run<T>(part: impl FnOnce() -> Result<T, Failure>) -> Result<T, Failure> {
    catch_unwind(AssertUnwindSafe(part))
        .unwrap_or_else(|_| Err(Failure::Fault("panicked".to_owned())))
}

/// Rejects the script of a service worker, which would outlive its deploy and could read every key that is entered in
/// the reference. If the script is not deployed any more, the browser also clears the storage of the worker.
fn refuse_worker(is_deployed: bool) -> ApiError {
    let message =
        "Scripts are not served as service workers, which could read the API keys of this origin.";
    let refused = ApiError::with_message(Code::NotFound, message);
    if is_deployed {
        refused
    } else {
        refused.header("Clear-Site-Data", "\"storage\"")
    }
}

/// Lists the request header fields that the service reads: the key, those of the operations and, if there may be
/// domains, the host.
pub fn header_fields(is_experimental: bool, has_domains: bool) -> Vec<&'static str> {
    let own = [
        AUTHORIZATION,
        ACCEPT.name,
        SERVICE_WORKER,
        HOST,
        FORWARDED_PROTO,
    ];
    router(is_experimental).header_fields(if has_domains { &own } else { &own[..3] })
}

/// Estimates the size of the response to a read. `line` is its method and its target, with a space between them. HEAD
/// of a list costs as much as the list.
pub fn size(line: &[u8]) -> Size {
    let line = str::from_utf8(line).unwrap_or_default();
    let (method, target) = line.split_once(' ').unwrap_or_default();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    size_of(method, router(true).rows(path), query)
}

/// Estimates the size of a response by the most rows that its handler reads. `None`: a deployed file.
fn size_of(method: &str, rows: Option<u32>, query: &str) -> Size {
    match (method, rows) {
        ("OPTIONS", _) | (_, Some(..=1)) => Size::Small,
        (_, Some(MAX_PAGE_ROWS)) => page_size(query),
        (_, Some(MAX_PAGE_ROWS..)) => Size::Large,
        ("HEAD", _) => Size::Small,
        (_, Some(_)) => Size::Medium,
        (_, None) => Size::Large,
    }
}

/// Returns whether a target needs an API key: every path below `/v1`, even an unknown one.
pub fn is_protected(target: &Target) -> bool {
    target
        .path
        .strip_prefix("/v1")
        .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// The failure of a request in the wrong lane. It cannot happen: the gate chooses the lane by the method, and a
/// handler's variant follows from the method too.
fn wrong_lane() -> Failure {
    Failure::Fault("the request came down the wrong lane".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    impl SharedState {
        /// Creates a state with this authenticator, and defaults for the rest.
        pub fn for_tests(authenticator: Authenticator) -> Self {
            let (settings, assets) = (
                Arc::new(ApiSettings::default()),
                std::sync::Arc::new(petstore_base::http::LazyAssets::new(Box::new(
                    petstore_base::http::Assets::default,
                ))),
            );
            let (damage, metrics, hosts) =
                (Damage::default(), Metrics::default(), Hosts::default());
            Self {
                settings,
                assets,
                authenticator,
                lost: Arc::new(|_| ()),
                damage,
                metrics,
                hosts,
            }
        }

        /// Counts requests to these operations from now on.
        pub fn count(&mut self, operations: &[&'static str]) {
            self.metrics = Metrics::watched(0);
            operations
                .iter()
                .for_each(|operation| self.metrics.announce(operation));
        }

        /// The value of the metric with this name and these labels.
        pub fn counted(&self, sample: &str) -> Option<String> {
            let mut text = petstore_base::metrics::Exposition::default();
            self.metrics.print(&mut text);
            let text = String::from_utf8(text.into_bytes()).unwrap();
            let mut values = text
                .lines()
                .filter_map(|line| line.strip_prefix("petstore_")?.strip_prefix(sample));
            values
                .find_map(|value| value.strip_prefix(' '))
                .map(str::to_owned)
        }

        /// Returns a channel with each loss of the database from now on.
        pub fn losses(&mut self) -> std::sync::mpsc::Receiver<StoreError> {
            let (sender, losses) = std::sync::mpsc::channel();
            let sender = std::sync::Mutex::new(sender);
            self.lost = Arc::new(move |error| sender.lock().unwrap().send(error.clone()).unwrap());
            losses
        }
    }

    #[test]
    fn size_is_that_of_what_may_be_sent() {
        for line in [
            "GET /v1/pets/7",
            "HEAD /v1/pets/7?x",
            "GET /healthz",
            "HEAD /nowhere",
            "HEAD /openapi.json",
            "OPTIONS /v1/pets?limit=100",
        ] {
            assert_eq!(size(line.as_bytes()), Size::Small, "{line}");
        }
        for line in [
            "GET /v1/pets",
            "HEAD /v1/pets",
            "GET /v1/pets?after=7&limit=20",
            "GET /openapi.json",
        ] {
            assert_eq!(size(line.as_bytes()), Size::Medium, "{line}");
        }
        for line in [
            "GET /v1/pets?limit=21",
            "HEAD /v1/pets?limit=100",
            "GET /v1/pets?%6cimit=100",
            "GET /nowhere",
            "",
        ] {
            assert_eq!(size(line.as_bytes()), Size::Large, "{line}");
        }
        for line in [
            "GET /v1/pets?name=a",
            "HEAD /v1/pets?limit=100&categoryId=1",
            "GET /v1/pets?status=unset",
        ] {
            assert_eq!(size(line.as_bytes()), Size::Long, "{line}");
        }
    }

    #[test]
    fn read_of_more_rows_than_a_page_is_large() {
        for method in ["GET", "HEAD"] {
            assert_eq!(size_of(method, Some(MAX_PAGE_ROWS + 1), ""), Size::Large);
            assert_eq!(size_of(method, Some(u32::MAX), "limit=1"), Size::Large);
        }
    }

    #[test]
    fn request_for_the_api_is_told_where_it_is() {
        for (root, api) in [
            (None, "It is at https://pets.test/v1."),
            (
                Some("https://Api.example:8443"),
                "It is at https://Api.example:8443/v1.",
            ),
        ] {
            let response = not_redirected("from.test", "pets.test", root).into_response();
            let body = String::from_utf8_lossy(response.body());
            assert!(response.status == 421 && body.contains(api), "{body}");
        }
    }

    #[test]
    fn everything_below_v1_is_protected() {
        for path in [
            "/v1",
            "/v1/",
            "/v1/pets",
            "/v1/nowhere",
            "/%761/pets",
            "/v%31",
        ] {
            assert!(is_protected(&Target::parse(path)), "{path}");
        }
        for path in ["/", "/healthz", "/v10/pets", "/v1%2Fpets", "*"] {
            assert!(!is_protected(&Target::parse(path)), "{path}");
        }
    }

    #[test]
    fn gate_forwards_what_the_operations_declare_and_the_key() {
        assert_eq!(
            header_fields(false, false),
            [
                "Accept",
                "Accept-Encoding",
                "Authorization",
                "Content-Encoding",
                "Content-Type",
                "Idempotency-Key",
                "If-None-Match",
                "Service-Worker"
            ]
        );
    }

    #[test]
    fn every_operation_is_in_the_metrics_from_the_start() {
        let mut shared = SharedState::for_tests(Authenticator::default());
        shared.metrics = Metrics::watched(0);
        announce(&mut shared.metrics, false);
        for sample in [
            r#"requests_total{operation="createPet",status="503"}"#,
            r#"requests_total{operation="none",status="500"}"#,
            r#"refusals_total{code="read_only"}"#,
        ] {
            assert_eq!(shared.counted(sample).as_deref(), Some("0"), "{sample}");
        }
    }
}
