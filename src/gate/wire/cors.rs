//! The other origins that may read responses in a browser (CORS: Fetch standard, section 3.2).

use crate::lane::LaneResponse;
use crate::wire::request_line::is_token_byte;
use petstore_base::http::response::write_field;
use petstore_base::http::{elements, find_fields};

/// The request header fields of a preflight, with the method and the header fields that a script wants to send. The gate
/// reads them from the request for the lane.
pub const ASKED: [&str; 2] = [
    "Access-Control-Request-Method",
    "Access-Control-Request-Headers",
];
/// The seconds for which a browser may cache the response to a preflight.
const MAX_AGE: &[u8] = b"600";

/// What scripts of other origins may do in a browser. By default there are none.
#[derive(Clone, Debug, Default)]
pub struct Cors {
    /// The allowed origins; `*` stands for all.
    pub origins: Vec<String>,
    /// The response header fields that scripts may read, in addition to the safelisted ones: names that commas separate.
    pub exposed: &'static str,
    /// The request header fields that scripts may always send, in addition to the safelisted ones.
    pub sent: &'static str,
}

/// A request's origin that is allowed; `*` if all are.
#[derive(Clone, Debug, PartialEq)]
pub struct Allowed(Box<str>);

impl Cors {
    /// The permission for the origin of a request, if it has one.
    pub fn allow(&self, origin: &[u8]) -> Option<Allowed> {
        let find = |origin: &[u8]| self.origins.iter().find(|known| known.as_bytes() == origin);
        let known = find(b"*").or_else(|| find(origin))?;
        Some(Allowed(known.as_str().into()))
    }

    /// The one allowed origin, unless there are several.
    pub fn only(&self) -> Option<Allowed> {
        if let [only] = &*self.origins {
            Some(Allowed(only.as_str().into()))
        } else {
            None
        }
    }

    /// Returns whether responses depend on the origin, so that caches must keep them apart.
    pub fn vary(&self) -> bool {
        self.origins.iter().any(|known| known != "*")
    }

    /// If a request with these header fields is a preflight (Fetch standard, section 3.2.2), writes the fields of the 204
    /// that replaces any response: a script must be able to read a failure itself. It allows the methods of the path, and
    /// the method and fields of the preflight, because nothing depends on their rejection.
    pub fn write_preflight(&self, response: &LaneResponse, request: &[u8], out: &mut Vec<u8>) {
        let is_token = |word: &&[u8]| word.iter().all(|b| is_token_byte(*b));
        let asked = |name| {
            find_fields(request, name)
                .flat_map(elements)
                .filter(is_token)
        };
        let Some(method) = asked(ASKED[0]).next() else {
            return;
        };
        let allow = response.field("Allow").unwrap_or_default();
        let more = Some(method).filter(|method| elements(allow).all(|known| known != *method));
        let methods: Vec<_> = elements(allow).chain(more).collect();
        let fields: Vec<_> = [self.sent.as_bytes()]
            .into_iter()
            .chain(asked(ASKED[1]))
            .collect();
        write_field(
            out,
            "Access-Control-Allow-Methods",
            &methods.join(&b", "[..]),
        );
        write_field(
            out,
            "Access-Control-Allow-Headers",
            &fields.join(&b", "[..]),
        );
        write_field(out, "Access-Control-Max-Age", MAX_AGE);
        out.extend_from_slice(b"\r\n");
    }
}

impl Allowed {
    /// Writes the header fields that allow a script to read the response.
    pub fn write_response(&self, exposed: &str, out: &mut Vec<u8>) {
        write_field(out, "Access-Control-Allow-Origin", self.0.as_bytes());
        write_field(out, "Access-Control-Expose-Headers", exposed.as_bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(origins: &[&str]) -> Cors {
        Cors {
            origins: origins.iter().map(|origin| (*origin).to_owned()).collect(),
            ..Cors::default()
        }
    }

    #[test]
    fn origins_are_compared_to_the_letter() {
        let cors = of(&["https://a.example", "http://localhost:3000"]);
        assert_eq!(
            cors.allow(b"https://a.example"),
            Some(Allowed("https://a.example".into()))
        );
        for origin in [
            "https://A.example",
            "https://a.example:443",
            "http://a.example",
            "null",
            "*",
            "",
        ] {
            assert_eq!(cors.allow(origin.as_bytes()), None, "{origin}");
        }
        assert!(cors.vary());
    }

    #[test]
    fn star_allows_everybody_and_nothing_allows_nobody() {
        let all = of(&["*"]);
        assert_eq!(all.allow(b"null"), Some(Allowed("*".into())));
        assert!(!all.vary());
        assert_eq!(Cors::default().allow(b"https://a.example"), None);
    }
}
