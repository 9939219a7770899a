//! The row of the table of operations. Routing, Allow, scopes, lanes, the header fields that the gate forwards, the
//! deprecation header fields and the OpenAPI description all come from it.

use std::borrow::Cow;
use std::sync::OnceLock;

use super::handler::Handler;
use super::parameter::{CONTENT_ENCODING, CONTENT_TYPE, EXPERIMENTAL, HeaderField, Parameter};
use crate::app::endpoint::Code;
use petstore_base::clock::http_date;
use petstore_base::http::{Fields, find_field};
use petstore_base::json::Json;

/// One row of the table.
pub struct Operation {
    /// The path; a segment in braces is a parameter.
    pub path: &'static str,
    /// The number of bytes of the path before its first parameter. This part alone rules out most rows.
    pub literal: usize,
    /// The name of the operation, also in the OpenAPI description (`operationId`).
    pub id: &'static str,
    /// Its handler.
    pub handler: Handler,
    /// A title of a few words, for the pages.
    pub title: &'static str,
    /// A summary in one line, as the specification fixes it for the OpenAPI description.
    pub summary: &'static str,
    /// The text of the OpenAPI description.
    pub about: &'static str,
    /// Its tag in the OpenAPI description; `None` if it is not described there.
    pub tag: Option<&'static Tag>,
    /// The most rows of the database that the handler reads. The gate has a queue for each size of requests, and
    /// chooses it by this number. `None`: not stated, which a test rejects.
    pub rows: Option<u32>,
    /// The parameters that the handler reads. No other header fields reach it.
    pub parameters: &'static [&'static dyn Parameter],
    /// The name of the body's schema in the OpenAPI description; `None`: it reads no body.
    pub body: Option<&'static str>,
    /// The accepted media types of a body. The OpenAPI description names the first, and a body without a Content-Type
    /// counts as such.
    pub media_types: &'static [&'static str],
    /// The successful response; `None` if the operation never succeeds.
    pub success: Option<Success>,
    /// The error codes that this operation adds to the general ones.
    pub codes: &'static [Code],
    /// The message of its 404.
    pub not_found: Option<&'static str>,
    /// The promise to its callers. `None`: not stated, which a test rejects for operations that are described.
    pub stability: Option<Stability>,
    /// Set if the operation will be removed.
    pub deprecation: Option<&'static Deprecation>,
}

/// The media type of a body, unless the row names others.
pub const JSON: &[&str] = &["application/json"];

/// The promise to the callers of an operation (specification, section 9).
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Stability {
    Stable,
    /// It may change, with a notice in the changelog.
    Beta,
    /// It may change or disappear without notice.
    Experimental,
}

impl Stability {
    /// The label in the OpenAPI description and on the pages; a stable operation has none.
    pub fn label(self) -> Option<&'static str> {
        match self {
            Self::Stable => None,
            Self::Beta => Some("beta"),
            Self::Experimental => Some(EXPERIMENTAL),
        }
    }
}

/// A group of operations on the pages. Several groups may have the same tag in the OpenAPI description.
#[derive(Debug, PartialEq)]
pub struct Tag {
    /// Its name in the OpenAPI description.
    pub name: &'static str,
    /// Its name for people.
    pub title: &'static str,
    pub about: &'static str,
}

/// A successful response, for the OpenAPI description.
#[derive(Clone, Copy, Debug)]
pub struct Success {
    pub status: u16,
    pub about: &'static str,
    /// The name of the body's schema in the OpenAPI description; `None`: it has no body.
    pub schema: Option<&'static str>,
    /// The header fields of the response, in addition to the general ones.
    pub headers: &'static [HeaderField],
}

/// The deprecation of an operation. Each of its responses announces it.
#[derive(Debug)]
pub struct Deprecation {
    /// The time of the deprecation, in seconds of Unix time (RFC 9745).
    since: i64,
    /// When it will be removed, in seconds of Unix time (RFC 8594).
    pub sunset: i64,
    /// The path to call instead (`rel="successor-version"`, RFC 5829).
    pub successor: &'static str,
    /// The replacement and how to call it, as sentences whose first words are 'The replacement is'.
    pub replacement: &'static str,
    /// The header fields without a public address, for the OpenAPI description.
    example: OnceLock<Fields>,
}

impl Operation {
    /// A row for an operation that is not described and reads nothing from the request.
    pub const fn new(path: &'static str, id: &'static str, handler: Handler) -> Self {
        Self {
            path,
            literal: literal(path),
            id,
            handler,
            title: "",
            summary: "",
            about: "",
            tag: None,
            rows: None,
            parameters: &[],
            body: None,
            media_types: JSON,
            success: None,
            codes: &[],
            not_found: None,
            stability: None,
            deprecation: None,
        }
    }

