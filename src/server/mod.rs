//! Puts the rooms together: opens the store, starts the lanes and the gate, and ends them in order.

mod admin;
mod descriptors;
mod lanes;
#[cfg_attr(not(feature = "site"), path = "no_project.rs", warn(dead_code, unused_imports))]
mod project;
mod running;
mod socket_folder;

use std::net::SocketAddr;
use std::thread::JoinHandle;

use crate::config::Address;
use crate::config::{Config, Ephemeral};
use crate::error::{Error, ErrorKind};
use crate::gate::Listening;
use crate::keys::secret;
use crate::store::{self, OpenStore};
use descriptors::connections_allowed;
use running::Running;
use socket_folder::SocketFolder;

pub use crate::gate::{HealthCheck, Stopper};

/// A running service. Dropping it ends the service like [`Stopper::stop`], and waits for the end.
pub struct Server {
    address: Address,
    summary: String,
    stopper: Stopper,
    gate: Option<JoinHandle<Result<(), Error>>>,
    admin_address: Option<SocketAddr>,
}

impl Server {
    /// Binds the addresses, opens the database, and serves clients in threads of its own until it is stopped.
    ///
    /// # Errors
    /// [`ErrorKind::Config`] if a setting cannot be used, [`ErrorKind::AddressInUse`] or
    /// [`ErrorKind::AddressUnavailable`] for an address, [`ErrorKind::DatabaseInUse`] if another service has the
    /// database, [`ErrorKind::LogForeign`] or [`ErrorKind::LogOrphaned`] for its write-ahead log, the kinds of a
    /// database that cannot be opened or created, and [`ErrorKind::Resources`] if there are too few open files
    /// or threads. Nothing of the service is left then.
    pub fn start(mut config: Config) -> Result<Self, Error> {
        check_api_key(&config)?;
        config.ephemeral.as_ref().map_or(Ok(()), Ephemeral::check)?;
        let limits = connections_allowed(&config)?;
        // Before the database, so that a start that fails makes none.
        let bound = Bound::new(&config)?;
        let readers = config.workers.max(1);
        let store = match &config.ephemeral {
            Some(ephemeral) => {
                config.database = bound.folder.file("pets.db");
                store::open_ephemeral(&config.database, readers, ephemeral.sample)?
            }
            None => store::open_for_service(&config.database, readers)?,
        };
        let address = bound.listening.address().clone();
        let summary = summary(&config, &address, limits.0, &store);
        let stopper = Stopper::default();
        let running = Running::start(&config, limits, bound, store, &stopper)?;
        let admin_address = running.admin_address();
        let gate = std::thread::Builder::new()
            .name("gate".to_owned())
            .spawn(move || running.serve())
            .map_err(Error::no_thread)?;
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

    /// Creates a handle that checks from any thread whether the service answers.
    pub fn health_check(&self) -> HealthCheck {
        HealthCheck::new(self.stopper.clone())
    }

    /// Creates a handle that ends the service from any thread.
    pub fn stopper(&self) -> Stopper {
        self.stopper.clone()
    }

    /// Waits until the service has ended: the requests under way are answered, and everything is on the disk.
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

/// What a start reserves before it opens the database.
struct Bound {
    folder: SocketFolder,
    listening: Listening,
    admin: Option<Listening>,
}

impl Bound {
    fn new(config: &Config) -> Result<Self, Error> {
        Ok(Self {
            folder: SocketFolder::new()?,
            listening: Listening::bind(&config.listen)?,
            admin: config.admin.map(|address| Listening::bind(&address.into())).transpose()?,
        })
    }
}

fn check_api_key(config: &Config) -> Result<(), Error> {
    if config.api_key.as_ref().is_none_or(|key| secret::is_sendable(key)) {
        return Ok(());
    }
    let line = "the API key cannot be sent as a bearer token; use letters, digits and - . _ ~ + /";
    Err(Error::new(ErrorKind::Config("api_key"), line))
}

/// What is started, in one line.
fn summary(config: &Config, address: &Address, max_connections: usize, store: &OpenStore) -> String {
    format!(
        "petstore {} listens on {address}: {} database {}, schema version {}, at most {max_connections} connections, workers that read: {}",
        env!("CARGO_PKG_VERSION"),
        if store.claim.is_new() { "new" } else { "existing" },
        std::path::absolute(&config.database).unwrap_or_else(|_| config.database.clone()).display(),
        store::SCHEMA_VERSION,
        store.readers.len(),
    )
}
