//! `GET /v1/store/orders`: the specification names it but does not describe it.

use super::pets::PETS_TAG;
use crate::app::endpoint::{
    ApiError, Call, Code, Failure, Handler, Operation, ReadContext, Stability, Tag,
};
use petstore_base::http::Response;

/// The pages show orders as a group of their own; in the OpenAPI description they share the tag that the
/// specification fixes.
pub static STORE: Tag = Tag {
    title: "Store",
    about: "Orders in the store.",
    ..PETS_TAG
};

pub static OPERATIONS: &[Operation] = &[Operation {
    title: "List store orders",
    summary: "List store orders",
    about: "Not available yet: always returns 501.",
    tag: Some(&STORE),
    rows: Some(0),
    codes: &[Code::NotImplemented],
    stability: Some(Stability::Experimental),
    ..Operation::new("/v1/store/orders", "listOrders", Handler::Get(list))
}];

/// Returns 501 until the fields of an order are specified.
fn list(_: &mut ReadContext, _: &Call) -> Result<Response, Failure> {
    let message = "Store orders are planned but not specified yet, so there is nothing to list.";
    Err(ApiError::with_message(Code::NotImplemented, message).into())
}
