//! The settings of the project: the page, and the JSON interface that it works by. Who changes something needs
//! a key of the admin scope; who calls from another site gets nowhere.

use std::borrow::Cow;
use std::net::IpAddr;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::clock::unix_time;
use crate::domains::{Checks, Look, Refusal, RefusalCode};
use crate::http::{ASSET_HEADERS, ApiError, Assets, Code, Request, Response, Target, percent, query};
use crate::json::{Integer, Object, Optional, Required, Text};
use crate::service::Authenticator;
use crate::store::{KeyScope, Reader};

/// Below this path lies the interface.
const API: &str = "/settings/api/";
/// Whether a certificate may be made for a name, for the proxy that makes them.
pub const TLS_ALLOWED: &str = "/internal/tls-allowed";

const NAME: Required<Text> = Required { name: "name", about: "The name of a domain.", schema: Text };
const FROM: Required<Text> = Required { name: "from", about: "A domain of the project.", schema: Text };
const TO: Required<Text> = Required { name: "to", about: "Where its requests are sent.", schema: Text };
const STATUS: Optional<Integer> = Optional {
    name: "status",
    about: "301, 302, 307 or 308.",
    schema: Integer { minimum: 301, maximum: 308 },
};

/// The header fields that it reads.
pub fn header_fields() -> Vec<&'static str> {
    [&["Authorization", "Host", "Origin", "Content-Type", "Content-Encoding"][..], ASSET_HEADERS].concat()
}

/// Answers what concerns the settings.
#[derive(Clone)]
pub struct Settings {
    pub checks: Checks,
    pub assets: Arc<Assets>,
    pub authenticator: Authenticator,
}

/// What a request to the interface asks for: the segments of its path below [`API`].
type Segments<'a> = [&'a str];

impl Settings {
    /// Whether a path is one of these.
    pub fn has(&self, path: &str) -> bool {
        path == TLS_ALLOWED || path.starts_with(API) || self.assets.find(path).is_some()
    }

    /// The response to a request for one of these paths.
    ///
    /// # Errors
    /// Everything that a client does wrong, and what fails.
    pub fn respond(
        &mut self,
        request: &Request,
        target: &Target,
        store: &mut Reader,
    ) -> Result<Response, ApiError> {
        if request.method == "OPTIONS" {
            let is_api = target.path.starts_with(API);
            let allow = if is_api { "GET, HEAD, POST, DELETE, OPTIONS" } else { "GET, HEAD, OPTIONS" };
            return Ok(Response::new(204, b"").header("Allow", allow));
        }
        if target.path == TLS_ALLOWED {
            allow(request, "GET, HEAD, OPTIONS")?;
            return tls_allowed(target, store);
        }
        is_at_home(request)?;
        if let Some(asset) = self.assets.find(&target.path) {
            allow(request, "GET, HEAD, OPTIONS")?;
            let [encoding, tags] =
                ["Accept-Encoding", "If-None-Match"].map(|name| request.header_values(name));
            return Ok(asset.respond(encoding, tags));
        }
        let segments: Vec<&str> = target.path.strip_prefix(API).unwrap_or_default().split('/').collect();
        // A snapshot of now, so that a key that was revoked is not remembered.
        store.begin()?;
        let entered = self.enter(request, store).map(|()| match (&segments[..], request.method) {
            // Without the project's own connection, which may be waiting for a lock.
            (["project"], "GET" | "HEAD") => Some(self.overview(store)),
            _ => None,
        });
        store.end()?;
        entered?.map_or_else(|| self.call(request, &segments), Ok)
    }

    /// Lets a key of the admin scope pass.
    fn enter(&mut self, request: &Request, store: &Reader) -> Result<(), ApiError> {
        let (scope, _) = self.authenticator.authenticate(request, store, unix_time())?;
        if scope == KeyScope::Admin {
            return Ok(());
        }
        let message =
            "The settings need a key of the admin scope; 'petstore key add NAME --admin' makes one.";
        Err(forbidden(message))
    }

    fn overview(&self, store: &Reader) -> Response {
        let shown = self.checks.overview(store).map(|overview| {
            let mut shown = json!(overview);
            for domain in shown["domains"].as_array_mut().into_iter().flatten() {
                domain["isChecking"] = self.is_checking(domain).into();
            }
            Response::json(200, &shown)
        });
        shown.unwrap_or_else(|refusal| refused(&refusal))
    }

