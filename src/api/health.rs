//! `GET /healthz`: whether the service can do its work.

use crate::api::Context;
use crate::http::ApiError;
use crate::http::{Request, Response};
use crate::service::router::Target;
use crate::store::{Page, StoreError};

/// Answers `{"status":"ok"}` when a read and the writer answer, else 503.
pub fn check(context: &mut Context, _: &Request, _: &Target) -> Result<Response, ApiError> {
    let any = Page { limit: 1, status: None, after: i64::MIN };
    context.store.visit_pets(&any, |_| std::ops::ControlFlow::Break(()))?;
    if !context.pulse.is_felt() {
        return Err(StoreError::Unavailable("the writer does not answer".to_owned()).into());
    }
    Ok(Response::json_bytes(200, br#"{"status":"ok"}"#.to_vec()))
}
