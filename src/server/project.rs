//! The part of a service that is about its project: it distinguishes the project's names from others, checks the DNS of
//! its domains, and serves the settings.

use crate::admin::ProjectSettings;
use crate::app::pipeline::Hosts;
use crate::base::config::Config;
use crate::base::error::Error;

/// Opens the project if a hosting platform or an admin address is set and the service may write. Returns the hosts that
/// it has, and the settings for the admin address if there is one. `guide` is the address of the site, for links.
///
/// # Errors
/// Every kind of a database that cannot be opened, or [`ErrorKind::Resources`](crate::ErrorKind::Resources).
#[cfg(feature = "site")]
pub fn start(config: &Config, guide: &str) -> Result<(Hosts, Option<ProjectSettings>), Error> {
    use std::sync::Arc;

    use crate::app::pipeline::{Authenticator, OnServed};
    use crate::site::html;
    use crate::site::project::{Project, Upkeep};

    let is_needed = !config.read_only && (config.hosting.platform_host.is_some() || config.admin.is_some());
    let upkeep = if is_needed { Some(Arc::new(Upkeep::start(Project::open(config)?)?)) } else { None };
    let note_served =
        upkeep.clone().map(|upkeep| -> OnServed { Arc::new(move |name| upkeep.note_served(name)) });
    let settings = config.admin.map(|_| ProjectSettings {
        upkeep,
        assets: Arc::new(html::settings(config, guide)),
        // The key of the environment lacks the admin scope, and the response says so.
        authenticator: Authenticator::new(config.api_key.as_deref()),
    });
    Ok((Hosts::new(config, note_served), settings))
}

/// Without the site there is no project, and every name is accepted.
///
/// # Errors
/// Never fails.
#[cfg(not(feature = "site"))]
pub fn start(config: &Config, _: &str) -> Result<(Hosts, Option<ProjectSettings>), Error> {
    Ok((Hosts::new(config, None), Some(ProjectSettings)))
}
