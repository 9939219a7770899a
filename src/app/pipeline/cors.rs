//! What scripts of other origins may read and send in a browser (CORS: Fetch standard, section 3.2).

use petstore_gate::Cors;

/// The response header fields that they may read, in addition to the safelisted ones.
const EXPOSED: &str = "Link, Location, Deprecation, Sunset, Retry-After, X-Request-Id, ETag, Allow, \
    WWW-Authenticate, Idempotency-Replayed, Age, Accept, Accept-Encoding, Accept-Patch, Ignored-Parameters, \
    Key-Scope";
/// The request header fields that they may always send, in addition to the safelisted ones.
const SENT: &str =
    "Authorization, Content-Type, Idempotency-Key, If-None-Match, X-Request-Id, traceparent";

/// What the allowed origins may do.
pub fn cors(origins: &[String]) -> Cors {
    Cors {
        origins: origins.to_vec(),
        exposed: EXPOSED,
        sent: SENT,
    }
}
