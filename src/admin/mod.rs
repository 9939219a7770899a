//! The admin address: metrics for monitoring, and the settings of the project. Knows no SQL and no sockets.

mod counting;
mod metrics;
#[cfg_attr(
    not(feature = "site"),
    path = "no_settings.rs",
    warn(dead_code, unused_imports)
)]
mod settings;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::app::endpoint::{ApiError, Code, Failure, unserved};
use crate::store::{Damage, Reader};
use petstore_base::error::Error;
use petstore_base::http::host::{is_address, without_port};
use petstore_base::http::{Request, Response, Target};
use petstore_base::metrics::Metrics;
use petstore_base::quiet_log::QuietLog;
use petstore_gate::Service;

pub use counting::{Count, LastCounts};
pub use settings::ProjectSettings;

/// The methods of a path, as Allow lists them, and its handler.
type Route = (&'static str, Handler);
type Handler = fn(&mut AdminContext, &Request, &Target) -> Result<Response, Failure>;

const GET: &str = "GET, HEAD, OPTIONS";
const POST: &str = "POST, OPTIONS";

/// Finds what is served at a path.
fn route(path: &str) -> Option<Route> {
    match path {
        metrics::PATH => Some((GET, metrics::get)),
        "/internal/reset" => Some((POST, reset)),
        _ => settings::route(path),
    }
}

/// The context of the handlers on the admin address.
pub struct AdminContext {
    pub metrics: Metrics,
    pub store: Reader,
    /// Brings the database up to date, if it is only a copy.
    pub refresh: Refresh,
    /// The damage to the database that the service has found.
    pub damage: Damage,
    /// The path of the database.
    pub database: PathBuf,
    /// True if the service is read-only.
    pub read_only: bool,
    pub settings: ProjectSettings,
    /// Further accepted hosts of requests, in lower case.
    pub hosts: Vec<String>,
    /// `None`: the service is not ephemeral.
    pub reset: Option<Reset>,
    /// The pets by status, if the service counts them.
    pub counts: Option<LastCounts>,
}

/// Brings a copy up to date.
pub type Refresh = Arc<dyn Fn() + Send + Sync>;

/// Returns the service to its first state.
pub type Reset = Arc<dyn Fn() -> Result<(), Error> + Send + Sync>;

/// Answers requests to the admin address.
pub struct AdminService {
    context: AdminContext,
    failures: QuietLog,
    /// `None`: another worker counts the pets.
    count: Option<Count>,
}

impl AdminService {
    /// Creates the service of a worker. If the service counts the pets, one worker does with `count`.
    pub fn new(context: AdminContext, count: Option<Count>) -> Self {
        Self {
            context,
            failures: QuietLog::new(module_path!()),
            count,
        }
    }

    /// Answers a request, and notes the name of its key for the access log.
    fn respond(
        &mut self,
        request: &Request,
        key_name: &mut Option<String>,
    ) -> Result<Response, Failure> {
        let target = Target::parse(request.target);
        is_at_home(&self.context.hosts, request, &target)?;
        let route = route(&target.path);
        if request.method == "OPTIONS" {
            let allow = match route {
                Some((allow, _)) => allow,
                None if target.path == "*" => settings::ALL_METHODS,
                None => return Err(ApiError::new(Code::NotFound).into()),
            };
            return Ok(Response::new(204, b"").header("Allow", allow));
        }
        if let Some(redirect) = settings::guard(&mut self.context, request, &target, key_name)? {
            return Ok(redirect);
        }
        let allow = route.map(|(allow, _)| allow);
        let (allow, handler) = route
            .filter(|(allow, _)| allow.split(", ").any(|method| method == request.method))
            .ok_or_else(|| unserved(request.method, allow))?;
        if allow != GET {
            self.context.damage.found()?;
        }
        handler(&mut self.context, request, &target)
    }
}

impl Service for AdminService {
    fn answer(&mut self, requests: &[Request], responses: &mut Vec<Response>) -> Duration {
        for request in requests {
            let mut key_name = None;
            let mut response = self.respond(request, &mut key_name).unwrap_or_else(|failure| {
                let is_noted = matches!(&failure, Failure::Store(error) if self.context.damage.note(error));
                if !is_noted && let Some(detail) = failure.detail() {
                    self.failures
                        .say(&format!("request {}: admin address: {detail}", request.id));
                }
                failure.into_response()
            });
            if let Some(name) = &key_name {
                response = response.for_key(name);
            }
            responses.push(response);
        }
        Duration::ZERO
    }

    fn rest(&mut self) -> Option<Duration> {
        let (count, last) = (self.count.as_mut()?, self.context.counts.as_ref()?);
        if let Err(error) = last.refresh(count, &mut self.context.store) {
            // If the database cannot be read, /readyz reports the cause.
            self.context.damage.note(&error);
        }
        Some(counting::EVERY)
    }
}

/// Rejects requests that a page of another site makes a browser send: those for a host name that the operator has not
/// allowed (DNS rebinding), and those from another origin.
fn is_at_home(hosts: &[String], request: &Request, target: &Target) -> Result<(), ApiError> {
    let host = request.header_values("Host").next().unwrap_or_default();
    let name = without_port(host).trim_end_matches('.');
    let is_allowed = || {
        hosts
            .iter()
            .any(|allowed| allowed.eq_ignore_ascii_case(name))
    };
    // The name of a site on the internet has a dot.
    if !is_address(name)
        && name.contains('.')
        && !is_allowed()
        && !metrics::is_served_at(name, target)
    {
        let message = "Metrics and settings are served at IP addresses, localhost, names without a dot, and names that \
                       --admin-host (PETSTORE_ADMIN_HOST) allows; metrics also at this machine's name.";
        return Err(ApiError::with_message(Code::MisdirectedRequest, message));
    }
    let is_own = |origin: &str| {
        origin
            .split_once("://")
            .is_some_and(|(_, of)| of.eq_ignore_ascii_case(host))
    };
    if request.header_values("Origin").all(is_own) {
        return Ok(());
    }
    Err(forbidden(
        "The admin address does not accept requests from pages of other origins.",
    ))
}

/// Returns an ephemeral service to its first state.
fn reset(context: &mut AdminContext, _: &Request, _: &Target) -> Result<Response, Failure> {
    let message = "Only a service that was started with --ephemeral can be reset.";
    let reset = context
        .reset
        .as_ref()
        .ok_or_else(|| ApiError::with_message(Code::NotFound, message))?;
    reset().map_err(|error| Failure::Fault(error.to_string()))?;
    Ok(Response::new(204, b""))
}

fn forbidden(message: &'static str) -> ApiError {
    ApiError::with_message(Code::InsufficientScope, message).header(
        "WWW-Authenticate",
        "Bearer realm=\"petstore\", error=\"insufficient_scope\", scope=\"admin\"",
    )
}

/// The header fields that the admin address reads.
pub fn header_fields() -> Vec<&'static str> {
    [&["Host", "Origin"], settings::HEADER_FIELDS].concat()
}

