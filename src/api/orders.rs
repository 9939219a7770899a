//! `GET /v1/store/orders`: referred to by the specification, and not described by it.

use crate::api::operation::{Handler, Operation, Stability};
use crate::api::{Call, Reading};
use crate::http::{ApiError, Code, Response};

pub const OPERATIONS: &[Operation] = &[Operation {
    about: "Announced, but not specified yet: it answers 501.",
    codes: &[Code::NotImplemented],
    stability: Some(Stability::Experimental),
    ..Operation::new("/v1/store/orders", "listOrders", "List the orders of the store", Handler::Get(list))
}];

/// Answers 501 until the fields of an order are specified.
fn list(_: &mut Reading, _: &Call) -> Result<Response, ApiError> {
    Err(ApiError::with_message(
        Code::NotImplemented,
        "The orders of the store are announced, but not yet specified; there is nothing to list.",
    ))
}
