//! A request on its way to a handler, together with its operation.

use super::operation::Operation;
use super::parameter::{PathParameter, QueryParameter};
use crate::base::http::{ASSET_HEADERS, ApiError, Code, Request, Target, percent};
use crate::base::json::Schema;
use crate::model::Caller;

/// A request, as its handler reads it.
pub struct Call<'r, H: 'static> {
    /// The operation of the request.
    pub operation: &'static Operation<H>,
    /// Its header fields are read by [`Call::header_values`], and its body by [`Call::json_body`].
    pub request: &'r Request<'r>,
    /// The whole path, and the query as sent.
    pub target: Target<'r>,
    /// Who sends the request; `None` if it needs no key.
    pub caller: Option<Caller>,
}

impl<'r, H> Call<'r, H> {
    /// Joins a request to the operation of its target. Nobody is its caller yet.
    pub fn new(operation: &'static Operation<H>, request: &'r Request<'r>, target: Target<'r>) -> Self {
        Self { operation, request, target, caller: None }
    }

    /// Whether the body of the response is not asked for.
    pub fn is_head(&self) -> bool {
        self.request.method == "HEAD"
    }

    /// The value of a path parameter; `None` if the segment is not such a value.
    pub fn path<S: Schema>(&self, parameter: &PathParameter<S>) -> Option<S::Value<'static>> {
        self.check_declared(parameter.name);
        let segment = self.operation.segment(parameter.name, &self.target.path);
        debug_assert!(segment.is_some(), "{} has no {{{}}}", self.operation.path, parameter.name);
        let segment = segment?;
        if segment.as_bytes().contains(&b'%') {
            return parameter.schema.of_text(&String::from_utf8_lossy(&percent::decode(segment)));
        }
        parameter.schema.of_text(segment)
    }

    /// The value of a query parameter; `None` if it is absent.
    ///
    /// # Errors
    /// 400, if it is given twice or has a wrong value.
    pub fn query<S: Schema>(
        &self,
        parameter: &QueryParameter<S>,
    ) -> Result<Option<S::Value<'static>>, ApiError> {
        self.check_declared(parameter.name);
        parameter.read(self.target.query)
    }

    /// Catches a parameter that the row does not declare, which the interface description would lack.
    fn check_declared(&self, parameter: &str) {
        if cfg!(debug_assertions) {
            let mut declared = self.operation.parameters.iter().map(|declared| declared.describe());
            let is_declared = declared.any(|declared| declared["name"] == parameter);
            assert!(is_declared, "{} does not declare the parameter {parameter}", self.operation.id);
        }
    }

    /// All values of a header field that the operation's row declares, in the order sent.
    pub fn header_values(&self, name: &str) -> impl Iterator<Item = &'r str> {
        if cfg!(debug_assertions) {
            let is_declared = self.operation.headers.contains(&name);
            assert!(is_declared, "{} does not declare {name}", self.operation.id);
        }
        self.request.header_values(name)
    }

    /// The values of [`ASSET_HEADERS`].
    pub fn asset_fields(&self) -> [impl Iterator<Item = &'r str>; 2] {
        ASSET_HEADERS.map(|name| self.header_values(name))
    }

    /// The body without any transfer coding, unless the header fields declare something other than plain JSON (RFC
    /// 9110, sections 8.3 and 8.4).
    ///
    /// # Errors
    /// 415.
    pub fn json_body(&self) -> Result<&'r [u8], ApiError> {
        for coding in self.request.header_values("Content-Encoding").flat_map(|value| value.split(',')) {
            // An empty element is none (RFC 9110, section 5.6.1.2).
            if !["", "identity"].contains(&&*coding.trim().to_ascii_lowercase()) {
                return Err(
                    ApiError::new(Code::UnsupportedContentEncoding).header("Accept-Encoding", "identity")
                );
            }
        }
        for value in self.request.header_values("Content-Type") {
            let media_type = value.split(';').next().unwrap_or("").trim();
            if !media_type.eq_ignore_ascii_case("application/json") {
                return Err(ApiError::new(Code::UnsupportedMediaType).header("Accept", "application/json"));
            }
        }
        Ok(self.request.body)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::endpoint::Router;
    use crate::base::json::{Integer, Text};

    static ID: PathParameter<Integer> = PathParameter { name: "id", about: "", schema: Integer::INT64 };
    static NAME: PathParameter<Text> = PathParameter { name: "name", about: "", schema: Text };

    static ROUTER: Router<&str> = Router(&[&[Operation {
        parameters: &[&ID, &NAME],
        headers: &["Content-Type"],
        ..Operation::new("/x/{id}/photos/{name}", "deep", "GET")
    }]]);

    fn with_call<T>(target: &str, ask: impl FnOnce(&Call<&str>) -> T) -> T {
        let headers = vec![("content-type", "a"), ("Accept", "b"), ("Content-Type", "c")];
        let request = Request { id: "an-id", method: "GET", target, headers, body: b"" };
        let target = Target::parse(target);
        ask(&Call::new(ROUTER.route("GET", &target).unwrap(), &request, target))
    }

    #[test]
    fn parameters_of_the_path_are_found_by_name() {
        with_call("/x/7/photos/%41b?id=9", |call| {
            assert_eq!(call.path(&ID), Some(7));
            assert_eq!(call.path(&NAME).as_deref(), Some("Ab"));
        });
        with_call("/x/%37/photos/a%2Fb%20", |call| {
            assert_eq!(call.path(&NAME).as_deref(), Some("a/b "));
        });
        with_call("/x/seven/photos/a", |call| assert_eq!(call.path(&ID), None));
    }

    #[test]
    fn declared_header_fields_can_be_read() {
        with_call("/x/7/photos/a", |call| {
            assert_eq!(call.header_values("Content-Type").collect::<Vec<_>>(), ["a", "c"]);
        });
    }

    #[test]
    #[should_panic(expected = "deep does not declare the parameter x")]
    fn undeclared_parameter_is_noticed() {
        let undeclared = QueryParameter { name: "x", about: "", schema: Text };
        with_call("/x/7/photos/a", |call| drop(call.query(&undeclared)));
    }

    #[test]
    #[should_panic(expected = "deep does not declare Accept")]
    fn undeclared_header_field_is_noticed() {
        with_call("/x/7/photos/a", |call| drop(call.header_values("Accept")));
    }
}
