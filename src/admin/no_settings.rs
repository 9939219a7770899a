//! In place of the settings of the project, in a build without the feature `site`: there are none.

use crate::http::{ApiError, Code, Request, Response, Target};
use crate::store::Reader;

/// Answers no request.
#[derive(Clone)]
pub struct Settings;

/// The header fields that it reads.
pub fn header_fields() -> Vec<&'static str> {
    Vec::new()
}

impl Settings {
    /// No path is one of the settings.
    pub fn has(&self, _: &str) -> bool {
        false
    }

    /// The response to a request for one of these paths.
    ///
    /// # Errors
    /// 404.
    pub fn respond(&mut self, _: &Request, _: &Target, _: &mut Reader) -> Result<Response, ApiError> {
        Err(ApiError::new(Code::NotFound))
    }
}

#[cfg(test)]
impl Settings {
    pub fn for_tests(_: &std::path::Path) -> Self {
        Self
    }
}
