//! The published project: its plan, its deploys, its domains and their redirects. A running service notices every
//! change at once, since its caches are valid for one version of the database only. Knows no SQL and no HTTP.
//!
//! `deploys.rs`, `domains.rs` and `redirects.rs` have the rules, and `error.rs` has a code for each violation.
//! `name.rs` parses names, `suffix.rs` has the Public Suffix List, and `record.rs` the DNS record to create for a name.
//! `verify.rs` checks a domain: it looks up its record, then `caa.rs` the CAA records, which may forbid its
//! certificate, and `finding.rs` has the result. `background.rs` has the work of a running service between requests.

mod background;
mod caa;
mod deploys;
pub mod dns;
mod domains;
mod error;
mod finding;
mod folder;
mod media_type;
mod name;
mod overview;
mod record;
mod redirects;
mod suffix;
#[cfg(test)]
pub mod testing;
mod verify;
#[cfg(test)]
mod verify_tests;

use std::fmt;

use crate::config::Hosting;
use crate::database::Writes;
use crate::model::Plan;
use crate::statements::{ProjectReads, ProjectWrites};
use petstore_base::clock::unix_time;
use petstore_base::error::Error;

pub use background::Upkeep;
pub use domains::Removed;
pub use error::{Refusal, RefusalCode};
pub use overview::{DomainView, Overview};
pub use record::DnsRecord;

/// The project of one database.
pub struct Project<W> {
    pub(crate) store: W,
    pub(crate) hosting: Hosting,
}

impl<W> fmt::Debug for Project<W> {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Project")
            .field("hosting", &self.hosting)
            .finish_non_exhaustive()
    }
}

impl<W: Writes> Project<W> {
    /// Opens the project of a configuration's database.
    ///
    /// # Errors
    /// [`ErrorKind::DatabaseMissing`](petstore_base::error::ErrorKind::DatabaseMissing) if the file does not exist, and the
    /// kinds of a database that cannot be opened.
    pub fn open(config: &W::Config) -> Result<Self, Error> {
        let (store, hosting) = W::open_project(config)?;
        Ok(Self { store, hosting })
    }

    /// Returns the state of the project, its domains and redirects.
    ///
    /// # Errors
    /// [`RefusalCode::STORAGE_UNAVAILABLE`] if the database cannot be read.
    pub fn overview(&self) -> Result<Overview, Refusal> {
        Ok(Overview::of(&self.store, &self.hosting, unix_time())?)
    }

    /// Sets the plan of the project.
    ///
    /// # Errors
    /// [`RefusalCode::DOMAINS_EXIST`] for the plan `free`, if the project has domains;
    /// [`RefusalCode::STORAGE_UNAVAILABLE`] if the database cannot be written.
    pub fn set_plan(&mut self, plan: Plan) -> Result<(), Refusal> {
        self.store.within_transaction(|project| {
            let names: Vec<String> = match plan {
                Plan::Free => project
                    .domains()?
                    .into_iter()
                    .map(|domain| domain.name)
                    .collect(),
                Plan::Pro | Plan::Enterprise => Vec::new(),
            };
            if !names.is_empty() {
                let message = format!(
                    "The plan free has no domains, and this project has {}. Remove them first: \
                     'petstore domain remove NAME'.",
                    names.join(", ")
                );
                return Err(Refusal::new(RefusalCode::DOMAINS_EXIST, message));
            }
            Ok(project.set_plan(plan)?)
        })
    }
}
