//! The row of the table of operations. It feeds routing, Allow, scopes, lanes, the header fields that the
//! gate passes on, the deprecation header fields and the interface description, so that nothing is said
//! twice.

use crate::api::parameter::Parameter;
use crate::api::{Call, Probe, Reading, Writing};
use crate::clock::http_date;
use crate::http::{ApiError, Code, Response};
use crate::store::Committed;

/// A response that waits for the commit: what makes it is called once the batch is on the disk.
pub type Staged<'r> = Box<dyn FnOnce(&Committed) -> Response + 'r>;

/// What answers an operation. Its kind decides the method, the lane and the scope of key that it needs, so
/// that they cannot disagree.
#[derive(Clone, Copy, Debug)]
pub enum Handler {
    /// GET and HEAD: reads, in a lane for reading.
    Get(for<'r> fn(&mut Reading, &Call<'r>) -> Result<Response, ApiError>),
    /// POST: writes, in the lane for writing. A read-only key may not call it.
    Post(for<'r> fn(&mut Writing, &Call<'r>) -> Result<Staged<'r>, ApiError>),
    /// GET and HEAD: asks a reader, and where it has nothing to say against it, the writer between two of
    /// its batches.
    Check { read: fn(&mut Reading) -> Result<(), ApiError>, write: fn(Probe) -> Result<Response, ApiError> },
}

/// One row of the table.
pub struct Operation {
    /// The path; a segment in braces is a parameter.
    pub path: &'static str,
    /// The operation's name, here and in the interface description (`operationId`).
    pub id: &'static str,
    /// What answers it.
    pub handler: Handler,
    /// What it does, in one line.
    pub summary: &'static str,
    /// What more there is to know, for the interface description.
    pub about: &'static str,
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
    /// Where the operation is on its way out.
    pub deprecation: Option<Deprecation>,
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

/// The end of an operation's life, as its responses announce it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deprecation {
    /// Deprecated since then: Unix time, seconds (RFC 9745).
    pub since: i64,
    /// To be removed then: Unix time, seconds (RFC 8594).
    pub sunset: i64,
    /// The path to call instead (`rel="successor-version"`, RFC 5829).
    pub successor: &'static str,
}

impl Operation {
    /// A stable row whose handler reads nothing of the request.
    pub const fn new(path: &'static str, id: &'static str, summary: &'static str, handler: Handler) -> Self {
        Self {
            path,
            id,
            handler,
            summary,
            about: "",
            parameters: &[],
            headers: &[],
            body: None,
            success: None,
            codes: &[],
            stability: None,
            deprecation: None,
        }
    }

    /// The method; GET stands for HEAD as well.
    pub const fn method(&self) -> &'static str {
        match self.handler {
            Handler::Get(_) | Handler::Check { .. } => "GET",
            Handler::Post(_) => "POST",
        }
    }

    /// Whether a read-only key may not call it.
    pub const fn writes(&self) -> bool {
        matches!(self.handler, Handler::Post(_))
    }

    /// Adds the header fields that every response of the operation has.
    pub fn announce(&self, response: Response) -> Response {
        match &self.deprecation {
            Some(deprecation) => deprecation.announce(response),
            None => response,
        }
    }
}

impl Deprecation {
    fn announce(&self, response: Response) -> Response {
        self.fields()
            .into_iter()
            .fold(response, |response, (field, value)| response.header(field.name, value))
    }

    /// The header fields that announce it, and their values.
    pub fn fields(&self) -> [(HeaderField, String); 3] {
        [
            (DEPRECATION, format!("@{}", self.since)),
            (SUCCESSOR, format!("<{}>; rel=\"successor-version\"", self.successor)),
            (SUNSET, http_date(self.sunset)),
        ]
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
        let deprecation = Deprecation { since: 1_795_219_200, sunset: 1_922_659_200, successor: "/v1/pets" };
        assert_eq!(
            deprecation.announce(Response::new(404, b"")).headers(),
            [
                ("Deprecation", "@1795219200".into()),
                ("Link", "</v1/pets>; rel=\"successor-version\"".into()),
                ("Sunset", "Thu, 05 Dec 2030 00:00:00 GMT".into()),
            ]
        );
    }
}
