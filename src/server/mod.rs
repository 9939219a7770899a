//! Puts the rooms together: opens the store, starts the workers and the gate, and ends them in order.

mod admin;
mod descriptors;
mod private_folder;
mod project;
mod running;
mod verify_backup;
mod workers;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::base::config::{Address, Config};
use crate::base::error::{Error, ErrorKind};
use crate::base::threads::start_thread;
use crate::net::gate::Listening;
use crate::ops::keys::secret;
use crate::ops::maintenance::last_backup;
use crate::store::{self, OpenStore};
use descriptors::available_connections;
use private_folder::PrivateFolder;
use running::{Opened, Running};

pub use crate::net::gate::{HealthCheck, Stopper};
pub use verify_backup::drill;

/// A running service.
///
/// Dropping it ends the service like [`Stopper::stop`] and **blocks until it has ended**: until the requests in progress
/// are answered, for [`Deadlines::drain`](crate::Deadlines::drain) at most (10 s by default), and then until the
/// disk has everything. Call [`Server::wait`] to learn how it ended.
///
/// ```
/// # fn main() -> Result<(), petstore::Error> {
/// # let folder = std::env::temp_dir().join(format!("petstore-doc-server-{}", std::process::id()));
/// # std::fs::create_dir_all(&folder).unwrap();
/// let config = petstore::Config::new().listen(([127, 0, 0, 1], 0)).database(folder.join("pets.db"));
/// let server = petstore::Server::start(config)?;
/// assert!(server.is_running());
///
/// // A stopper can move to another thread, such as one that waits for signals.
/// let stopper = server.stopper();
/// std::thread::spawn(move || stopper.stop());
/// server.wait()?;
/// # std::fs::remove_dir_all(&folder).unwrap();
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Server {
    address: Address,
    summary: String,
    stopper: Stopper,
    gate: Option<JoinHandle<Result<(), Error>>>,
    admin_address: Option<SocketAddr>,
}

impl Server {
    /// Binds the addresses, opens the database, and serves clients in its own threads until it is stopped.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if a field cannot be used, [`ErrorKind::AddressInUse`] or
    /// [`ErrorKind::AddressUnavailable`] for an address, [`ErrorKind::DatabaseInUse`] if another service has the
    /// database, [`ErrorKind::LogForeign`] or [`ErrorKind::LogOrphaned`] for its write-ahead log, the kinds of a
    /// database that cannot be opened or created, and [`ErrorKind::Resources`] if there are too few open files
    /// or threads. Nothing of the service is left then.
    pub fn start(config: Config) -> Result<Self, Error> {
        Self::start_after(config, || Ok(()))
    }

    /// Starts like [`Server::start`], and calls `prepare` before the first response, once the database is open and the
    /// addresses are bound. It can create an API key, for example.
    ///
    /// # Errors
    /// Those of [`Server::start`], and that of `prepare`.
    pub fn start_after(config: Config, prepare: impl FnOnce() -> Result<(), Error>) -> Result<Self, Error> {
        check_api_key(&config)?;
        let mut config = config.checked()?;
        config.database = store::absolute(&config.database)?;
        let max_connections = available_connections(&config)?;
        // Before the database, so that a start that fails makes none.
        let listening = Listening::bind(&config.listen)?;
        let admin = config.admin.map(|address| Listening::bind(&address.into())).transpose()?;
        let admin_address = admin.as_ref().and_then(|listening| listening.address.tcp());
        let mut folder = None;
        let store = match &config.ephemeral {
            Some(ephemeral) => {
                let own = folder.insert(PrivateFolder::new(&config.database)?);
                config.database = own.file("pets.db");
                store::open_ephemeral(&config.database, config.workers, ephemeral.sample)?
            }
            None if config.read_only => store::open_only_to_read(&config.database, config.workers)?,
            None => open_for_service(&config)?,
        };
        let address = listening.address.clone();
        let summary = summary(&config, &address, max_connections, &store);
        prepare()?;
        let stopper = Stopper::default();
        let running = Running::start(Opened {
            config: Arc::new(config),
            max_connections,
            listening,
            admin,
            store,
            folder,
            stopper: stopper.clone(),
        })?;
        let gate = start_thread("gate", move || running.serve())?;
        Ok(Self { address, summary, stopper, gate: Some(gate), admin_address })
    }

    /// The address that the service listens on, with the actual port.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// The admin address, with the actual port; `None` if none was configured.
    pub fn admin_address(&self) -> Option<SocketAddr> {
        self.admin_address
    }

    /// One line for the log that describes the service: version, address, database and limits.
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// Returns whether the service still runs. It has ended after [`Stopper::stop`], or because it could not go on; then
    /// [`Server::wait`] returns at once, with the reason. While it answers its last requests, it still runs.
    pub fn is_running(&self) -> bool {
        self.gate.as_ref().is_some_and(|gate| !gate.is_finished())
    }

    /// Creates a handle that checks from any thread whether the service answers.
    pub fn health_check(&self) -> HealthCheck {
        HealthCheck::new(self.stopper.clone())
    }

    /// Creates a handle that ends the service from any thread.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Waits until the service has ended: the requests in progress are answered, and everything is on disk.
    ///
    /// # Errors
    /// The reason if the service ended without [`Stopper::stop`], such as
    /// [`ErrorKind::DatabaseMoved`].
    pub fn wait(mut self) -> Result<(), Error> {
        match self.gate.take().map(JoinHandle::join) {
            Some(Ok(Err(error))) => Err(error),
            Some(Err(_)) => Err(Error::new(ErrorKind::Internal, "the gate has died; the log has the cause")),
            Some(Ok(Ok(()))) | None => Ok(()),
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(gate) = self.gate.take() {
            self.stopper.stop();
            let _ = gate.join();
        }
    }
}

/// Opens or creates the database. Warns if there is a backup of one that was there before.
fn open_for_service(config: &Config) -> Result<OpenStore, Error> {
    let database = &config.database;
    let lost = if store::exists(database) { None } else { last_backup(database) };
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

fn check_api_key(config: &Config) -> Result<(), Error> {
    if config.api_key.as_ref().is_none_or(|key| secret::is_sendable(key)) {
        return Ok(());
    }
    let line = "the API key cannot be sent as a bearer token; use letters, digits and - . _ ~ + /";
    Err(Error::new(ErrorKind::Config("api_key"), line))
}

/// One line for the log that describes the service.
fn summary(config: &Config, address: &Address, max_connections: usize, store: &OpenStore) -> String {
    format!(
        "petstore {} listens on {address}: {}, schema version {}, at most {max_connections} connections with {} MiB, workers that read: {}",
        env!("CARGO_PKG_VERSION"),
        store.about,
        store::SCHEMA_VERSION,
        config.client_memory >> 20,
        store.readers.len(),
    )
}
