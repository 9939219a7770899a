//! Replaces the reference and the pages in a build without the feature `site`: there are none.

use crate::base::config::{Address, Config};
use crate::base::http::Assets;

/// Adds nothing.
pub fn add(_: &mut Assets, _: &Config, _: &Address) {}