#[cfg(test)]
mod tests {
    use rustix::system::uname;

    use super::*;

    fn status(path: &str, headers: &[(&'static str, &str)]) -> u16 {
        let request = Request {
            id: "-",
            method: "POST",
            target: path,
            headers: headers.to_vec(),
            body: b"",
        };
        is_at_home(&[], &request, &Target::parse(path))
            .map_or_else(|error| error.code.status(), |()| 200)
    }

    #[test]
    fn every_path_is_for_this_machine_and_names_without_a_dot() {
        let machine = uname();
        let domain = format!(
            "{}.Prod.example.net:9090",
            machine.nodename().to_str().unwrap().to_uppercase()
        );
        for path in [
            "/metrics",
            "/internal/reset",
            "/internal/tls-allowed?domain=a",
            "/settings/domains",
            "/x",
            "*",
        ] {
            for host in [
                "127.0.0.1",
                "127.0.0.1:9090",
                "[::1]:9090",
                "localhost:9090",
                "petstore:9090",
                "",
            ] {
                assert_eq!(status(path, &[("Host", host)]), 200, "{host} {path}");
            }
            for host in [
                "evil.example:9090",
                "127.0.0.1.evil.example",
                "localhost.evil.example",
                "evil.example.",
            ] {
                assert_eq!(status(path, &[("Host", host)]), 421, "{host} {path}");
            }
            let of_domain = status(path, &[("Host", &domain)]);
            assert_eq!(
                of_domain,
                if path == "/metrics" { 200 } else { 421 },
                "{path}"
            );
        }
    }

    #[test]
    fn no_path_takes_requests_from_pages_of_other_origins() {
        for path in ["/metrics", "/internal/reset", "/settings/api/domains"] {
            let from = |origin| status(path, &[("Host", "127.0.0.1:9090"), ("Origin", origin)]);
            assert_eq!(from("http://127.0.0.1:9090"), 200, "{path}");
            for origin in [
                "http://evil.example",
                "http://127.0.0.1",
                "http://localhost:9090",
                "null",
                "",
                "chrome-extension://x",
            ] {
                assert_eq!(from(origin), 403, "{origin} {path}");
            }
        }
    }

    #[test]
    fn paths_have_their_methods() {
        let allow = |path| route(path).map(|(allow, _)| allow);
        for (path, expected) in [
            ("/metrics", Some(GET)),
            ("/internal/reset", Some(POST)),
            ("/", None),
            ("*", None),
            ("", None),
            ("/metrics/", None),
            ("metrics", None),
        ] {
            assert_eq!(allow(path), expected, "{path}");
        }
    }
}
