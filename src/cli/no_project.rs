//! In place of the commands for the published project, in a build without the feature `site`: there are none.

use super::command::Command;

pub const SITE: &[Command] = &[];
pub const DOMAINS: &[Command] = &[];
