//! Connects the rooms: opens the store, starts the workers and the gate, and stops them in order.

mod admin;
mod descriptors;
mod opened;
mod private_folder;
mod project;
mod running;
mod verify_backup;
mod workers;

use std::path::{Path, PathBuf};
use std::thread::JoinHandle;

use crate::config::Config;
use crate::ops::inventory::Inventory;
use crate::store::cluster;
use opened::Opened;
use petstore_base::error::{Error, ErrorKind};
use petstore_base::threads::start_thread;
use petstore_gate::Address;
use private_folder::PrivateFolder;
use running::Running;

pub use petstore_gate::{HealthCheck, Stopper};
pub use verify_backup::drill;

/// The value of the header field Server.
const SERVER: &str = "petstore";

/// A running service.
///
/// Dropping it stops the service like [`Stopper::stop`] and **blocks until the service has ended**: until the requests
/// in progress are answered, for at most [`Deadlines::drain`](crate::Deadlines::drain) (10 s by default), and then
/// until everything is flushed to the disk: if the file was deleted, until a disk takes a copy. Call [`Server::wait`] to
/// get the reason if it ended on its own.
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
    admin_address: Option<Address>,
    database: PathBuf,
    read_only: bool,
}

impl Server {
    /// Binds the addresses, opens the database, and serves clients in its own threads until it is stopped.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if a field cannot be used, [`ErrorKind::AddressInUse`] or
    /// [`ErrorKind::AddressUnavailable`] for an address, [`ErrorKind::DatabaseInUse`] if another service has the
    /// database, [`ErrorKind::LogForeign`] or [`ErrorKind::LogOrphaned`] for its write-ahead log, the kinds of a
    /// database that cannot be opened or created, and [`ErrorKind::Resources`] if there are too few open files or
    /// threads. On failure, nothing of the service keeps running.
    pub fn start(config: Config) -> Result<Self, Error> {
        Self::start_after(config, || Ok(()))
    }

    /// Starts like [`Server::start`], and calls `prepare` once, when the database is open and the addresses are bound,
    /// but before the first response. It can create an API key, for example.
    ///
    /// # Errors
    /// Those of [`Server::start`], and that of `prepare`.
    pub fn start_after(
        config: Config,
        prepare: impl FnOnce() -> Result<(), Error>,
    ) -> Result<Self, Error> {
        let opened = Opened::open(config)?;
        let address = opened.listening.address.clone();
        let admin_address = opened
            .admin
            .as_ref()
            .map(|listening| listening.address.clone());
        let summary = opened.summary();
        let (database, read_only) = (opened.config.database.clone(), opened.config.read_only);
        prepare()?;
        let stopper = Stopper::default();
        let running = Running::start(opened, &stopper)?;
        let gate = start_thread("gate", move || running.serve())?;
        Ok(Self {
            address,
            summary,
            stopper,
            gate: Some(gate),
            admin_address,
            database,
            read_only,
        })
    }

    /// Returns the address of the service, with the actual port.
    pub fn address(&self) -> &Address {
        &self.address
    }

    /// Returns the admin address, with the actual port; `None` if none was configured.
    pub fn admin_address(&self) -> Option<&Address> {
        self.admin_address.as_ref()
    }

    /// Returns one line for the log that describes the service: version, address, database and limits.
    pub fn summary(&self) -> &str {
        &self.summary
    }

    /// Returns the path of the database, or the address of its cluster. That of an ephemeral server is deleted with it.
    ///
    /// ```
    /// use petstore::{Config, Ephemeral, KeyRing, KeyScope, Server};
    ///
    /// let config = Config::new().listen(([127, 0, 0, 1], 0)).ephemeral(Ephemeral::default());
    /// let server = Server::start(config)?;
    /// KeyRing::open(server.database())?.add("reader", None, KeyScope::ReadOnly, |key| {
    ///     println!("{key}");
    ///     Ok(())
    /// })?;
    /// # Ok::<(), petstore::Error>(())
    /// ```
    pub fn database(&self) -> &Path {
        &self.database
    }

    /// Opens the pets of this server without HTTP: see [`Inventory`]. It only reads if the server does. Drop it before an
    /// ephemeral server, whose database is deleted with the server.
    ///
    /// ```
    /// use petstore::{Config, Ephemeral, NewPet, Server};
    ///
    /// let config = Config::new().listen(([127, 0, 0, 1], 0)).ephemeral(Ephemeral::default());
    /// let server = Server::start(config)?;
    /// let rex = server.inventory()?.add(&NewPet::new("Rex", 3))?;
    /// println!("curl http://{}/v1/pets/{}", server.address(), rex.id);
    /// # Ok::<(), petstore::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`ErrorKind::DatabaseMissing`] if the database was deleted, and those of [`Inventory::open`].
    pub fn inventory(&self) -> Result<Inventory, Error> {
        if !cluster::exists(&self.database) {
            return Err(Error::no_database(&self.database));
        }
        if self.read_only {
            Inventory::open_to_read(&self.database)
        } else {
            Inventory::open(&self.database)
        }
    }

    /// Returns whether the service still runs; it does until its last requests are answered. It ends after
    /// [`Stopper::stop`] or on a failure; then [`Server::wait`] returns at once.
    pub fn is_running(&self) -> bool {
        self.gate.as_ref().is_some_and(|gate| !gate.is_finished())
    }

    /// Creates a handle for health checks from any thread.
    pub fn health_check(&self) -> HealthCheck {
        HealthCheck::new(self.stopper.clone(), "/healthz")
    }

    /// Creates a handle that stops the service from any thread.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Waits until the service has ended: until the requests in progress are answered and everything is flushed to the
    /// disk.
    ///
    /// # Errors
    /// The reason if the service ended without [`Stopper::stop`], such as
    /// [`ErrorKind::DatabaseMoved`].
    pub fn wait(mut self) -> Result<(), Error> {
        match self.gate.take().map(JoinHandle::join) {
            Some(Ok(Err(error))) => Err(error),
            Some(Err(_)) => Err(Error::new(
                ErrorKind::Internal,
                "the gate has died; the log has the cause",
            )),
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
