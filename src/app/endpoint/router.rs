//! The router: finds the operation for a method and a path. One table decides routes, 404, 405 with Allow, HEAD and
//! OPTIONS. Knows no SQL and no sockets.

use super::operation::{Endpoint, HandlerKind};
use crate::base::http::{ApiError, Code, Response, Target};

/// The methods of RFC 9110 (section 9), RFC 5789 (PATCH) and RFC 10008 (QUERY). Any other is 501.
const KNOWN_METHODS: [&str; 10] =
    ["GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY"];

/// The table of one address: the rows of each of its resources.
pub struct Router<H: 'static>(pub &'static [&'static [Endpoint<H>]]);

impl<H: HandlerKind> Router<H> {
    /// Every operation, in the order of the tables.
    pub fn operations(&self) -> impl Iterator<Item = &'static Endpoint<H>> + use<H> {
        self.0.iter().copied().flatten()
    }

    /// Lists the header fields that the operations declare, and `more`, without duplicates.
    pub fn header_fields(&self, more: &[&'static str]) -> Vec<&'static str> {
        let declared = self.operations().flat_map(Endpoint::headers);
        let mut fields: Vec<_> = declared.chain(more.iter().copied()).collect();
        fields.sort_unstable();
        fields.dedup();
        fields
    }

    /// Finds the row for a method and a path.
    ///
    /// # Errors
    /// 501 for an unknown method, 404 for an unknown path, and 405 with Allow if the path has only other methods.
    pub fn route(&self, method: &str, target: &Target) -> Result<&'static Endpoint<H>, ApiError> {
        let wanted = if method == "HEAD" { "GET" } else { method };
        let mut known_path = false;
        for operation in self.operations() {
            if fits(operation, &target.path) {
                if operation.method() == wanted {
                    return Ok(operation);
                }
                known_path = true;
            }
        }
        Err(if !KNOWN_METHODS.contains(&method) {
            ApiError::new(Code::NotImplemented)
        } else if known_path {
            ApiError::new(Code::MethodNotAllowed).header("Allow", self.allow(target))
        } else {
            ApiError::new(Code::NotFound)
        })
    }

    /// Returns the most database rows that a GET of this path reads; `None` if no operation matches, or its row states
    /// no bound.
    pub fn rows(&self, path: &str) -> Option<u32> {
        self.operations().find(|row| row.method() == "GET" && fits(row, path))?.rows
    }

    /// The response to OPTIONS: 204 with Allow, for a known path and for the server as a whole (`*`), and with
    /// Accept-Patch if the path has a PATCH (RFC 5789, section 3.1).
    ///
    /// # Errors
    /// 404 for an unknown path.
    pub fn options(&self, target: &Target) -> Result<Response, ApiError> {
        let is_known = target.path == "*" || self.operations().any(|row| fits(row, &target.path));
        if !is_known {
            return Err(ApiError::new(Code::NotFound));
        }
        let response = Response::new(204, b"").header("Allow", self.allow(target));
        let patch = self.operations().find(|row| row.method() == "PATCH" && fits(row, &target.path));
        Ok(match patch.map(Endpoint::accept) {
            Some((name, media_type)) => response.header(name, media_type),
            None => response,
        })
    }

    /// Lists the methods of a path, in the order of the tables.
    fn allow(&self, target: &Target) -> String {
        let mut methods = Vec::new();
        for operation in self.operations().filter(|row| target.path == "*" || fits(row, &target.path)) {
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

/// Returns whether a path matches that of a row. A parameter matches one segment that is not empty.
fn fits<H>(row: &Endpoint<H>, path: &str) -> bool {
    let (literal, names) = row.path.split_at(row.literal);
    let Some(rest) = path.strip_prefix(literal) else { return false };
    if names.is_empty() {
        return rest.is_empty();
    }
    let mut segments = rest.split('/');
    let mut meets =
        |name: &str| segments.next().is_some_and(|s| name == s || (name.starts_with('{') && !s.is_empty()));
    names.split('/').all(&mut meets) && segments.next().is_none()
}

#[cfg(test)]
pub mod tests {
    use super::*;

    /// A handler for tests: just a method.
    impl HandlerKind for &'static str {
        fn method(&self) -> &'static str {
            self
        }
    }

    /// Returns the flaw of a table: a malformed row, a duplicate name, or two rows that match the same
    /// request.
    pub fn flaw<H: HandlerKind>(rows: &[&Endpoint<H>]) -> Option<String> {
        for (i, row) in rows.iter().enumerate() {
            let segments: Vec<&str> = row.path.split('/').skip(1).collect();
            let is_plain =
                |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~".contains(&b));
            let is_parameter = |segment: &str| segment.starts_with('{');
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
            for earlier in &rows[..i] {
                if earlier.id == row.id {
                    return Some(format!("{} is there twice", row.id));
                }
                // Two rows collide if each segment of one matches that of the other.
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

    const fn row(method: &'static str, path: &'static str, id: &'static str) -> Endpoint<&'static str> {
        Endpoint::new(path, id, method)
    }

    const fn get(path: &'static str, id: &'static str) -> Endpoint<&'static str> {
        row("GET", path, id)
    }

    const ROUTER: Router<&str> = Router(&[
        &[get("/v1/pets", "list"), row("POST", "/v1/pets", "create"), get("/v1/pets/{id}", "get")],
        &[get("/v1/store/orders", "orders"), get("/", "root")],
        &[row("DELETE", "/v1/photos/{name}/of/{id}", "remove")],
    ]);

    fn found(method: &str, path: &str) -> Result<&'static str, Code> {
        let route = ROUTER.route(method, &Target::parse(path));
        route.map(|operation| operation.id).map_err(|error| error.code)
    }

    #[test]
    fn sound_tables_have_no_flaw() {
        assert_eq!(flaw(&ROUTER.operations().collect::<Vec<_>>()), None);
        assert_eq!(flaw(&[&get("/a/{b}", "c"), &get("/a/{b}/c", "d")]), None);
    }

    #[test]
    fn unsound_tables_are_noticed() {
        for (rows, said) in [
            ([get("/a", "a"), get("/a", "b")], "meets"),
            ([get("/a/{b}", "a"), get("/a/c", "b")], "meets"),
            ([get("/v1/{b}", "a"), row("POST", "/v1/{c}", "b")], "meets"),
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
        ] {
            let flaw = flaw(&[&rows[0], &rows[1]]);
            assert!(flaw.as_ref().is_some_and(|flaw| flaw.contains(said)), "{:?}: {flaw:?}", rows[1].path);
        }
    }

    #[test]
    fn paths_are_matched_by_segments() {
        for path in ["/a/5/photo", "/a/{b}/photo", "/a/%2F/photo"] {
            assert!(fits(&get("/a/{b}/photo", ""), path), "{path}");
        }
        for path in
            ["/a/5", "/a//photo", "/a/5/photo/", "/a/5/photos", "/a/5/6/photo", "/b/5/photo", "a/5/photo", ""]
        {
            assert!(!fits(&get("/a/{b}/photo", ""), path), "{path}");
        }
    }

    #[test]
    fn parameters_are_captured() {
        let path = "/v1/photos/a.png/of/7";
        let operation = ROUTER.route("DELETE", &Target::parse(path)).unwrap();
        assert_eq!(operation.segment("name", path), Some("a.png"));
        assert_eq!(operation.segment("id", path), Some("7"));
        assert_eq!(operation.segment("x", path), None);
    }

    #[test]
    fn rows_are_found() {
        assert_eq!(found("GET", "/v1/pets?limit=1"), Ok("list"));
        assert_eq!(found("HEAD", "/v1/pets"), Ok("list"));
        assert_eq!(found("POST", "/v1/pets"), Ok("create"));
        assert_eq!(found("GET", "/v1/p%65ts/%31"), Ok("get"));
        assert_eq!(found("GET", "/v1/store/orders"), Ok("orders"));
        assert_eq!(found("GET", "/"), Ok("root"));
    }

    #[test]
    fn unknown_paths_are_404() {
        for path in
            ["/docs/", "/v1", "/v1/", "/v1/pets/", "/v1/pets/1/2", "//v1/pets", "/v1%2Fpets", "/V1/pets", "*"]
        {
            assert_eq!(found("GET", path), Err(Code::NotFound), "{path}");
        }
    }

    #[test]
    fn known_paths_say_what_they_take() {
        let error = |method, path| ROUTER.route(method, &Target::parse(path)).err().unwrap();
        let refused = |allow: &'static str| ApiError::new(Code::MethodNotAllowed).header("Allow", allow);
        assert_eq!(error("DELETE", "/v1/pets"), refused("GET, HEAD, POST, OPTIONS"));
        assert_eq!(error("POST", "/v1/pets/1"), refused("GET, HEAD, OPTIONS"));
    }

    #[test]
    fn unknown_methods_are_501_everywhere() {
        for path in ["/v1/pets", "/nowhere"] {
            assert_eq!(found("BREW", path), Err(Code::NotImplemented));
            assert_eq!(found("get", path), Err(Code::NotImplemented));
        }
    }

    #[test]
    fn options_lists_the_methods() {
        let allow = |path| ROUTER.options(&Target::parse(path)).unwrap().field("Allow").map(str::to_owned);
        assert_eq!(allow("/v1/pets").as_deref(), Some("GET, HEAD, POST, OPTIONS"));
        assert_eq!(allow("*").as_deref(), Some("GET, HEAD, POST, DELETE, OPTIONS"));
        assert_eq!(allow("/v1/photos/a/of/b").as_deref(), Some("DELETE, OPTIONS"));
        assert!(ROUTER.options(&Target::parse("/nowhere")).is_err());
    }
}
