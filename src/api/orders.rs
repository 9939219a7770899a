//! `GET /v1/store/orders`: referred to by the specification, and not described by it.

use crate::api::Context;
use crate::http::{ApiError, Code};
use crate::http::{Request, Response};
use crate::service::router::Target;

/// Answers 501 until the fields of an order are specified.
pub fn list(_: &mut Context, _: &Request, _: &Target) -> Result<Response, ApiError> {
    Err(ApiError::with_message(
        Code::NotImplemented,
        "The orders of the store are announced, but not yet specified; there is nothing to list.",
    ))
}
