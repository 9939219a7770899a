//! The building blocks of endpoints: the rows of the table of operations, the router, the handlers and their contexts,
//! the parameters and the request that a handler reads, entity tags, and the failure of a handler.
//!
//! Knows no resource, no SQL and no sockets.

mod entity_tag;
mod error;
mod handler;
mod list_cache;
mod operation;
pub mod parameter;
pub mod query;
mod router;

use crate::store::{Cause, StoreError};
use petstore_base::error::Error;
use petstore_base::http::Response;
use petstore_base::json::Invalid;

pub use entity_tag::{ETAG, tagged};
pub use error::{ApiError, Code, error_schema};
pub use handler::{Call, Handler, ReadContext, Staged, WriteContext, WriterCheck, read_body};
pub use operation::{Deprecation, JSON, Operation, Stability, Success, Tag};
pub use parameter::HeaderField;
pub use router::{Router, unserved};

#[cfg(test)]
pub use router::tests::{flaw, row};

/// The failure of a handler. The pipeline turns it into a response and a log line.
#[derive(Debug, PartialEq)]
pub enum Failure {
    /// The request is wrong or not allowed. The client gets the whole cause.
    Refused(ApiError),
    /// The store failed. The client gets the cause; the log has the detail.
    Store(StoreError),
    /// A bug in petstore, such as a panic. The client gets a 500, and the log the text.
    Fault(String),
}

impl Failure {
    /// The response to the client.
    pub fn into_response(self) -> Response {
        let error = match self {
            Self::Refused(error) => error,
            Self::Store(StoreError::Unavailable(Cause::Unknown, _)) => {
                ApiError::new(Code::OutcomeUnknown)
            }
            Self::Store(StoreError::Unavailable(trouble, _)) => {
                let what_next = if trouble.passes() {
                    "Try again in a moment."
                } else {
                    "Tell the operator."
                };
                let message = format!(
                    "The database {}; nothing was changed. {what_next}",
                    trouble.as_str()
                );
                ApiError::with_message(Code::StorageUnavailable, message)
            }
            Self::Store(StoreError::Rejected(_)) => ApiError::new(Code::Rejected),
            Self::Store(StoreError::Internal(_)) | Self::Fault(_) => ApiError::new(Code::Internal),
        };
        error.into_response()
    }

    /// The detail for the log, which the client must not see.
    pub fn detail(&self) -> Option<&str> {
        match self {
            Self::Refused(_) => None,
            Self::Store(
                StoreError::Unavailable(_, detail)
                | StoreError::Rejected(detail)
                | StoreError::Internal(detail),
            )
            | Self::Fault(detail) => Some(detail),
        }
    }
}

impl From<ApiError> for Failure {
    fn from(error: ApiError) -> Self {
        Self::Refused(error)
    }
}

impl From<StoreError> for Failure {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<Error> for Failure {
    /// The failure of a connection that hosting has asked.
    fn from(error: Error) -> Self {
        Self::Store(StoreError::of_hosting(error))
    }
}

impl From<Invalid> for Failure {
    fn from(invalid: Invalid) -> Self {
        let (code, message) = match invalid {
            Invalid::Json(message) => (Code::InvalidJson, message),
            Invalid::Missing(message) => (Code::MissingMember, message),
            Invalid::Member(message) => (Code::InvalidMember, message),
            Invalid::Duplicate(message) => (Code::DuplicateMember, message),
        };
        Self::Refused(ApiError::with_message(code, message))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn detail_is_for_the_log_only() {
        for (failure, status) in [
            (Failure::Fault("SELECT secret".to_owned()), 500),
            (
                Failure::Store(StoreError::Internal("SELECT secret".to_owned())),
                500,
            ),
            (
                Failure::Store(StoreError::Unavailable(
                    Cause::Full,
                    "SELECT secret".to_owned(),
                )),
                503,
            ),
        ] {
            assert_eq!(failure.detail(), Some("SELECT secret"));
            let response = failure.into_response();
            assert_eq!(response.status, status);
            assert!(!String::from_utf8_lossy(response.body()).contains("SELECT"));
        }
    }

    #[test]
    fn refusal_leaves_nothing_for_the_log() {
        let refused = Failure::from(Invalid::Json("The body is empty.".to_owned()));
        assert_eq!(refused.detail(), None);
        assert_eq!(
            refused,
            Failure::Refused(ApiError::with_message(
                Code::InvalidJson,
                "The body is empty."
            ))
        );
    }
}
