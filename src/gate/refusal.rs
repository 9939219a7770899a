//! Why the gate responds itself, in place of the service behind it.

use std::borrow::Cow;

use petstore_base::http::Response;

/// Why a request gets a response of the gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RefusalReason {
    /// The request is malformed (RFC 9112): 400.
    BadRequest,
    /// The head or the body did not arrive in time: 408.
    RequestTimeout,
    /// The body is too large: 413.
    ContentTooLarge,
    /// The request target is too long: 414.
    UriTooLong,
    /// The client expects something other than a 100 Continue (RFC 9110, section 10.1.1): 417.
    ExpectationFailed,
    /// The head is too large, or what is dropped of a chunked body: 431.
    HeadersTooLarge,
    /// The service failed to respond, as after a panic: 500.
    Failed,
    /// CONNECT, since the gate is no tunnel: 501.
    NotImplemented,
    /// A transfer coding other than `chunked`: 501.
    TransferCoding,
    /// The request was not carried out, for lack of connections, memory or time: 503.
    Overloaded,
    /// The request may have been carried out, but its response did not come in time: 503.
    OutcomeUnknown,
    /// A major version of HTTP other than 1: 505.
    HttpVersion,
}

#[cfg_attr(not(test), allow(dead_code, reason = "tests use all of it"))]
impl RefusalReason {
    /// Every reason, in the order of their statuses.
    pub const ALL: [Self; 12] = [
        Self::BadRequest,
        Self::RequestTimeout,
        Self::ContentTooLarge,
        Self::UriTooLong,
        Self::ExpectationFailed,
        Self::HeadersTooLarge,
        Self::Failed,
        Self::NotImplemented,
        Self::TransferCoding,
        Self::Overloaded,
        Self::OutcomeUnknown,
        Self::HttpVersion,
    ];

    /// The HTTP status.
    pub fn status(self) -> u16 {
        match self {
            Self::BadRequest => 400,
            Self::RequestTimeout => 408,
            Self::ContentTooLarge => 413,
            Self::UriTooLong => 414,
            Self::ExpectationFailed => 417,
            Self::HeadersTooLarge => 431,
            Self::Failed => 500,
            Self::NotImplemented | Self::TransferCoding => 501,
            Self::Overloaded | Self::OutcomeUnknown => 503,
            Self::HttpVersion => 505,
        }
    }
}

/// A refusal of the gate: its reason, and often a sentence that says more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// Why the gate refuses the request.
    pub reason: RefusalReason,
    /// What exactly is wrong, for people.
    pub message: Option<Cow<'static, str>>,
}

impl Refusal {
    /// A refusal whose reason says it all.
    pub const fn new(reason: RefusalReason) -> Self {
        Self {
            reason,
            message: None,
        }
    }

    /// A refusal with a message of its own.
    pub fn because(reason: RefusalReason, message: impl Into<Cow<'static, str>>) -> Self {
        Self {
            reason,
            message: Some(message.into()),
        }
    }

    /// A response with the message, or the name of the reason, as plain text: for a service without a format of its own.
    pub fn into_response(self) -> Response {
        let status = self.reason.status();
        let named = || format!("{:?}", self.reason).into();
        let text = self.message.unwrap_or_else(named);
        let response = Response::new(status, format!("{text}\n").into_bytes())
            .header("Content-Type", "text/plain");
        if status == 503 {
            // RFC 9110, section 10.2.3: seconds.
            return response.header("Retry-After", "1");
        }
        response
    }
}

/// Makes the response to a refused request, in the format of the service.
pub type Refuse = Box<dyn Fn(Refusal) -> Response + Send>;
