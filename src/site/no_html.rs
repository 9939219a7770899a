//! Replaces the reference and the pages in a build without the feature `site`: there are none.

use crate::config::{Address, Config};
use crate::http::Assets;

/// The path of the guide: there is none.
pub const GUIDE: Option<&str> = None;

/// The name of an error code in Markdown.
pub fn code(name: &str) -> String {
    format!("`{name}`")
}

/// Adds nothing.
pub fn add(_: &mut Assets, _: &Config, _: &Address) {}
