//! The row of a table of operations. It feeds routing, Allow, scopes, lanes, the header fields that the gate
//! passes on, the deprecation header fields and the interface description, so that nothing is said twice.

use std::sync::OnceLock;

use super::parameter::Parameter;
use crate::clock::http_date;
use crate::http::{Code, Response};

/// What answers an operation. Each address has a type of its own, whose value decides the method.
pub trait Handler {
    /// The method; GET stands for HEAD as well.
    fn method(&self) -> &'static str;
}

/// One row of a table, with a handler of type `H`.
pub struct Operation<H> {
    /// The path; a segment in braces is a parameter.
    pub path: &'static str,
    /// How many bytes of the path come before its first parameter, so that most rows are told apart by them.
    pub literal: usize,
    /// The operation's name, here and in the interface description (`operationId`).
    pub id: &'static str,
    /// What answers it.
    pub handler: H,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What more there is to know, for the interface description.
    pub about: &'static str,
    /// What the interface description lists it under; `None` if the operation is not described.
    pub tag: Option<&'static Tag>,
    /// The parameters that the handler reads.
    pub parameters: &'static [&'static dyn Parameter],
    /// The header fields that the handler reads; no other reaches it.
    pub headers: &'static [&'static str],
    /// The schema of the body that it takes, by its name in the interface description.
    pub body: Option<&'static str>,
    /// What a success looks like; `None` where there is none.
    pub success: Option<Success>,
    /// Why it refuses what every operation takes.
    pub codes: &'static [Code],
    /// `x-stability` in the interface description; `None`: stable.
    pub stability: Option<Stability>,
    /// Set if the operation is to be removed.
    pub deprecation: Option<&'static Deprecation>,
}

/// A group of operations in the interface description.
#[derive(Debug, PartialEq)]
pub struct Tag {
    pub name: &'static str,
    pub about: &'static str,
}

/// A success, for the interface description.
#[derive(Clone, Copy, Debug)]
pub struct Success {
    pub status: u16,
    pub about: &'static str,
    /// The schema of the body, by its name in the interface description.
    pub schema: &'static str,
    /// The header fields that it may have beside the general ones.
    pub headers: &'static [HeaderField],
}

/// A header field of a response, for the interface description.
#[derive(Clone, Copy, Debug)]
pub struct HeaderField {
    pub name: &'static str,
    pub about: &'static str,
    pub example: &'static str,
}

/// A stability mark below stable (specification, section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stability {
    /// May change or go without notice.
    Experimental,
}

impl Stability {
    /// The word in the interface description.
    pub const fn as_str(self) -> &'static str {
        match self {
            Stability::Experimental => "experimental",
        }
    }
}

/// The end of an operation's life, which each of its responses announces.
#[derive(Debug)]
pub struct Deprecation {
    /// Deprecated since then: Unix time, seconds (RFC 9745).
    since: i64,
    /// To be removed then: Unix time, seconds (RFC 8594).
    pub sunset: i64,
    /// The path to call instead (`rel="successor-version"`, RFC 5829).
    pub successor: &'static str,
    /// how to call it, to follow on the path in the interface description.
    pub how: &'static str,
    /// Printed once, not for each response.
    values: OnceLock<[String; 3]>,
}

impl<H> Operation<H> {
    /// A stable row whose handler reads nothing of the request.
    pub const fn new(path: &'static str, id: &'static str, summary: &'static str, handler: H) -> Self {
        Self {
            path,
            literal: literal(path),
            id,
            handler,
            summary,
            about: "",
            tag: None,
            parameters: &[],
            headers: &[],
            body: None,
            success: None,
            codes: &[],
            stability: None,
            deprecation: None,
        }
    }

    /// Adds the header fields that every response of the operation has.
    pub fn announce(&self, response: Response) -> Response {
        match self.deprecation {
            Some(deprecation) => deprecation.announce(response),
            None => response,
        }
    }
}

/// The length of a path up to its first parameter.
const fn literal(path: &str) -> usize {
    let mut length = 0;
    while length < path.len() && path.as_bytes()[length] != b'{' {
        length += 1;
    }
    length
}

impl<H: Handler> Operation<H> {
    /// The method; GET stands for HEAD as well.
    pub fn method(&self) -> &'static str {
        self.handler.method()
    }

    /// Whether it may change something, so that a read-only key may not call it.
    pub fn writes(&self) -> bool {
        self.method() != "GET"
    }
}

impl Deprecation {
    /// `since` and `sunset` in Unix time, seconds; `successor` is the path to call instead, and `how` says how.
    pub const fn new(since: i64, sunset: i64, successor: &'static str, how: &'static str) -> Self {
        Self { since, sunset, successor, how, values: OnceLock::new() }
    }

    fn announce(&'static self, response: Response) -> Response {
        self.fields()
            .into_iter()
            .fold(response, |response, (field, value)| response.header(field.name, value))
    }

    /// The header fields that announce it, and their values.
    pub fn fields(&self) -> [(HeaderField, &str); 3] {
        let [since, successor, sunset] = self.values.get_or_init(|| {
            [
                format!("@{}", self.since),
                format!("<{}>; rel=\"successor-version\"", self.successor),
                http_date(self.sunset),
            ]
        });
        [(DEPRECATION, since), (SUCCESSOR, successor), (SUNSET, sunset)]
    }
}

const DEPRECATION: HeaderField = HeaderField {
    name: "Deprecation",
    about: "Since when the operation is deprecated (RFC 9745).",
    example: "",
};
const SUCCESSOR: HeaderField =
    HeaderField { name: "Link", about: "What to call instead (RFC 5829).", example: "" };
const SUNSET: HeaderField =
    HeaderField { name: "Sunset", about: "When the operation is to be removed (RFC 8594).", example: "" };

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deprecation_is_announced() {
        static DEPRECATION: Deprecation = Deprecation::new(1_795_219_200, 1_922_659_200, "/v1/pets", "");
        assert_eq!(
            DEPRECATION.announce(Response::new(404, b"")).headers(),
            [
                ("Deprecation", "@1795219200".into()),
                ("Link", "</v1/pets>; rel=\"successor-version\"".into()),
                ("Sunset", "Thu, 05 Dec 2030 00:00:00 GMT".into()),
            ]
        );
    }
}
