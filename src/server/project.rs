//! What a service does for its domains: it tells their names from others, looks at their DNS, and notes which
//! of them are asked for over HTTPS. Without a hosting platform it has none.

use std::sync::Arc;

use crate::admin::Settings;
use crate::project::{Checks, DomainCare, Project};
use crate::service::{Authenticator, Hosts, OnServed};
use crate::{Config, Error, site};

/// The running part of it. Dropping it ends it.
pub struct Domains {
    /// `None`: nobody asks for the project.
    checks: Option<Checks>,
    care: Option<DomainCare>,
}

impl Domains {
    /// Starts it, where a hosting platform or an admin address is set.
    ///
    /// # Errors
    /// Where no thread is to be had, or the database cannot be opened once more.
    pub fn start(config: &Config) -> Result<Self, Error> {
        let has_platform = config.hosting.platform_host.is_some();
        if !has_platform && config.admin.is_none() {
            return Ok(Self { checks: None, care: None });
        }
        let checks = Checks::new(Project::open(config)?);
        let care = has_platform.then(|| DomainCare::start(checks.clone()));
        Ok(Self { checks: Some(checks), care: care.transpose()? })
    }

    /// What tells the names of the project from others.
    pub fn hosts(&self, config: &Config) -> Hosts {
        let served = self.care.as_ref().map(DomainCare::served_names);
        Hosts::new(config, served.map(|names| -> OnServed { Arc::new(move |name| names.note(name)) }))
    }

    /// What answers on the admin address.
    ///
    /// # Errors
    /// Where nobody was to ask for the project.
    pub fn settings(&self) -> Result<Settings, Error> {
        let checks = self.checks.clone().ok_or_else(|| "the project is not open".to_owned())?;
        // The key of the environment has no admin scope.
        Ok(Settings {
            checks,
            assets: Arc::new(site::html::settings()),
            authenticator: Authenticator::new(None),
        })
    }
}
