//! Opens the addresses and the database, before the threads of the service start.

use std::sync::Arc;

use super::descriptors::available_connections;
use super::private_folder::PrivateFolder;
use crate::base::clock;
use crate::base::config::Config;
use crate::base::error::{Error, ErrorKind, fail};
use crate::net::gate::Listening;
use crate::ops::keys::secret;
use crate::ops::maintenance::last_backup;
use crate::store::{self, OpenStore};

/// The parts of a service that are opened before its threads start.
pub struct Opened {
    pub config: Arc<Config>,
    pub max_connections: usize,
    pub listening: Listening,
    pub admin: Option<Listening>,
    pub store: OpenStore,
    /// The folder of an ephemeral database.
    pub folder: Option<PrivateFolder>,
}

impl Opened {
    /// Checks the configuration, binds the addresses, and opens the database.
    ///
    /// # Errors
    /// Those of [`Server::start`](crate::Server::start), except for threads.
    pub fn open(config: Config) -> Result<Self, Error> {
        if config
            .api_key
            .as_ref()
            .is_some_and(|key| !secret::is_sendable(key))
        {
            let line =
                "the API key cannot be sent as a bearer token; use letters, digits and - . _ ~ + /";
            return fail(ErrorKind::Config("api_key"), line);
        }
        let mut config = config.checked()?;
        config.database = store::absolute(&config.database)?;
        if config.hosting.platform_host.is_some() {
            store::require_file(&config.database)?;
        }
        let max_connections = available_connections(&config)?;
        // Before the database, so that a start that fails here creates no database.
        let listening = Listening::bind(&config.listen)?;
        let admin = config.admin.as_ref().map(Listening::bind).transpose()?;
        clock::warn_if_early(clock::unix_time());
        let mut folder = None;
        let store = match &config.ephemeral {
            Some(ephemeral) => {
                let private = folder.insert(PrivateFolder::new(&config.database)?);
                config.database = private.path.join("pets.db");
                store::open_ephemeral(&config.database, config.workers, ephemeral.sample)?
            }
            None if config.read_only => store::open_only_to_read(&config.database, config.workers)?,
            None => open_for_service(&config)?,
        };
        Ok(Self {
            config: Arc::new(config),
            max_connections,
            listening,
            admin,
            store,
            folder,
        })
    }

    /// One line for the log that describes the service.
    pub fn summary(&self) -> String {
        format!(
            "petstore {} listens on {}: {}, schema version {}, at most {} connections with {} MiB, workers that read: {}",
            env!("CARGO_PKG_VERSION"),
            self.listening.address,
            self.store.about,
            store::SCHEMA_VERSION,
            self.max_connections,
            self.config.client_memory >> 20,
            self.store.readers.len(),
        )
    }
}

/// Opens or creates the database. Warns if a new one is created although there is a note about a backup.
fn open_for_service(config: &Config) -> Result<OpenStore, Error> {
    let database = &config.database;
    let lost = if store::exists(database) {
        None
    } else {
        last_backup(database)
    };
    let opened = store::open_for_service(database, config.workers)?;
    if let Some(note) = lost {
        log::warn!(
            "there was no database {}, although its last backup has {} pets, so a new one was created; --require-database refuses this",
            database.display(),
            note.pets
        );
    }
    Ok(opened)
}