    fn call(&self, request: &Request, segments: &Segments) -> Result<Response, ApiError> {
        let mut project = self.checks.project();
        let done = match (segments, request.method) {
            (["domains"], "POST") => {
                let name = body(request, "with 'name'")?.required(&NAME)?;
                project.add(&name).map(|domain| Response::json(201, &domain))
            }
            (["domains", name], "DELETE") => project.remove(&decoded(name)).map(|_| Response::new(204, b"")),
            (["domains", name, "primary"], "POST") => {
                project.set_primary(&decoded(name)).map(|()| Response::new(204, b""))
            }
            (["domains", name, look @ ("verify" | "reverify")], "POST") => {
                let look = if *look == "verify" { Look::Record } else { Look::RecordAndCaa };
                // What is not there need not be looked for.
                project.find(&decoded(name)).and_then(|name| {
                    self.checks.begin(&name, look)?;
                    Ok(Response::json(202, &json!({ "name": name, "isChecking": true })))
                })
            }
            (["redirects"], "POST") => {
                let object = body(request, "with 'from', 'to' and 'status'")?;
                let status = object.optional(&STATUS)?.and_then(|status| u16::try_from(status).ok());
                let (from, to) = (object.required(&FROM)?, object.required(&TO)?);
                let redirect = project.add_redirect(&from, &to, status.unwrap_or(301));
                redirect.map(|redirect| Response::json(201, &redirect))
            }
            (["redirects", from], "DELETE") => {
                project.remove_redirect(&decoded(from)).map(|()| Response::new(204, b""))
            }
            (["project"], _) => return Err(not_allowed("GET, HEAD")),
            (["domains" | "redirects"] | ["domains", _, "primary" | "verify" | "reverify"], _) => {
                return Err(not_allowed("POST"));
            }
            (["domains" | "redirects", _], _) => return Err(not_allowed("DELETE")),
            _ => return Err(ApiError::new(Code::NotFound)),
        };
        Ok(done.unwrap_or_else(|refusal| refused(&refusal)))
    }

    fn is_checking(&self, domain: &Value) -> bool {
        domain["name"].as_str().is_some_and(|name| self.checks.is_checking(name))
    }
}

#[cfg(test)]
impl Settings {
    /// Those of a database, without the page.
    pub fn for_tests(database: &std::path::Path) -> Self {
        let mut config = crate::config::Config { database: database.to_owned(), ..Default::default() };
        config.hosting.platform_host = Some("sites.test".to_owned());
        // Nobody is there.
        config.hosting.resolver = Some(([127, 0, 0, 1], 1).into());
        let project = crate::domains::Project::open(&config).unwrap();
        Self { checks: Checks::new(project), assets: Arc::default(), authenticator: Authenticator::default() }
    }
}

/// 200 for exactly the names that a certificate may be made for.
fn tls_allowed(target: &Target, store: &Reader) -> Result<Response, ApiError> {
    let Some(name) = query::parameter(target.query, "domain")? else {
        let message = "The query parameter 'domain' is missing; it must be the name of a domain.";
        return Err(ApiError::with_message(Code::InvalidParameter, message));
    };
    let name = name.strip_suffix('.').unwrap_or(&name).to_ascii_lowercase();
    match store.project()?.domain(&name)? {
        Some(domain) if domain.state.may_have_certificate() => {
            Ok(Response::json(200, &json!({ "domain": domain.name })))
        }
        _ => Err(ApiError::with_message(Code::NotFound, "This is no verified domain of the project.")),
    }
}

/// Refuses what a page of another site has a browser send: by a name that leads here (DNS rebinding), or from
/// an origin of its own.
fn is_at_home(request: &Request) -> Result<(), ApiError> {
    let host = request.header_values("Host").next().unwrap_or_default();
    let name = match host.rsplit_once(':') {
        Some((name, port)) if port.bytes().all(|b| b.is_ascii_digit()) => name,
        _ => host,
    };
    let bare = name.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')).unwrap_or(name);
    if bare.parse::<IpAddr>().is_err() && !bare.eq_ignore_ascii_case("localhost") {
        let message = "The settings are served at an IP address or localhost only, not by another name.";
        return Err(ApiError::with_message(Code::MisdirectedRequest, message));
    }
    let is_own = |origin: &str| origin.split_once("://").is_some_and(|(_, of)| of.eq_ignore_ascii_case(host));
    if request.header_values("Origin").all(is_own) {
        return Ok(());
    }
    Err(forbidden("The settings take no requests from pages of other origins."))
}

fn allow(request: &Request, methods: &'static str) -> Result<(), ApiError> {
    if matches!(request.method, "GET" | "HEAD") { Ok(()) } else { Err(not_allowed(methods)) }
}

fn forbidden(message: &'static str) -> ApiError {
    ApiError::with_message(Code::InsufficientScope, message).header(
        "WWW-Authenticate",
        "Bearer realm=\"petstore\", error=\"insufficient_scope\", scope=\"admin\"",
    )
}

fn not_allowed(methods: &'static str) -> ApiError {
    ApiError::new(Code::MethodNotAllowed).header("Allow", methods)
}

fn body<'r>(request: &Request<'r>, expected: &str) -> Result<Object<'r>, ApiError> {
    request.check_json()?;
    Ok(Object::parse(request.body, expected)?)
}

/// A segment of a path without its percent-encoding.
fn decoded(segment: &str) -> Cow<'_, str> {
    String::from_utf8_lossy(&percent::decode(segment)).into_owned().into()
}

/// The Error body of a refusal.
fn refused(refusal: &Refusal) -> Response {
    let status = refusal.code.status();
    let body = json!({ "code": refusal.code.as_str(), "message": refusal.message, "status": status });
    let response = Response::json(status, &body);
    if refusal.code == RefusalCode::TooManyChecks { response.header("Retry-After", "5") } else { response }
}
