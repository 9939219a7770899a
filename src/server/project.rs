//! What a service does for its project: tells its names from others, checks the DNS of its domains, and serves the
//! settings. Without a hosting platform or an admin address it does nothing.

use std::sync::Arc;

use crate::admin::ProjectSettings;
use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::project::Project;
pub(super) use crate::project::Upkeep;
use crate::service::{Authenticator, Hosts, OnServed};
use crate::site;

/// Starts the upkeep of the project if a hosting platform or an admin address is set.
///
/// # Errors
/// Every kind of a database that cannot be opened, or [`ErrorKind::Resources`].
pub fn start(config: &Config) -> Result<Option<Arc<Upkeep>>, Error> {
    if config.hosting.platform_host.is_none() && config.admin.is_none() {
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

/// What the admin address serves besides metrics.
///
/// # Errors
/// [`ErrorKind::Internal`] if the upkeep was not started.
pub fn settings(upkeep: Option<&Arc<Upkeep>>) -> Result<ProjectSettings, Error> {
    let upkeep = upkeep.cloned().ok_or_else(|| Error::new(ErrorKind::Internal, "the project is not open"))?;
    // The key of the environment has no admin scope.
    let authenticator = Authenticator::new(None);
    Ok(ProjectSettings { upkeep, assets: Arc::new(site::html::settings()), authenticator })
}
