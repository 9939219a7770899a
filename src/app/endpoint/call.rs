//! A request on its way to a handler, together with its operation.

use serde::Serialize;

use super::entity_tag::{ETAG, tagged, unless_known};
use super::operation::{Operation, message_of_media_types};
use super::parameter::{
    ACCEPT_ENCODING, CONTENT_ENCODING, CONTENT_TYPE, HeaderParameter, IF_MATCH, IF_NONE_MATCH,
    PathParameter, QueryParameter,
};
use crate::app::endpoint::{ApiError, Code};
use crate::model::Caller;
use petstore_base::http::{AssetFields, Request, Response, Target, matches_tag, percent};
use petstore_base::json::Schema;

/// A request, as its handler reads it. It is authenticated if its path is under `/v1`.
pub struct Call<'r> {
    /// The operation of the request.
    pub operation: &'static Operation,
    /// Its header fields are read by [`Call::header_values`], and its body by [`Call::json_body`].
    pub request: &'r Request<'r>,
    /// The whole path, and the query as sent.
    pub target: Target<'r>,
    /// The owner of the request's API key; `None` if the request needs no key.
    pub caller: Option<Caller>,
}

impl<'r> Call<'r> {
    /// Returns whether only the head of the response is sent.
    pub fn is_head(&self) -> bool {
        self.request.method == "HEAD"
    }

    /// The value of a path parameter; `None` if the segment is not such a value.
    pub fn path<S: Schema>(&self, parameter: &PathParameter<S>) -> Option<S::Value<'static>> {
        self.check_declared(parameter.name);
        let segment = self.operation.segment(parameter.name, &self.target.path);
        debug_assert!(
            segment.is_some(),
            "{} has no {{{}}}",
            self.operation.path,
            parameter.name
        );
        let segment = segment?;
        if segment.as_bytes().contains(&b'%') {
            return parameter
                .schema
                .of_text(&String::from_utf8_lossy(&percent::decode(segment)));
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

    /// Panics in a debug build if the row does not declare the parameter: it would be missing from the interface
    /// description, and the gate would not forward it.
    fn check_declared(&self, parameter: &str) {
        if cfg!(debug_assertions) {
            let mut declared = self.operation.described();
            let is_declared = declared.any(|declared| *declared["name"] == *parameter);
            assert!(
                is_declared,
                "{} does not declare the parameter {parameter}",
                self.operation.id
            );
        }
    }

    /// All values of a header field that the operation's row declares, in the order sent.
    pub fn header_values(&self, parameter: &HeaderParameter) -> impl Iterator<Item = &'r str> {
        self.check_declared(parameter.name);
        self.request.header_values(parameter.name)
    }

    /// Returns the header fields that select the form of a static document.
    pub fn asset_fields(&self) -> AssetFields<'r> {
        AssetFields {
            accept_encoding: self.header_values(&ACCEPT_ENCODING).collect(),
            if_none_match: self.header_values(&IF_NONE_MATCH).collect(),
        }
    }

    /// Returns the response, or 304 if the client already has it: If-None-Match has its tag.
    pub fn unless_known(&self, response: Response) -> Response {
        unless_known(response, self.header_values(&IF_NONE_MATCH))
    }

    /// Checks the preconditions of a change: the tag of the resource must be in If-Match, and not in If-None-Match, if the
    /// request has them (RFC 9110, section 13.2.2).
    ///
    /// # Errors
    /// 412, if one of them is false.
    pub fn check_match(&self, resource: &impl Serialize) -> Result<(), ApiError> {
        if self.header_values(&IF_MATCH).next().is_none()
            && self.header_values(&IF_NONE_MATCH).next().is_none()
        {
            return Ok(());
        }
        let current = tagged(Response::json(200, resource), None);
        let tag = current.field(ETAG.name).unwrap_or_default();
        let lines: Vec<&str> = self.header_values(&IF_MATCH).collect();
        // Several lines are one list (RFC 9110, section 5.3), in which `*` stands for nothing.
        let tags = lines.join(",");
        if lines.is_empty() || matches_tag(&tags, tag.as_bytes()) {
            return match self.unless_known(current).status {
                304 => Err(ApiError::new(Code::PreconditionFailed)),
                _ => Ok(()),
            };
        }
        // A proxy that compresses makes W/"…" or "…-gzip" of it.
        Err(if tags.contains(tag.trim_matches('"')) {
            let message = format!(
                "The pet is unchanged, but a proxy or the client has altered the ETag in If-Match. Send it as it is, with its \
                 quotes: {tag}."
            );
            ApiError::with_message(Code::PreconditionFailed, message)
        } else {
            ApiError::new(Code::PreconditionFailed)
        })
    }

    /// Returns the body, which has no transfer coding.
    ///
    /// # Errors
    /// 415, if the header fields declare a media type that the row does not have, or a content coding (RFC 9110,
    /// sections 8.3 and 8.4).
    pub fn json_body(&self) -> Result<&'r [u8], ApiError> {
        debug_assert!(
            self.operation.body.is_some(),
            "{} does not declare a body",
            self.operation.id
        );
        let (name, _) = self.operation.accept();
        read_body(self.request, self.operation.media_types, name)
    }
}