    /// The usual message of an error with this code.
    pub fn message(&self, code: Code) -> Cow<'static, str> {
        match self.not_found {
            Some(message) if code == Code::NotFound => message.into(),
            _ if code == Code::UnsupportedMediaType => message_of_media_types(self.media_types),
            _ => code.usual_message(),
        }
    }

    /// The response header field with the accepted media type of a body: `Accept-Patch` for a PATCH (RFC 5789, section
    /// 3.1).
    pub fn accept(&self) -> (&'static str, &'static str) {
        let name = if self.handler.method() == "PATCH" {
            "Accept-Patch"
        } else {
            "Accept"
        };
        (name, self.media_types[0])
    }

    /// Returns the segment of `path` that is the value of a parameter. `path` must match the row.
    pub fn segment<'p>(&self, parameter: &str, path: &'p str) -> Option<&'p str> {
        let (names, values) = (self.path.get(self.literal..)?, path.get(self.literal..)?);
        let mut segments = names.split('/').zip(values.split('/'));
        let is_named = |name: &str| {
            name.strip_prefix('{')?
                .strip_suffix('}')
                .map(|name| name == parameter)
        };
        segments
            .find(|(name, _)| is_named(name) == Some(true))
            .map(|(_, segment)| segment)
    }
}

/// The message of a 415 for a body of another media type.
pub fn message_of_media_types(media_types: &[&'static str]) -> Cow<'static, str> {
    if media_types == JSON {
        return Code::UnsupportedMediaType.usual_message();
    }
    format!("The body must be {}.", media_types.join(" or ")).into()
}

/// The length of a path up to its first parameter.
const fn literal(path: &str) -> usize {
    let mut length = 0;
    while length < path.len() && path.as_bytes()[length] != b'{' {
        length += 1;
    }
    length
}

impl Operation {
    /// Describes its parameters for the OpenAPI description.
    pub fn described(&self) -> impl Iterator<Item = Json> {
        self.parameters.iter().map(|parameter| parameter.describe())
    }

    /// The names of its query parameters.
    pub fn query_parameters(&self) -> impl Iterator<Item = &'static str> {
        let parameters = self.parameters.iter();
        parameters.filter_map(|parameter| parameter.query())
    }

    /// Returns whether it has a query parameter of this name.
    pub fn declares(&self, name: &str) -> bool {
        self.query_parameters().any(|declared| declared == name)
    }

    /// Lists the request header fields that reach the handler.
    pub fn headers(&self) -> impl Iterator<Item = &'static str> {
        let of_body = self
            .body
            .is_some()
            .then_some([CONTENT_TYPE, CONTENT_ENCODING]);
        let declared = self
            .parameters
            .iter()
            .filter_map(|parameter| parameter.header());
        declared.chain(of_body.into_iter().flatten())
    }

    /// The label of its stability, if it has one.
    pub fn label(&self) -> Option<&'static str> {
        self.stability.and_then(Stability::label)
    }

    /// The method; GET stands for HEAD as well.
    pub fn method(&self) -> &'static str {
        self.handler.method()
    }

    /// Returns whether it may change data, so that a read-only key must not call it.
    pub fn writes(&self) -> bool {
        self.method() != "GET"
    }
}

/// The link to the page about deprecated operations (RFC 9745, section 3), at the root of the host like each page.
const ABOUT: &str = "</docs/deprecations>; rel=\"deprecation\"; type=\"text/html\"";

impl Deprecation {
    /// Declares a deprecation. `since` and `sunset` are Unix times in seconds, `successor` is the path to
    /// call instead, and `replacement` explains how.
    pub const fn new(
        since: i64,
        sunset: i64,
        successor: &'static str,
        replacement: &'static str,
    ) -> Self {
        Self {
            since,
            sunset,
            successor,
            replacement,
            example: OnceLock::new(),
        }
    }

    /// The header fields that announce the deprecation. `root` is the public address of the service, or empty.
    pub fn announcement(&self, root: &str) -> Fields {
        let mut fields = Fields::default();
        fields.add("Deprecation", format!("@{}", self.since).as_bytes());
        fields.add(
            "Link",
            format!("<{root}{}>; rel=\"successor-version\"", self.successor).as_bytes(),
        );
        fields.add("Link", ABOUT.as_bytes());
        fields.add("Sunset", http_date(self.sunset).as_bytes());
        fields
    }

    /// The description of these header fields, with their values as examples.
    pub fn fields(&'static self) -> [HeaderField; 3] {
        [
            ("Deprecation", "The time of the deprecation (RFC 9745)."),
            (
                "Link",
                "The operation to call instead (RFC 5829) and, after a comma, the page about deprecations (RFC 9745).",
            ),
            ("Sunset", "The date on which the operation will be removed (RFC 8594)."),
        ]
        .map(|(name, about)| {
            let example = self.example.get_or_init(|| self.announcement(""));
            let value = find_field(&example.lines, name).unwrap_or_default();
            HeaderField { name, about, example: str::from_utf8(value).unwrap_or_default() }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deprecation_is_announced() {
        let deprecation = Deprecation::new(1_795_219_200, 1_922_659_200, "/v1/pets", "");
        for root in ["", "https://pets.example/shop"] {
            assert_eq!(
                String::from_utf8_lossy(&deprecation.announcement(root).lines),
                format!(
                    "Deprecation: @1795219200\r\n\
                     Link: <{root}/v1/pets>; rel=\"successor-version\", \
                     </docs/deprecations>; rel=\"deprecation\"; type=\"text/html\"\r\n\
                     Sunset: Thu, 05 Dec 2030 00:00:00 GMT\r\n"
                )
            );
        }
    }
}
