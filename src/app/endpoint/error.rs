//! The Error body, and the table of its codes, statuses and messages.
//!
//! Knows nothing of routes, sockets or SQL. Every failure that a client can see is an [`ApiError`], so that it has the
//! documented shape:
//!
//! ```json
//! {"code":"not_found","message":"There is no pet with this id.","status":404}
//! ```

use std::borrow::Cow;

use petstore_base::http::limits::{
    MAX_BODY_BYTES, MAX_HEAD_BYTES, MAX_HEADER_FIELDS, MAX_TARGET_BYTES,
};
use petstore_base::http::{Fields, Response};
use petstore_base::json::{Json, object};

/// The operations that may return a code.
enum Reach {
    Any,
    /// The operations that write.
    Writes,
    /// The operations that name the code in their row.
    Some,
    /// The experimental operations that name the code in their row.
    Experimental,
}

/// Declares the codes, one row each: name, status, operations that may return it, and usual message.
macro_rules! codes {
    ($($name:ident = $status:literal $reach:ident $code:literal $message:expr;)*) => {
        /// The stable, machine-readable cause of a failure.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Code { $(
            #[doc = concat!("`", $code, "`, status ", $status)]
            $name,
        )* }

        impl Code {
            /// Every code, in the order of the table.
            pub const ALL: &[Code] = &[$(Code::$name),*];

            /// The HTTP status.
            pub const fn status(self) -> u16 {
                match self { $(Code::$name => $status,)* }
            }

            /// The operations that may return it.
            const fn reach(self) -> Reach {
                match self { $(Code::$name => Reach::$reach,)* }
            }

            /// The `code` member, stable snake_case.
            pub const fn as_str(self) -> &'static str {
                match self { $(Code::$name => $code,)* }
            }

            /// The usual `message` member.
            pub fn usual_message(self) -> Cow<'static, str> {
                match self { $(Code::$name => $message.into(),)* }
            }
        }
    };
}

codes! {
    BadRequest = 400 Any "bad_request" "The request is not well-formed HTTP/1.1.";
    InvalidParameter = 400 Some "invalid_parameter" "A query parameter has a value that is not allowed.";
    DuplicateParameter = 400 Some "duplicate_parameter" "A query parameter is given more than once.";
    InvalidJson = 400 Some "invalid_json" "The body must be one JSON object.";
    MissingMember = 400 Some "missing_member" "The body lacks a required field.";
    InvalidMember = 400 Some "invalid_member" "A field of the body has a value that is not allowed.";
    DuplicateMember = 400 Some "duplicate_member" "A field of the body is given more than once.";
    InvalidIdempotencyKey = 400 Some "invalid_idempotency_key" "Send the header Idempotency-Key once, with 1 to 255 printable ASCII characters. A key with a space, a comma, a semicolon, a quote or a backslash must be in quotes.";
    Unauthorized = 401 Any "unauthorized" "An API key is required: send the header 'Authorization: Bearer <API_KEY>'.";
    InsufficientScope = 403 Writes "insufficient_scope" "This API key is read-only; this operation needs a key with write access.";
    HttpsRequired = 403 Some "https_required" "This service accepts requests over HTTPS only. If this one had an API key, replace the key: others could read it.";
    NotFound = 404 Some "not_found" "There is nothing at this path.";
    MethodNotAllowed = 405 Some "method_not_allowed" "This path does not support this method; the Allow header lists the methods that it supports.";
    RequestTimeout = 408 Any "request_timeout" "The complete request did not arrive in time.";
    Rejected = 409 Writes "rejected" "A rule that another program has put into the database rejects this change. The log of the service has its text under this X-Request-Id.";
    ChangesGone = 410 Experimental "changes_gone" "Changes after this id are not kept any more, or are those of another database. Get the pets again, and then the changes at the URL in the Link header.";
    PreconditionFailed = 412 Experimental "precondition_failed" "The current ETag of the pet does not meet If-Match or If-None-Match. If If-Match has an earlier ETag, the pet was changed since, perhaps by an earlier try of this request.";
    ContentTooLarge = 413 Any "content_too_large" format!("The body is larger than {MAX_BODY_BYTES} bytes.");
    UriTooLong = 414 Any "uri_too_long" format!("The request target is longer than {MAX_TARGET_BYTES} bytes.");
    UnsupportedMediaType = 415 Some "unsupported_media_type" "The body must be application/json; with curl, send it with --json.";
    UnsupportedContentEncoding = 415 Some "unsupported_content_encoding" "The body must come without a Content-Encoding.";
    ExpectationFailed = 417 Any "expectation_failed" "The only expectation that this service supports is '100-continue'.";
    MisdirectedRequest = 421 Any "misdirected_request" "This service does not serve the requested host.";
    IdempotencyKeyReused = 422 Some "idempotency_key_reused" "This Idempotency-Key was already used to add a different pet.";
    HeadersTooLarge = 431 Any "request_header_fields_too_large" format!("The request head is larger than {MAX_HEAD_BYTES} bytes or has more than {MAX_HEADER_FIELDS} header fields.");
    Internal = 500 Any "internal_error" "The service failed to handle this request. Its log has the cause under this X-Request-Id.";
    NotImplemented = 501 Some "not_implemented" "This service does not implement this method, which must be in capitals, or does not implement this operation yet.";
    TransferCoding = 501 Any "unsupported_transfer_coding" "The only transfer coding that this service supports is 'chunked'.";
    Overloaded = 503 Any "overloaded" "The service has more requests than it can handle; try again in a moment.";
    OutcomeUnknown = 503 Writes "outcome_unknown" "The service cannot tell whether the request was carried out. Send it again, with the same Idempotency-Key if it had one. If a create had none, look for the pet first.";
    ReadOnly = 503 Writes "read_only" "This service is read-only; nothing was changed. Send requests that change something to the service that writes.";
    StorageUnavailable = 503 Any "storage_unavailable" "The service cannot use its database; nothing was changed.";
    HttpVersion = 505 Any "http_version_not_supported" "This service speaks HTTP/1.1 and HTTP/1.0.";
}

