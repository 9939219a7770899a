//! In place of what a service does for its project, in a build without the feature `site`: nothing.

use std::sync::Arc;

use crate::admin::ProjectSettings;
use crate::app::pipeline::Hosts;
use crate::base::config::Config;
use crate::base::error::Error;

/// There is nothing to keep up.
pub type Upkeep = ();

/// Starts nothing.
pub fn start(_: &Config) -> Result<Option<Arc<Upkeep>>, Error> {
    Ok(None)
}

/// Tells the names of the project from others.
pub fn hosts(config: &Config, _: Option<&Arc<Upkeep>>) -> Hosts {
    Hosts::new(config, None)
}

/// What the admin address serves besides metrics: nothing.
pub fn settings(_: &Config, _: &str, _: Option<&Arc<Upkeep>>) -> ProjectSettings {
    ProjectSettings
}