/// Returns the body of a request. `accept` is the header field of a 415 with the accepted media type, the first.
///
/// # Errors
/// 415, if the header fields declare a media type that is not accepted, or a content coding (RFC 9110, sections 8.3 and
/// 8.4).
pub fn read_body<'r>(
    request: &Request<'r>,
    media_types: &[&'static str],
    accept: &'static str,
) -> Result<&'r [u8], ApiError> {
    for coding in request
        .header_values(CONTENT_ENCODING)
        .flat_map(|value| value.split(','))
    {
        // An empty element is none (RFC 9110, section 5.6.1.2).
        if !["", "identity"].contains(&&*coding.trim().to_ascii_lowercase()) {
            return Err(ApiError::new(Code::UnsupportedContentEncoding)
                .header("Accept-Encoding", "identity"));
        }
    }
    for value in request.header_values(CONTENT_TYPE) {
        let media_type = value.split(';').next().unwrap_or("").trim();
        if !media_types
            .iter()
            .any(|accepted| accepted.eq_ignore_ascii_case(media_type))
        {
            let message = message_of_media_types(media_types);
            let refused = ApiError::with_message(Code::UnsupportedMediaType, message);
            return Err(refused.header(accept, media_types[0]));
        }
    }
    Ok(request.body)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::app::endpoint::{Router, row};
    use petstore_base::json::{AnyString, Integer};

    static ID: PathParameter<Integer> = PathParameter {
        name: "id",
        about: "",
        schema: Integer::INT64,
    };
    static NAME: PathParameter<AnyString> = PathParameter {
        name: "name",
        about: "",
        schema: AnyString,
    };

    static ACCEPT: HeaderParameter = HeaderParameter::undescribed("Accept");
    static ROUTER: Router = Router(&[&[Operation {
        parameters: &[&ID, &NAME, &ACCEPT],
        ..row("GET", "/x/{id}/photos/{name}", "deep")
    }]]);

    fn with_call<T>(target: &str, ask: impl FnOnce(&Call) -> T) -> T {
        let headers = vec![("accept", "a"), ("If-None-Match", "b"), ("Accept", "c")];
        let request = Request {
            id: "an-id",
            method: "GET",
            target,
            headers,
            body: b"",
        };
        let target = Target::parse(target);
        let operation = ROUTER.route("GET", &target).unwrap();
        ask(&Call {
            operation,
            request: &request,
            target,
            caller: None,
        })
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
            assert_eq!(call.header_values(&ACCEPT).collect::<Vec<_>>(), ["a", "c"]);
        });
    }

    #[test]
    #[should_panic(expected = "deep does not declare the parameter x")]
    fn undeclared_parameter_is_noticed() {
        let undeclared = QueryParameter {
            name: "x",
            about: "",
            schema: AnyString,
        };
        with_call("/x/7/photos/a", |call| drop(call.query(&undeclared)));
    }

    #[test]
    #[should_panic(expected = "deep does not declare the parameter If-None-Match")]
    fn undeclared_header_field_is_noticed() {
        with_call("/x/7/photos/a", |call| {
            drop(call.header_values(&IF_NONE_MATCH));
        });
    }

    #[test]
    #[should_panic(expected = "deep does not declare a body")]
    fn undeclared_body_is_noticed() {
        with_call("/x/7/photos/a", |call| drop(call.json_body()));
    }
}
