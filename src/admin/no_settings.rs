//! In place of the settings of the project, in a build without the feature `site`: there are none.

use super::{AdminContext, Operation};
use crate::endpoint::Failure;
use crate::http::{Request, Target};

/// Nothing to work with.
#[derive(Clone)]
pub struct Settings;

pub static OPERATIONS: &[Operation] = &[];

/// The header fields that [`guard`] reads.
pub const GUARD_FIELDS: &[&str] = &[];

/// Lets every request pass.
///
/// # Errors
/// None.
pub fn guard(_: &mut AdminContext, _: &Request, _: &Target) -> Result<(), Failure> {
    Ok(())
}

#[cfg(test)]
impl Settings {
    pub fn for_tests(_: &std::path::Path) -> Self {
        Self
    }
}
