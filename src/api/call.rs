//! One request on its way to a handler, with the operation that it asks for.

use crate::api::operation::Operation;
use crate::api::parameter::{DefaultedParameter, PathParameter, QueryParameter};
use crate::http::{ApiError, Request, Target};
use crate::json::Schema;

/// What a handler reads a request by. The request is authenticated where the path is below `/v1`.
pub struct Call<'r> {
    pub operation: &'static Operation,
    request: &'r Request<'r>,
    target: Target<'r>,
}

impl<'r> Call<'r> {
    /// A request whose path fits the operation's.
    pub fn new(operation: &'static Operation, request: &'r Request<'r>, target: Target<'r>) -> Self {
        Self { operation, request, target }
    }

    /// The whole path, without percent-encoding where it needs none.
    pub fn whole_path(&self) -> &str {
        &self.target.path
    }

    /// All after the question mark, as sent.
    pub fn raw_query(&self) -> Option<&str> {
        self.target.query
    }

    /// The value of a parameter of the path; `None` where the segment is something else.
    pub fn path<S: Schema>(&self, parameter: &PathParameter<S>) -> Option<S::Value<'static>> {
        let is_it = |segment: &str| {
            segment.strip_prefix('{').and_then(|s| s.strip_suffix('}')) == Some(parameter.name)
        };
        let mut segments = self.operation.path.split('/').zip(self.target.path.split('/'));
        let found = segments.find(|(pattern, _)| is_it(pattern));
        debug_assert!(found.is_some(), "{} has no {{{}}}", self.operation.path, parameter.name);
        self.check_declared(parameter.name);
        found.and_then(|(_, text)| parameter.schema.of_text(text))
    }

    /// The value of a parameter of the query; `None` where it is absent.
    ///
    /// # Errors
    /// Where it is given twice, or is something else.
    pub fn query<S: Schema>(
        &self,
        parameter: &QueryParameter<S>,
    ) -> Result<Option<S::Value<'static>>, ApiError> {
        self.check_declared(parameter.name);
        parameter.read(self.target.query)
    }

    /// The value of a parameter of the query, or its default where it is absent.
    ///
    /// # Errors
    /// Where it is given twice, or is something else.
    pub fn query_or_default<S: Schema<Value<'static>: Clone>>(
        &self,
        parameter: &DefaultedParameter<S>,
    ) -> Result<S::Value<'static>, ApiError> {
        self.check_declared(parameter.parameter.name);
        parameter.read(self.target.query)
    }

    fn check_declared(&self, parameter: &str) {
        let is_declared = self.operation.parameters.iter().any(|declared| declared.name() == parameter);
        debug_assert!(is_declared, "{} does not declare the parameter {parameter}", self.operation.id);
    }

    /// Every value of a header field that the operation's row declares, in the order sent.
    pub fn header_values(&self, name: &str) -> impl Iterator<Item = &'r str> {
        debug_assert!(
            self.operation.headers.contains(&name),
            "{} does not declare {name}",
            self.operation.id
        );
        self.request.header_values(name)
    }

    /// Refuses a body that says of itself that it is no plain JSON.
    ///
    /// # Errors
    /// 415.
    pub fn check_json(&self) -> Result<(), ApiError> {
        self.request.check_json()
    }

    /// The body without any transfer coding.
    pub fn body(&self) -> &'r [u8] {
        self.request.body
    }
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::api::Handler;
    use crate::http::Response;
    use crate::json::{Integer, Text};

    static ID: PathParameter<Integer> = PathParameter { name: "id", about: "", schema: Integer::INT64 };
    static NAME: PathParameter<Text> = PathParameter { name: "name", about: "", schema: Text };

    static DEEP: Operation = Operation {
        parameters: &[&ID, &NAME],
        headers: &["Content-Type"],
        ..Operation::new(
            "/x/{id}/photos/{name}",
            "deep",
            "",
            Handler::Get(|_, _| Ok(Response::new(204, b""))),
        )
    };

    fn with_call<T>(target: &str, ask: impl FnOnce(&Call) -> T) -> T {
        let headers = vec![("content-type", "a"), ("Accept", "b"), ("Content-Type", "c")];
        let request = Request { id: "-", method: "GET", target, headers, body: b"" };
        ask(&Call::new(&DEEP, &request, Target::parse(target)))
    }

    #[test]
    fn parameters_of_the_path_are_found_by_name() {
        with_call("/x/7/photos/%41b?id=9", |call| {
            assert_eq!(call.path(&ID), Some(7));
            assert_eq!(call.path(&NAME).as_deref(), Some("Ab"));
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
