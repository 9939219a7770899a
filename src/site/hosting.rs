//! The project of a database in a file.

use std::time::Duration;

use crate::app::api::is_built_in;
use crate::config::Config;
use crate::store::{Writer, cluster};
use petstore_base::error::Error;
use petstore_hosting::{Hosting, Value, Writes};

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
pub type Project = petstore_hosting::Project<Writer>;

impl Writes for Writer {
    type Config = Config;

    fn open_project(config: &Config) -> Result<(Self, Hosting), Error> {
        if !cluster::exists(&config.database) {
            return Err(Error::no_database(&config.database));
        }
        cluster::require_file(&config.database)?;
        let mut store = Self::open(&config.database)?;
        // The service does, and two copies would help nobody.
        store.never_rescue();
        Ok((store, config.hosting.clone()))
    }

    fn is_built_in(path: &str) -> bool {
        is_built_in(path)
    }

    fn write(&mut self, sql: &str, values: &[Value]) -> Result<usize, Error> {
        self.write_for_hosting(sql, values)
    }

    fn within_transaction<T, E: From<Error>>(
        &mut self,
        work: impl FnOnce(&mut Self) -> Result<T, E>,
    ) -> Result<T, E> {
        self.transact_or(|error| Error::from(error).into(), work)
    }

    fn set_patience(&mut self, patience: Duration) {
        self.set_busy_timeout(patience);
    }
}
