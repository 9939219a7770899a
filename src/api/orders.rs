//! `GET /v1/store/orders`: the specification names it but does not describe it.

use super::pets::ANIMALS;
use super::{Call, Handler, Operation, ReadContext};
use crate::endpoint::Failure;
use crate::http::{ApiError, Code, Response};

pub static OPERATIONS: &[Operation] = &[Operation {
    summary: "List store orders",
    about: "Planned, but not specified yet. Returns 501.",
    tag: Some(&ANIMALS),
    rows: Some(0),
    codes: &[Code::NotImplemented],
    is_experimental: true,
    ..Operation::new("/v1/store/orders", "listOrders", Handler::Get(list))
}];

/// Returns 501 until the fields of an order are specified.
fn list(_: &mut ReadContext, _: &Call) -> Result<Response, Failure> {
    let message = "Store orders are planned but not specified yet, so there is nothing to list.";
    Err(ApiError::with_message(Code::NotImplemented, message).into())
}
