//! The table of operations, and the way from a method and a path to one of them.
//!
//! One table feeds routing, 404, 405 with Allow, HEAD, OPTIONS, the deprecation headers and the
//! interface description, so that nothing is said twice. Pure: no SQL, no sockets.
//!
//! To add a resource: write its handlers in `src/api/`, and give each a row here.

use std::borrow::Cow;

use crate::api::{self, Context};
use crate::http::{ApiError, Code};
use crate::http::{Request, Response};

/// What answers an operation. Its request is authenticated where the path is below `/v1`.
pub type Handler = fn(&mut Context, &Request, &Target) -> Result<Response, ApiError>;

/// One row of the table.
pub struct Operation {
    /// The method; GET stands for HEAD as well.
    pub method: &'static str,
    /// The path, with at most one parameter, in braces and last.
    pub path: &'static str,
    /// The operation's name, here and in the interface description (`operationId`).
    pub id: &'static str,
    /// `x-stability` in the interface description; `None`: stable.
    #[cfg_attr(not(test), expect(dead_code, reason = "nothing reads it before there is a description"))]
    pub stability: Option<Stability>,
    /// Whether the operation writes; a read-only key may not call it then.
    pub writes: bool,
    /// Where the operation is on its way out.
    pub deprecation: Option<Deprecation>,
    /// What answers it.
    pub handler: Handler,
}

/// A stability mark below stable (specification, section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stability {
    /// May change or go without notice.
    Experimental,
}

/// The end of an operation's life, as its answers announce it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deprecation {
    /// Deprecated since then: Unix time, seconds (RFC 9745).
    pub since: i64,
    /// To be removed on this day, UTC (RFC 8594).
    pub sunset: jiff::civil::Date,
    /// The path to call instead (`rel="successor-version"`, RFC 5829).
    pub successor: &'static str,
}

const STABLE: Operation = Operation {
    method: "GET",
    path: "",
    id: "",
    stability: None,
    writes: false,
    deprecation: None,
    handler: api::health::check,
};

/// Every operation of the service.
pub static OPERATIONS: &[Operation] = &[
    Operation { method: "GET", path: "/v1/pets", id: "listPets", handler: api::pets::list, ..STABLE },
    Operation {
        method: "POST",
        path: "/v1/pets",
        id: "createPet",
        writes: true,
        handler: api::pets::create,
        ..STABLE
    },
    Operation {
        method: "GET",
        path: "/v1/pets/{petId}",
        id: "getPet",
        deprecation: Some(Deprecation {
            // 21 November 2026, midnight UTC.
            since: 1_795_219_200,
            sunset: jiff::civil::date(2030, 12, 5),
            successor: "/v1/pets",
        }),
        handler: api::pets::get,
        ..STABLE
    },
    Operation {
        method: "GET",
        path: "/v1/store/orders",
        id: "listOrders",
        stability: Some(Stability::Experimental),
        handler: api::orders::list,
        ..STABLE
    },
    Operation { method: "GET", path: "/healthz", id: "checkHealth", handler: api::health::check, ..STABLE },
];

/// The methods that RFC 9110 (section 9), RFC 5789 (PATCH) and `OpenAPI` 3.2 (QUERY) know; any other is 501.
const KNOWN_METHODS: [&str; 10] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"];

/// A request target taken apart: what handlers read from it.
pub struct Target<'a> {
    /// The path, with unreserved characters decoded.
    pub path: Cow<'a, str>,
    /// All after the question mark, as sent.
    pub query: Option<&'a str>,
}

impl<'a> Target<'a> {
    /// Takes a target in origin form apart.
    pub fn parse(target: &'a str) -> Self {
        let (path, query) = crate::http::target::split(target);
        Self { path: crate::http::target::normalize_path(path), query }
    }

    /// The last segment of the path: the parameter of a row that has one.
    pub fn parameter(&self) -> &str {
        self.path.rsplit('/').next().unwrap_or("")
    }

