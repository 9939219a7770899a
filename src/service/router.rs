//! The way from a method and a path to an operation. One table feeds routing, 404, 405 with Allow, HEAD and
//! OPTIONS. Pure: no SQL, no sockets.

use crate::api::{Operation, TABLES};
use crate::http::{ApiError, Code, Response, Target};

/// The methods that RFC 9110 (section 9), RFC 5789 (PATCH) and OpenAPI 3.2 (QUERY) know; any other is 501.
const KNOWN_METHODS: [&str; 10] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"];

/// The tables of every resource.
#[derive(Clone, Copy)]
pub struct Router(pub &'static [&'static [Operation]]);

impl Router {
    /// That of the service.
    pub const SERVICE: Self = Self(TABLES);

    /// Every operation, in the order of the tables.
    pub fn operations(self) -> impl Iterator<Item = &'static Operation> {
        self.0.iter().copied().flatten()
    }

    /// Finds the row for a method and a path.
    ///
    /// # Errors
    /// 501 for a method nobody knows, 404 for an unknown path, 405 with Allow for a known one.
    pub fn route(self, method: &str, target: &Target) -> Result<&'static Operation, ApiError> {
        let wanted = if method == "HEAD" { "GET" } else { method };
        let mut known_path = false;
        for operation in self.operations().filter(|operation| fits(operation.path, &target.path)) {
            if operation.method() == wanted {
                return Ok(operation);
            }
            known_path = true;
        }
        Err(if !KNOWN_METHODS.contains(&method) {
            ApiError::new(Code::NotImplemented)
        } else if known_path {
            ApiError::new(Code::MethodNotAllowed).header("Allow", self.allow(target))
        } else {
            ApiError::new(Code::NotFound)
        })
    }

    /// The answer to OPTIONS: 204 with Allow, for a known path and for the server as a whole (`*`).
    ///
    /// # Errors
    /// 404 for an unknown path.
    pub fn options(self, target: &Target) -> Result<Response, ApiError> {
        let is_known = target.path == "*" || self.operations().any(|row| fits(row.path, &target.path));
        if !is_known {
            return Err(ApiError::new(Code::NotFound));
        }
        Ok(Response::new(204, b"").header("Allow", self.allow(target)))
    }

    /// The methods that a path takes, in the order of the tables.
    fn allow(self, target: &Target) -> String {
        let mut methods = Vec::new();
        for operation in self.operations().filter(|o| target.path == "*" || fits(o.path, &target.path)) {
            for method in [operation.method(), "HEAD"] {
                if (method != "HEAD" || operation.method() == "GET") && !methods.contains(&method) {
                    methods.push(method);
                }
            }
        }
        methods.push("OPTIONS");
        methods.join(", ")
    }
}

/// Whether a path fits a row's, segment by segment: a parameter takes any one segment that is not empty.
fn fits(row: &str, path: &str) -> bool {
    if row == path || !row.contains('{') {
        return row == path;
    }
    let (mut row, mut path) = (row.split('/'), path.split('/'));
    loop {
        match (row.next(), path.next()) {
            (None, None) => return true,
            (Some(expected), Some(segment)) if expected == segment => {}
            (Some(expected), Some(segment)) if is_parameter(expected) && !segment.is_empty() => {}
            _ => return false,
        }
    }
}

