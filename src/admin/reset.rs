//! `POST /internal/reset`: returns an ephemeral service to its first state.

use super::{AdminContext, Call, Handler, Operation};
use crate::app::endpoint::Failure;
use crate::base::http::{ApiError, Code, Response};

pub static OPERATIONS: &[Operation] =
    &[Operation::new("/internal/reset", "resetService", Handler("POST", reset))];

fn reset(context: &mut AdminContext, _: &Call) -> Result<Response, Failure> {
    let message = "Only a service that was started with --ephemeral can be reset.";
    let reset = context.reset.as_ref().ok_or_else(|| ApiError::with_message(Code::NotFound, message))?;
    reset().map_err(|error| Failure::Fault(error.to_string()))?;
    Ok(Response::new(204, b""))
}
