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
mod verify;

#[cfg(test)]
mod verify_tests;

use std::fmt;

use crate::cluster;
use crate::config::{Config, Hosting};
use crate::store::Writer;
use petstore_base::clock::unix_time;
use petstore_base::error::Error;

pub use crate::model::{Deploy, Domain, DomainState, Plan, Redirect};
pub(crate) use background::Upkeep;
pub use domains::Removed;
pub use error::{Refusal, RefusalCode};
pub use overview::{DomainView, Overview};
pub use record::DnsRecord;

/// The project of one database.
///
/// ```no_run
/// use petstore::{Config, Plan, Project};
///
/// let mut config = Config::new().database("pets.db");
/// config.hosting.platform_host = Some("sites.example.net".to_owned());
/// let mut project = Project::open(&config)?;
/// project.set_plan(Plan::Pro)?;
/// project.deploy(None)?;
/// println!("{:?}", project.add("pets.example.com", false)?);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Project {
    store: Writer,
    hosting: Hosting,
}

impl fmt::Debug for Project {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.debug_struct("Project")
            .field("hosting", &self.hosting)
            .finish_non_exhaustive()
    }
}

impl Project {
    /// Opens the project of a configuration's database.
    ///
    /// # Errors
    /// [`DatabaseMissing`](crate::ErrorKind::DatabaseMissing) if the file does not exist, and the kinds of a database
    /// that cannot be opened.
    pub fn open(config: &Config) -> Result<Self, Error> {
        if !cluster::exists(&config.database) {
            return Err(Error::no_database(&config.database));
        }
        cluster::require_file(&config.database)?;
        let store = Writer::open(&config.database)?;
        Ok(Self {
            store,
            hosting: config.hosting.clone(),
        })
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
        self.store.transact(|project| {
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

#[cfg(test)]
mod tests {
    use super::domains::Occasion;
    use super::*;
    use crate::model::{DomainEvent, Reason};
    use crate::site::project::finding::Finding;
    use petstore_base::testing::Folder;

    /// A deployed project with a paid plan and a platform.
    pub fn project() -> (Folder, Project) {
        let folder = Folder::new();
        let store = Writer::open(&folder.database()).unwrap();
        let hosting = Hosting {
            platform_host: Some("sites.test".to_owned()),
            ..Hosting::default()
        };
        let mut project = Project { store, hosting };
        project.set_plan(Plan::Pro).unwrap();
        project.deploy(None).unwrap();
        (folder, project)
    }

    /// The periodic check of a domain with this result.
    pub fn check(
        project: &mut Project,
        name: &str,
        event: DomainEvent,
        code: &str,
    ) -> Result<(DomainView, bool), Refusal> {
        let reason = (!code.is_empty()).then(|| Reason {
            code: code.to_owned(),
            message: String::new(),
        });
        project.record(
            name,
            &Finding { event, reason },
            Occasion::Schedule,
            unix_time(),
        )
    }

    pub fn code<T: std::fmt::Debug>(refused: Result<T, Refusal>) -> &'static str {
        refused.unwrap_err().code.name
    }
}
