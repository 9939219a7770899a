//! The row of the table of operations. It feeds routing, Allow, scopes, lanes, the header fields that the
//! gate passes on, the deprecation header fields and the interface description, so that nothing is said
//! twice.

use crate::api::{Call, Reading, Writing};
use crate::http::{ApiError, Response};
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
    Check {
        read: fn(&mut Reading) -> Result<(), ApiError>,
        write: fn(&mut Writing) -> Result<Response, ApiError>,
    },
}

/// One row of the table.
#[derive(Debug)]
pub struct Operation {
    /// The path; a segment in braces is a parameter.
    pub path: &'static str,
    /// The operation's name, here and in the interface description (`operationId`).
    pub id: &'static str,
    /// What answers it.
    pub handler: Handler,
    /// The header fields that the handler reads; no other reaches it.
    pub headers: &'static [&'static str],
    /// `x-stability` in the interface description; `None`: stable.
    #[cfg_attr(not(test), expect(dead_code, reason = "nothing reads it before there is a description"))]
    pub stability: Option<Stability>,
    /// Where the operation is on its way out.
    pub deprecation: Option<Deprecation>,
}

/// A stability mark below stable (specification, section 9).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stability {
    /// May change or go without notice.
    Experimental,
}

/// The end of an operation's life, as its responses announce it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Deprecation {
    /// Deprecated since then: Unix time, seconds (RFC 9745).
    pub since: i64,
    /// To be removed on this day, UTC (RFC 8594).
    pub sunset: jiff::civil::Date,
    /// The path to call instead (`rel="successor-version"`, RFC 5829).
    pub successor: &'static str,
}

impl Operation {
    /// A stable row whose handler reads no header fields.
    pub const fn new(path: &'static str, id: &'static str, handler: Handler) -> Self {
        Self { path, id, handler, headers: &[], stability: None, deprecation: None }
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
        let link = format!("<{}>; rel=\"successor-version\"", self.successor);
        let response = response.header("Deprecation", format!("@{}", self.since)).header("Link", link);
        let midnight = self.sunset.at(0, 0, 0, 0).to_zoned(jiff::tz::TimeZone::UTC);
        let printer = jiff::fmt::rfc2822::DateTimePrinter::new();
        match midnight.and_then(|at| printer.timestamp_to_rfc9110_string(&at.timestamp())) {
            Ok(sunset) => response.header("Sunset", sunset),
            Err(_) => response,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deprecation_is_announced() {
        let deprecation = Deprecation {
            since: 1_795_219_200,
            sunset: jiff::civil::date(2030, 12, 5),
            successor: "/v1/pets",
        };
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
