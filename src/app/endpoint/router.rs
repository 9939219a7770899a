//! The router: finds the operation for a method and a path. One table decides routes, 404, 405 with Allow, HEAD and
//! OPTIONS. Knows no SQL and no sockets.

use super::operation::Operation;
use crate::app::endpoint::{ApiError, Code};
use petstore_base::http::{Response, Target};

/// The methods of RFC 9110 (section 9), RFC 5789 (PATCH) and RFC 10008 (QUERY). Any other is 501.
const KNOWN_METHODS: [&str; 10] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "CONNECT", "OPTIONS", "TRACE", "PATCH", "QUERY",
];

/// The table: the rows of each resource.
pub struct Router(pub &'static [&'static [Operation]]);

impl Router {
    /// Every operation, in the order of the tables.
    pub fn operations(&self) -> impl Iterator<Item = &'static Operation> + use<> {
        self.0.iter().copied().flatten()
    }

    /// Lists the header fields that the operations declare, and `more`, without duplicates.
    pub fn header_fields(&self, more: &[&'static str]) -> Vec<&'static str> {
        let declared = self.operations().flat_map(Operation::headers);
        let mut fields: Vec<_> = declared.chain(more.iter().copied()).collect();
        fields.sort_unstable();
        fields.dedup();
        fields
    }

    /// Finds the row for a method and a path.
    ///
    /// # Errors
    /// 501 for an unknown method, 404 for an unknown path, and 405 with Allow if the path has only other methods.
    pub fn route(&self, method: &str, target: &Target) -> Result<&'static Operation, ApiError> {
        let wanted = if method == "HEAD" { "GET" } else { method };
        self.find(wanted, &target.path).ok_or_else(|| {
            let allow = self.allow(|row| fits(row, &target.path));
            unserved(method, allow.as_deref())
        })
    }

    /// Returns the most database rows that a GET of this path reads; `None` if no operation matches, or its row states
    /// no bound.
    pub fn rows(&self, path: &str) -> Option<u32> {
        self.find("GET", path)?.rows
    }

    /// The response to OPTIONS: 204 with Allow, for a known path and for the server as a whole (`*`), and with
    /// Accept-Patch if the path has a PATCH (RFC 5789, section 3.1).
    ///
    /// # Errors
    /// 404 for an unknown path.
    pub fn options(&self, target: &Target) -> Result<Response, ApiError> {
        let allow = self
            .allow(|row| target.path == "*" || fits(row, &target.path))
            .ok_or_else(|| ApiError::new(Code::NotFound))?;
        let response = Response::new(204, b"").header("Allow", allow);
        let patch = self.find("PATCH", &target.path);
        Ok(match patch.map(Operation::accept) {
            Some((name, media_type)) => response.header(name, media_type),
            None => response,
        })
    }

    fn find(&self, method: &str, path: &str) -> Option<&'static Operation> {
        self.operations()
            .find(|row| row.method() == method && fits(row, path))
    }

    /// Lists the methods of these rows, in the order of the tables; `None` if there are no rows.
    fn allow(&self, is_listed: impl Fn(&Operation) -> bool) -> Option<String> {
        let mut methods = Vec::new();
        for operation in self.operations().filter(|row| is_listed(row)) {
            for method in [operation.method(), "HEAD"] {
                if (method != "HEAD" || operation.method() == "GET") && !methods.contains(&method) {
                    methods.push(method);
                }
            }
        }
        if methods.is_empty() {
            return None;
        }
        methods.push("OPTIONS");
        Some(methods.join(", "))
    }
}

/// The error of a request that no operation takes. `allow` are the methods of its path; `None`: the path is unknown.
pub fn unserved(method: &str, allow: Option<&str>) -> ApiError {
    if !KNOWN_METHODS.contains(&method) {
        return ApiError::new(Code::NotImplemented);
    }
    match allow {
        Some(allow) => ApiError::new(Code::MethodNotAllowed).header("Allow", allow),
        None => ApiError::new(Code::NotFound),
    }
}

/// Returns whether a path matches that of a row. A parameter matches one segment that is not empty.
fn fits(row: &Operation, path: &str) -> bool {
    let (literal, names) = row.path.split_at(row.literal);
    let Some(rest) = path.strip_prefix(literal) else {
        return false;
    };
    if names.is_empty() {
        return rest.is_empty();
    }
    let mut segments = rest.split('/');
    let mut meets = |name: &str| {
        segments
            .next()
            .is_some_and(|s| name == s || (name.starts_with('{') && !s.is_empty()))
    };
    names.split('/').all(&mut meets) && segments.next().is_none()
}

#[cfg(test)]
pub mod tests;