    /// Whether a key is asked for before anything else is looked at.
    pub fn is_protected(&self) -> bool {
        self.path.strip_prefix("/v1").is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Finds the row for a method and a path.
///
/// # Errors
/// 501 for a method nobody knows, 404 for an unknown path, 405 with Allow for a known one.
pub fn route(method: &str, target: &Target) -> Result<&'static Operation, ApiError> {
    if !KNOWN_METHODS.contains(&method) {
        return Err(ApiError::new(Code::NotImplemented));
    }
    let wanted = if method == "HEAD" { "GET" } else { method };
    let mut known_path = false;
    for operation in OPERATIONS {
        if matches(operation.path, &target.path) {
            if operation.method == wanted {
                return Ok(operation);
            }
            known_path = true;
        }
    }
    Err(if known_path {
        ApiError::new(Code::MethodNotAllowed).header("Allow", allow(target))
    } else {
        ApiError::new(Code::NotFound)
    })
}

/// The answer to OPTIONS: 204 with Allow, for a known path and for the server as a whole (`*`).
///
/// # Errors
/// 404 for an unknown path.
pub fn options(target: &Target) -> Result<Response, ApiError> {
    let known = target.path == "*" || OPERATIONS.iter().any(|o| matches(o.path, &target.path));
    if !known {
        return Err(ApiError::new(Code::NotFound));
    }
    Ok(Response { status: 204, ..Response::default() }.header("Allow", allow(target)))
}

/// The methods that a path takes, in the order of the table.
fn allow(target: &Target) -> String {
    let mut methods = Vec::new();
    for operation in OPERATIONS {
        if target.path == "*" || matches(operation.path, &target.path) {
            methods.push(operation.method);
            if operation.method == "GET" {
                methods.push("HEAD");
            }
        }
    }
    methods.push("OPTIONS");
    let mut listed = String::new();
    for (i, method) in methods.iter().enumerate() {
        if !methods[..i].contains(method) {
            if !listed.is_empty() {
                listed.push_str(", ");
            }
            listed.push_str(method);
        }
    }
    listed
}

/// Whether a path fits a row's: the same, or the same up to a parameter of one segment.
fn matches(row: &str, path: &str) -> bool {
    match row.split_once('{') {
        None => row == path,
        Some((fixed, _)) => path
            .strip_prefix(fixed)
            .is_some_and(|parameter| !parameter.is_empty() && !parameter.contains('/')),
    }
}

impl Deprecation {
    /// Adds the three header fields that announce it.
    pub fn announce(&self, response: &mut Response) {
        let midnight = self.sunset.at(0, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC);
        let printer = jiff::fmt::rfc2822::DateTimePrinter::new();
        if let Ok(sunset) = midnight.and_then(|at| printer.timestamp_to_rfc9110_string(&at.timestamp())) {
            response.headers.push(("Sunset", sunset.into()));
        }
        response.headers.push(("Deprecation", format!("@{}", self.since).into()));
        let link = format!("<{}>; rel=\"successor-version\"", self.successor);
        response.headers.push(("Link", link.into()));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(method: &str, path: &str) -> Result<&'static str, ApiError> {
        route(method, &Target::parse(path)).map(|operation| operation.id)
    }

    #[test]
    fn only_the_orders_are_not_stable() {
        let marked: Vec<_> = OPERATIONS.iter().filter_map(|o| o.stability.map(|mark| (o.id, mark))).collect();
        assert_eq!(marked, [("listOrders", Stability::Experimental)]);
    }

    #[test]
    fn rows_are_found() {
        assert_eq!(found("GET", "/v1/pets?limit=1"), Ok("listPets"));
        assert_eq!(found("HEAD", "/v1/pets"), Ok("listPets"));
        assert_eq!(found("POST", "/v1/pets"), Ok("createPet"));
        assert_eq!(found("GET", "/v1/p%65ts/%31"), Ok("getPet"));
        assert_eq!(found("GET", "/v1/store/orders"), Ok("listOrders"));
        assert_eq!(found("GET", "/healthz"), Ok("checkHealth"));
    }

    #[test]
    fn unknown_paths_are_404() {
        for path in
            ["/", "/v1", "/v1/", "/v1/pets/", "/v1/pets/1/2", "//v1/pets", "/v1%2Fpets", "/V1/pets", "*"]
        {
            assert_eq!(found("GET", path).unwrap_err().code(), Code::NotFound, "{path}");
        }
    }

    #[test]
    fn known_paths_say_what_they_take() {
        let error = |method, path| route(method, &Target::parse(path)).err().unwrap();
        let refused = |allow: &'static str| ApiError::new(Code::MethodNotAllowed).header("Allow", allow);
        assert_eq!(error("DELETE", "/v1/pets"), refused("GET, HEAD, POST, OPTIONS"));
        assert_eq!(error("POST", "/v1/pets/1"), refused("GET, HEAD, OPTIONS"));
    }

    #[test]
    fn unknown_methods_are_501_everywhere() {
        for path in ["/v1/pets", "/nowhere"] {
            assert_eq!(found("BREW", path).unwrap_err().code(), Code::NotImplemented);
            assert_eq!(found("get", path).unwrap_err().code(), Code::NotImplemented);
        }
    }

    #[test]
    fn options_lists_the_methods() {
        let allow = |path| options(&Target::parse(path)).unwrap().headers[0].1.clone();
        assert_eq!(allow("/v1/pets"), "GET, HEAD, POST, OPTIONS");
        assert_eq!(allow("*"), "GET, HEAD, POST, OPTIONS");
        assert_eq!(allow("/healthz"), "GET, HEAD, OPTIONS");
        assert!(options(&Target::parse("/nowhere")).is_err());
    }

    #[test]
    fn everything_below_v1_is_protected() {
        for path in ["/v1", "/v1/", "/v1/pets", "/v1/nowhere", "/%761/pets", "/v%31"] {
            assert!(Target::parse(path).is_protected(), "{path}");
        }
        for path in ["/", "/healthz", "/v10/pets", "/v1%2Fpets", "*"] {
            assert!(!Target::parse(path).is_protected(), "{path}");
        }
    }

    #[test]
    fn deprecation_is_announced() {
        let mut response = Response::default();
        OPERATIONS.iter().find_map(|o| o.deprecation).unwrap().announce(&mut response);
        assert_eq!(
            response.headers,
            [
                ("Sunset", "Thu, 05 Dec 2030 00:00:00 GMT".into()),
                ("Deprecation", "@1795219200".into()),
                ("Link", "</v1/pets>; rel=\"successor-version\"".into()),
            ]
        );
    }
}
