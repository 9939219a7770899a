//! Which other origins may read responses in a browser (CORS: Fetch standard, section 3.2).

use crate::http::response::write_field;

/// The response header fields that scripts of other origins may read, in addition to the safelisted ones.
const EXPOSED: &[u8] = b"Link, Location, Deprecation, Sunset, Retry-After, X-Request-Id, ETag, Allow, \
    WWW-Authenticate, Idempotency-Replayed";
/// The request header fields that they may send, in addition to the safelisted ones.
const SENT: &[u8] = b"Authorization, Content-Type, Idempotency-Key, If-None-Match, X-Request-Id, traceparent";
/// How many seconds a browser may cache the answer to a preflight.
const MAX_AGE: &[u8] = b"600";

/// The allowed origins; `*` stands for all. None by default.
#[derive(Clone, Debug, Default)]
pub struct Origins(pub Vec<String>);

/// A request's origin that is allowed; `*` if all are.
#[derive(Clone, Debug, PartialEq)]
pub struct Allowed(Box<str>);

impl Origins {
    /// Whether the origin that a request names is allowed.
    pub fn allow(&self, origin: &[u8]) -> Option<Allowed> {
        let find = |origin: &[u8]| self.0.iter().find(|known| known.as_bytes() == origin);
        let known = find(b"*").or_else(|| find(origin))?;
        Some(Allowed(known.as_str().into()))
    }

    /// Whether responses depend on the origin, so that caches must tell them apart.
    pub fn tell_apart(&self) -> bool {
        self.0.iter().any(|known| known != "*")
    }
}

impl Allowed {
    /// Writes the header fields that allow a script to read the response.
    pub fn write_response(&self, out: &mut Vec<u8>) {
        write_field(out, "Access-Control-Allow-Origin", self.0.as_bytes());
        write_field(out, "Access-Control-Expose-Headers", EXPOSED);
    }

    /// Writes the answer to a preflight, which allows these methods.
    pub fn write_preflight(methods: &[u8], out: &mut Vec<u8>) {
        write_field(out, "Access-Control-Allow-Methods", methods);
        write_field(out, "Access-Control-Allow-Headers", SENT);
        write_field(out, "Access-Control-Max-Age", MAX_AGE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_are_compared_to_the_letter() {
        let origins = Origins(vec!["https://a.example".to_owned(), "http://localhost:3000".to_owned()]);
        assert_eq!(origins.allow(b"https://a.example"), Some(Allowed("https://a.example".into())));
        for origin in ["https://A.example", "https://a.example:443", "http://a.example", "null", "*", ""] {
            assert_eq!(origins.allow(origin.as_bytes()), None, "{origin}");
        }
        assert!(origins.tell_apart());
    }

    #[test]
    fn star_allows_everybody_and_nothing_allows_nobody() {
        let all = Origins(vec!["*".to_owned()]);
        assert_eq!(all.allow(b"null"), Some(Allowed("*".into())));
        assert!(!all.tell_apart());
        assert_eq!(Origins::default().allow(b"https://a.example"), None);
    }
}
