//! `POST /internal/reset`: returns an ephemeral service to its first state.

use super::{AdminCall, AdminContext, AdminHandler, AdminOperation};
use crate::app::endpoint::Failure;
use crate::base::http::{ApiError, Code, Response};

pub static OPERATIONS: &[AdminOperation] =
    &[AdminOperation::new("/internal/reset", "resetService", AdminHandler("POST", reset))];

fn reset(context: &mut AdminContext, _: &AdminCall) -> Result<Response, Failure> {
    let message = "Only a service that was started with --ephemeral can be reset.";
    let reset = context.reset.as_ref().ok_or_else(|| ApiError::with_message(Code::NotFound, message))?;
    reset().map_err(|error| Failure::Fault(error.to_string()))?;
    Ok(Response::new(204, b""))
}