impl Code {
    /// The codes that any operation may return; `writes` adds those of operations that write.
    pub fn general(writes: bool) -> impl Iterator<Item = Self> {
        Self::ALL
            .iter()
            .copied()
            .filter(move |code| match code.reach() {
                Reach::Any => true,
                Reach::Writes => writes,
                Reach::Some | Reach::Experimental => false,
            })
    }

    /// The codes that a service can return with or without the experimental operations.
    pub fn all(is_experimental: bool) -> impl Iterator<Item = Self> {
        Self::ALL
            .iter()
            .copied()
            .filter(move |code| is_experimental || !matches!(code.reach(), Reach::Experimental))
    }

    /// The Error body with the usual message.
    pub fn example(self) -> Json {
        self.body(&self.usual_message())
    }

    /// The Error body with a message of its own.
    pub fn body(self, message: &str) -> Json {
        object! { "code": self.as_str(), "message": message, "status": self.status() }
    }
}

/// The JSON Schema of the Error body.
pub fn error_schema(is_experimental: bool) -> Json {
    let codes: Vec<&str> = Code::all(is_experimental).map(Code::as_str).collect();
    object! {
        "type": "object",
        "description": "Why a request failed.",
        "required": ["code", "message", "status"],
        "properties": object! {
            "code": object! {
                "type": "string",
                "examples": codes,
                "description": "The stable, machine-readable cause. Later versions may add codes.",
            },
            "message": object! { "type": "string", "description": "What is wrong and what is expected, for people." },
            "status": object! {
                "type": "integer",
                "minimum": 400,
                "maximum": 599,
                "description": "The HTTP status of the response.",
            },
        },
        "additionalProperties": true,
        "examples": Json::Array(vec![Code::NotFound.example()]),
    }
}

/// A failure that becomes a response.
#[derive(Debug, PartialEq)]
pub struct ApiError {
    pub code: Code,
    message: Cow<'static, str>,
    fields: Fields,
}

impl ApiError {
    /// A failure with the usual message of its code.
    pub fn new(code: Code) -> Self {
        Self::with_message(code, code.usual_message())
    }

    /// A failure with its own message, which names the field or parameter and what is expected.
    pub fn with_message(code: Code, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            code,
            message: message.into(),
            fields: Fields::default(),
        }
    }

    /// Adds a response header, such as `Allow`.
    pub fn header(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
        self.fields.add(name, value.as_ref());
        self
    }

    /// The response with the Error body.
    pub fn into_response(self) -> Response {
        let status = self.code.status();
        let mut response = Response::json(status, &self.code.body(&self.message));
        if status == 503 && self.code != Code::ReadOnly {
            // RFC 9110, section 10.2.3: seconds.
            response = response.header("Retry-After", "1");
        }
        response.with(&self.fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use petstore_base::http::response::reason;

    #[test]
    fn proxies_return_the_body_of_their_own_code() {
        let body = Code::HttpsRequired.example().to_string();
        for proxy in [
            "nginx.conf",
            "Caddyfile",
            "Caddyfile-domains",
            "haproxy.cfg",
        ] {
            let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/deploy");
            assert!(
                std::fs::read_to_string(folder.join(proxy))
                    .unwrap()
                    .contains(&body),
                "{proxy}: {body}"
            );
        }
    }

    #[test]
    fn codes_are_distinct_snake_case() {
        let mut seen = std::collections::HashSet::new();
        for code in Code::ALL {
            assert!(
                code.as_str()
                    .bytes()
                    .all(|b| b.is_ascii_lowercase() || b == b'_'),
                "{code:?}"
            );
            assert!(seen.insert(code.as_str()), "{code:?} shares its code");
            assert!((400..600).contains(&code.status()), "{code:?}");
        }
    }

    #[test]
    fn every_status_has_a_reason() {
        // 402 and 409 are refusals of the project.
        for status in [200, 201, 202, 204, 301, 302, 304, 307, 308, 402, 409]
            .into_iter()
            .chain(Code::ALL.iter().map(|code| code.status()))
        {
            assert_ne!(reason(status), "", "{status}");
        }
    }
}
