//! Opens the addresses and the database, before the threads of the service start.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::descriptors::available_connections;
use super::private_folder::PrivateFolder;
use crate::config::Config;
use crate::ops::keys::secret;
use crate::ops::maintenance::last_backup;
use crate::store::cluster::{self, Cluster};
use crate::store::{self, OpenStore};
use petstore_base::clock;
use petstore_base::error::{Error, ErrorKind, fail};
use petstore_gate::Listening;

/// The parts of a service that are opened before its threads start.
pub struct Opened {
    pub config: Arc<Config>,
    pub max_connections: usize,
    pub listening: Listening,
    pub admin: Option<Listening>,
    /// The database, or the private one of a service on a cluster.
    pub store: OpenStore,
    /// Where that is.
    pub file: PathBuf,
    /// The folder of an ephemeral or a private database.
    pub folder: Option<PrivateFolder>,
    /// The connections to a cluster.
    pub cluster: Option<OpenCluster>,
}

/// The connections of a service to its cluster.
pub struct OpenCluster {
    pub writer: Cluster,
    /// One for each worker that reads.
    pub readers: Vec<Cluster>,
    /// Counts the pets for the admin address.
    pub counter: Cluster,
    /// Updates the copy of the keys for the admin address.
    pub refresher: Cluster,
}

impl OpenCluster {
    /// Opens as many connections as the service needs; `None` if its database is a file.
    fn at(config: &Config) -> Result<Option<Self>, Error> {
        let Some(writer) = Cluster::at(&config.database)? else {
            return Ok(None);
        };
        let open = || Cluster::open_existing(&config.database);
        let readers: Result<_, _> = (0..config.workers).map(|_| open()).collect();
        Ok(Some(Self {
            writer,
            readers: readers?,
            counter: open()?,
            refresher: open()?,
        }))
    }
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
        config.database = cluster::absolute(&config.database)?;
        if config.hosting.platform_host.is_some() {
            cluster::require_file(&config.database)?;
        }
        let max_connections = available_connections(&config)?;
        // Before the database, so that a start that fails here creates no database.
        let listening = Listening::bind(&config.listen)?;
        let admin = config.admin.as_ref().map(Listening::bind).transpose()?;
        clock::warn_if_early(clock::unix_time());
        if config.read_only && cluster::is_cluster(&config.database) {
            let message = "a service that only reads needs a file, and the database is a cluster; give clients a read-only key instead";
            return fail(ErrorKind::Config("read_only"), message);
        }
        let (mut folder, mut cluster) = (None, None);
        let mut private = |database: &Path| -> Result<PathBuf, Error> {
            let made = folder.insert(PrivateFolder::new(database)?);
            Ok(made.path.join("pets.db"))
        };
        let mut file = config.database.clone();
        let store = if let Some(ephemeral) = &config.ephemeral {
            file = private(&config.database)?;
            config.database.clone_from(&file);
            store::open_ephemeral(&file, config.workers, ephemeral.sample)?
        } else if config.read_only {
            store::open_only_to_read(&file, config.workers)?
        } else if let Some(opened) = OpenCluster::at(&config)? {
            file = private(&config.database)?;
            let about = opened.writer.describe()?;
            cluster = Some(opened);
            OpenStore {
                about,
                ..store::open_ephemeral(&file, config.workers, 0)?
            }
        } else {
            open_for_service(&config)?
        };
        Ok(Self {
            config: Arc::new(config),
            max_connections,
            listening,
            admin,
            store,
            file,
            folder,
            cluster,
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
