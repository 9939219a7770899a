//! Replaces the reference and the pages in a build without the feature `site`: there are none.

use crate::config::Config;
use petstore_base::http::Assets;
use petstore_gate::Address;

/// Adds nothing.
pub fn add(_: &mut Assets, _: &Config, _: &Address) {}
