//! Stands in for `project` in a build without the feature `site`: there are no commands.

use super::command::Command;

pub const DOMAINS: &[Command] = &[];
pub const SITE: &[Command] = &[];
