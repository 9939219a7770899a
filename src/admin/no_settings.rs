//! Replaces the project's settings in a build without the feature `site`: there are none.

use super::{AdminContext, AdminOperation};
use crate::app::endpoint::Failure;
use crate::base::http::{Request, Response, Target};

/// An empty context.
#[derive(Clone)]
pub struct ProjectSettings;

pub static OPERATIONS: &[AdminOperation] = &[];

/// The header fields that [`guard`] reads.
pub const GUARD_FIELDS: &[&str] = &[];

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