fn is_parameter(segment: &str) -> bool {
    segment.starts_with('{')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::api::Handler;
    use crate::service::is_protected;

    fn found(method: &str, path: &str) -> Result<&'static str, ApiError> {
        Router::SERVICE.route(method, &Target::parse(path)).map(|operation| operation.id)
    }

    /// Why rows do not make a table: they are malformed, or a request or a name fits two of them.
    fn flaw(rows: &[&Operation]) -> Option<String> {
        for (i, row) in rows.iter().enumerate() {
            let segments: Vec<&str> = row.path.split('/').skip(1).collect();
            let is_plain =
                |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b));
            let is_segment = |segment: &&str| {
                let inner = segment.strip_prefix('{').and_then(|rest| rest.strip_suffix('}'));
                !inner.unwrap_or(segment).is_empty() && is_plain(inner.unwrap_or(segment))
            };
            let is_path = row.path == "/" || segments.iter().all(is_segment);
            if !row.path.starts_with('/') || !is_path {
                return Some(format!("{} is malformed", row.path));
            }
            if row.id.is_empty() || !row.id.bytes().all(|b| b.is_ascii_alphanumeric()) {
                return Some(format!("{:?} is no id", row.id));
            }
            if row.writes() && !is_protected(&Target::parse(row.path)) {
                return Some(format!("{} writes without a key", row.path));
            }
            for earlier in &rows[..i] {
                if earlier.id == row.id {
                    return Some(format!("{} is there twice", row.id));
                }
                // Two rows meet where each segment of one fits that of the other.
                let others: Vec<&str> = earlier.path.split('/').skip(1).collect();
                let meets = |(a, b): (&&str, &&str)| a == b || is_parameter(a) || is_parameter(b);
                let is_shared = segments.len() == others.len() && segments.iter().zip(&others).all(meets);
                if is_shared && (earlier.method() == row.method() || earlier.path != row.path) {
                    return Some(format!("{} {} meets {}", row.method(), row.path, earlier.path));
                }
            }
        }
        None
    }

    fn get(path: &'static str, id: &'static str) -> Operation {
        Operation::new(path, id, "", Handler::Get(|_, _| Ok(Response::new(204, b""))))
    }

    fn post(path: &'static str, id: &'static str) -> Operation {
        Operation::new(path, id, "", Handler::Post(|_, _| Ok(Box::new(|_| Response::new(204, b"")))))
    }

    #[test]
    fn table_is_sound() {
        assert_eq!(flaw(&Router::SERVICE.operations().collect::<Vec<_>>()), None);
    }

    #[test]
    fn unsound_tables_are_noticed() {
        assert_eq!(
            flaw(&[&get("/v1/a", "a"), &post("/v1/a", "b"), &get("/a/{b}", "c"), &get("/a/{b}/c", "d")]),
            None
        );
        for (rows, said) in [
            ([get("/a", "a"), get("/a", "b")], "meets"),
            ([get("/a/{b}", "a"), get("/a/c", "b")], "meets"),
            ([get("/v1/{b}", "a"), post("/v1/{c}", "b")], "meets"),
            ([get("/{a}/b", "a"), get("/c/{d}", "b")], "meets"),
            ([get("/a", "a"), get("/b", "a")], "twice"),
            ([get("/a", "a"), get("b", "b")], "malformed"),
            ([get("/a", "a"), get("/b/", "b")], "malformed"),
            ([get("/a", "a"), get("/b//c", "b")], "malformed"),
            ([get("/a", "a"), get("/b/{c", "b")], "malformed"),
            ([get("/a", "a"), get("/b/x{c}", "b")], "malformed"),
            ([get("/a", "a"), get("/b/{}", "b")], "malformed"),
            ([get("/a", "a"), get("/b%20", "b")], "malformed"),
            ([get("/a", "a"), get("/b", "")], "no id"),
            ([get("/a", "a"), post("/b", "b")], "without a key"),
        ] {
            let flaw = flaw(&[&rows[0], &rows[1]]);
            assert!(flaw.as_ref().is_some_and(|flaw| flaw.contains(said)), "{:?}: {flaw:?}", rows[1].path);
        }
    }

    #[test]
    fn only_the_orders_are_not_stable() {
        let marked: Vec<_> =
            Router::SERVICE.operations().filter(|o| o.stability.is_some()).map(|o| o.id).collect();
        assert_eq!(marked, ["listOrders"]);
    }

    #[test]
    fn paths_are_matched_by_segments() {
        assert!(fits("/a/{b}/photo", "/a/5/photo"));
        for path in ["/a/5", "/a//photo", "/a/5/photo/", "/a/5/6/photo", "/b/5/photo", "a/5/photo"] {
            assert!(!fits("/a/{b}/photo", path), "{path}");
        }
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
            ["/docs/", "/v1", "/v1/", "/v1/pets/", "/v1/pets/1/2", "//v1/pets", "/v1%2Fpets", "/V1/pets", "*"]
        {
            assert_eq!(found("GET", path).unwrap_err().code(), Code::NotFound, "{path}");
        }
    }

    #[test]
    fn known_paths_say_what_they_take() {
        let error = |method, path| Router::SERVICE.route(method, &Target::parse(path)).err().unwrap();
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
        let allow = |path| Router::SERVICE.options(&Target::parse(path)).unwrap().headers()[0].1.clone();
        assert_eq!(allow("/v1/pets"), "GET, HEAD, POST, OPTIONS");
        assert_eq!(allow("*"), "GET, HEAD, POST, OPTIONS");
        assert_eq!(allow("/healthz"), "GET, HEAD, OPTIONS");
        assert!(Router::SERVICE.options(&Target::parse("/nowhere")).is_err());
    }
}
