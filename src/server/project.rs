//! What a service does for its project: tells its names from others, checks the DNS of its domains, and serves the
//! settings. Without a hosting platform or an admin address, or if it only reads, it does nothing.

use std::sync::Arc;

use crate::admin::ProjectSettings;
use crate::app::pipeline::{Authenticator, Hosts, OnServed};
use crate::base::config::Config;
use crate::base::error::Error;
use crate::site::html;
use crate::site::project::Project;
pub(super) use crate::site::project::Upkeep;

/// Starts the upkeep of the project if a hosting platform or an admin address is set.
///
/// # Errors
/// Every kind of a database that cannot be opened, or [`ErrorKind::Resources`](crate::ErrorKind::Resources).
pub fn start(config: &Config) -> Result<Option<Arc<Upkeep>>, Error> {
    let is_shown = config.hosting.platform_host.is_some() || config.admin.is_some();
    if !is_shown || config.read_only {
        return Ok(None);
    }
    Ok(Some(Arc::new(Upkeep::start(Project::open(config)?)?)))
}

/// Tells the names of the project from others.
pub fn hosts(config: &Config, upkeep: Option<&Arc<Upkeep>>) -> Hosts {
    let note = |upkeep: &Arc<Upkeep>| -> OnServed {
        let upkeep = Arc::clone(upkeep);
        Arc::new(move |name| upkeep.note_served(name))
    };
    Hosts::new(config, upkeep.map(note))
}

/// What the admin address serves besides metrics. `site` is the address of the site, for links.
pub fn settings(config: &Config, site: &str, upkeep: Option<&Arc<Upkeep>>) -> ProjectSettings {
    // The key of the environment lacks the admin scope, and is told so.
    let authenticator = Authenticator::new(config.api_key.as_deref());
    ProjectSettings { upkeep: upkeep.cloned(), assets: Arc::new(html::settings(config, site)), authenticator }
}
