//! In place of what a service does for its domains, in a build without the feature `site`: nothing.

use crate::admin::Settings;
use crate::service::Hosts;
use crate::{Config, Error};

/// Does nothing.
pub struct Domains;

impl Drop for Domains {
    fn drop(&mut self) {}
}

impl Domains {
    /// Starts nothing.
    ///
    /// # Errors
    /// None.
    pub fn start(_: &Config) -> Result<Self, Error> {
        Ok(Self)
    }

    /// What tells the names of the project from others.
    pub fn hosts(&self, config: &Config) -> Hosts {
        Hosts::new(config, None)
    }

    /// What the admin address serves besides metrics.
    ///
    /// # Errors
    /// None.
    pub fn settings(&self) -> Result<Settings, Error> {
        Ok(Settings)
    }
}
