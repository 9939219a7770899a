//! Replaces the reference and the pages in a build without the feature `site`: there are none.

use crate::config::Config;
use crate::net::Address;
use petstore_base::http::Assets;

/// Adds nothing.
pub fn add(_: &mut Assets, _: &Config, _: &Address) {}
