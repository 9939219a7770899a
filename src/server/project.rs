//! Starts the part of a service that belongs to its project: its hosts, the DNS checks of its domains, and its
//! settings.

use crate::admin::ProjectSettings;
use crate::config::Config;
use petstore_base::error::Error;
use petstore_hosting::{Hosts, OnServed};

/// Opens the project if a hosting platform or an admin address is configured and the service may write. Returns the
/// project's hosts and, if there is an admin address, the settings that it serves. `guide` is the URL of the site, for
/// links.
///
/// # Errors
/// The kinds of a database that cannot be opened, or [`ErrorKind::Resources`](crate::ErrorKind::Resources) if there are
/// too few threads.
#[cfg(feature = "site")]
pub fn start(config: &Config, guide: &str) -> Result<(Hosts, Option<ProjectSettings>), Error> {
    use std::sync::Arc;

    use crate::app::pipeline::Authenticator;
    use crate::site::hosting::Project;
    use crate::site::html;
    use crate::store::cluster;
    use petstore_hosting::Upkeep;

    let is_needed = !config.read_only
        && cluster::require_file(&config.database).is_ok()
        && (config.hosting.platform_host.is_some() || config.admin.is_some());
    let upkeep = if is_needed {
        Some(Arc::new(Upkeep::start(Project::open(config)?)?))
    } else {
        None
    };
    let note_served = upkeep
        .clone()
        .map(|upkeep| -> OnServed { Arc::new(move |name| upkeep.note_served(name)) });
    let settings = config.admin.as_ref().map(|_| ProjectSettings {
        upkeep,
        assets: Arc::new(html::settings(config, guide)),
        // The key from the environment lacks the admin scope, so it gets a 403 with that message instead of a 401.
        authenticator: Authenticator::new(config.api_key.as_deref()),
    });
    Ok((hosts(config, note_served), settings))
}

/// Returns the hosts of the configuration. Without the feature `site` there is no project.
///
/// # Errors
/// Never fails.
#[cfg(not(feature = "site"))]
pub fn start(config: &Config, _: &str) -> Result<(Hosts, Option<ProjectSettings>), Error> {
    Ok((hosts(config, None), Some(ProjectSettings)))
}

/// The hosts of the project of a configuration: the one on its platform, and its own.
fn hosts(config: &Config, served: Option<OnServed>) -> Hosts {
    Hosts::new(&config.hosting, config.own_hosts(), served)
}
