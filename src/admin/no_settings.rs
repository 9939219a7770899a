//! Replaces the project's settings in a build without the feature `site`: there are none.

use super::{AdminContext, Route};
use crate::app::endpoint::Failure;
use petstore_base::http::{Request, Response, Target};

/// An empty context.
#[derive(Clone)]
pub struct ProjectSettings;

/// The methods that the admin address has without the settings.
pub const ALL_METHODS: &str = "GET, HEAD, POST, OPTIONS";

/// The header fields that the settings read.
pub const HEADER_FIELDS: &[&str] = &[];

/// Finds nothing at any path.
pub fn route(_: &str) -> Option<Route> {
    None
}

/// Accepts every request without a redirect.
///
/// # Errors
/// Never fails.
pub fn guard(
    _: &mut AdminContext,
    _: &Request,
    _: &Target,
    _: &mut Option<String>,
) -> Result<Option<Response>, Failure> {
    Ok(None)
}
