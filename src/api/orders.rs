//! `GET /v1/store/orders`: the specification names it but does not describe it.

use super::pets::ANIMALS;
use super::{Call, Handler, Operation, ReadContext};
use crate::endpoint::Failure;
use crate::http::{ApiError, Code, Response};

pub static OPERATIONS: &[Operation] = &[Operation {
    summary: "List the orders of the store",
    about: "Announced, but not specified yet: returns 501.",
    tag: Some(&ANIMALS),
    rows: Some(0),
    codes: &[Code::NotImplemented],
    is_experimental: true,
    ..Operation::new("/v1/store/orders", "listOrders", Handler::Get(list))
}];

/// Returns 501 until the fields of an order are specified.
fn list(_: &mut ReadContext, _: &Call) -> Result<Response, Failure> {
    let message = "The orders of the store are announced, but not yet specified; there is nothing to list.";
    Err(ApiError::with_message(Code::NotImplemented, message).into())
}
