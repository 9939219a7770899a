//! Puts the rooms together: opens the store, starts the lanes and the gate, and ends them in order.

mod admin;
mod descriptors;
#[cfg_attr(not(feature = "site"), path = "no_project.rs")]
mod project;
mod socket_folder;

use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;

use crate::config::Address;
use crate::gate::{BUDGET, Gate, GateConfig, LaneAddress, Listening, Origins, TrustedProxies};
use crate::keys::secret;
use crate::lane::LaneKind;
use crate::metrics::Metrics;
use crate::service::{self, Authenticator, Lost, Parts, ReadService, WriteService};
use crate::site;
use crate::store::{self, OpenStore};
use crate::worker::Worker;
use crate::{Config, Error, ErrorKind};
use admin::Admin;
use descriptors::connections_allowed;
use socket_folder::SocketFolder;

pub use crate::gate::{HealthCheck, Stopper};

/// The most requests in one lane for reading at once, and their bytes: 64 lists of 100 animals.
const READ_WINDOW: usize = 64;
const READ_WINDOW_BYTES: usize = 512 * 1024;
/// The most requests in the lane for writing at once, and their bytes: they share a flush of the disk.
const WRITE_WINDOW: usize = 512;
const WRITE_WINDOW_BYTES: usize = 256 * 1024;

/// A running service. Dropping it ends the service like [`Stopper::stop`], and waits for the end.
pub struct Server {
    address: Address,
    summary: String,
    stopper: Stopper,
    gate: Option<JoinHandle<Result<(), String>>>,
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
    pub fn start(config: Config) -> Result<Self, Error> {
        if config.api_key.as_ref().is_some_and(|key| !secret::is_sendable(key)) {
            let line =
                "the API key cannot be sent as a bearer token; it may have letters, digits and - . _ ~ + /";
            return Err(Error::new(ErrorKind::Config("api_key"), line));
        }
        let (max_connections, max_refused) = connections_allowed(&config)?;
        // Before the database, so that a start that fails makes none.
        let folder = SocketFolder::new()?;
        let listening = Listening::bind(&config.listen)?;
        let admin = config.admin.map(|address| Listening::bind(&address.into())).transpose()?;
        let OpenStore { writer, readers, loss, claim } =
            store::open_for_service(&config.database, config.workers.max(1))?;
        let address = listening.address().clone();
        let summary = format!(
            "petstore {} listens on {address}: {} database {}, schema version {}, at most {max_connections} connections, workers that read: {}",
            env!("CARGO_PKG_VERSION"),
            if claim.is_new() { "new" } else { "existing" },
            std::path::absolute(&config.database).unwrap_or_else(|_| config.database.clone()).display(),
            writer.schema_version(),
            config.workers.max(1),
        );

        let stopper = Stopper::default();
        let died = |name: &str| {
            let (stopper, name) = (stopper.clone(), name.to_owned());
            move || stopper.fail(format!("the {name} has died"))
        };
        let assets = Arc::new(site::assets(&config, &address));
        let lost: Lost = {
            let (stopper, loss) = (stopper.clone(), Arc::clone(&loss));
            Arc::new(move |error| {
                loss.declare(error);
                stopper.stop_because(format!("{error}; put the file back, or restore a backup"));
            })
        };
        let mut metrics = match config.admin {
            Some(_) => Metrics::watched(BUDGET),
            None => Metrics::default(),
        };
        service::announce(&mut metrics);
        let upkeep = project::start(&config)?;
        let parts = Parts {
            authenticator: Authenticator::new(config.api_key.as_deref()),
            lost,
            metrics: metrics.clone(),
            hosts: project::hosts(&config, upkeep.as_ref()),
        };
        let (mut workers, mut lanes) = (Vec::new(), Vec::new());
        for (i, store) in readers.into_iter().enumerate() {
            let (name, path) = (format!("reader-{i}"), folder.socket(&format!("read-{i}")));
            let service = ReadService::new(store, Arc::clone(&assets), parts.clone());
            let died = died(&name);
            workers.push(Worker::start(&path, name, service, died)?);
            lanes.push(LaneAddress {
                path,
                kind: LaneKind::Read,
                window: READ_WINDOW,
                window_bytes: READ_WINDOW_BYTES,
            });
        }
        let (name, path) = ("writer".to_owned(), folder.socket("write"));
        let is_stopping = {
            let stopper = stopper.clone();
            move || stopper.is_stopping()
        };
        let service = WriteService::new(writer, parts, is_stopping);
        let died = died(&name);
        workers.push(Worker::start(&path, name, service, died)?);
        lanes.push(LaneAddress {
            path,
            kind: LaneKind::Write,
            window: WRITE_WINDOW,
            window_bytes: WRITE_WINDOW_BYTES,
        });

        let admin = admin.map(|listening| {
            let stopper = stopper.clone();
            let died = move |reason| stopper.stop_because(format!("the admin address has died: {reason}"));
            Admin::start(&config, listening, &metrics, &folder, &project::settings(upkeep.as_ref())?, died)
        });
        let admin = admin.transpose()?;
        let admin_address = admin.as_ref().and_then(Admin::address);
        let gate_config = GateConfig {
            max_connections,
            max_refused,
            deadlines: config.deadlines.clone(),
            lanes,
            passed_on: service::header_fields(&config),
            trusted_proxies: TrustedProxies::new(config.trusted_proxies.clone()),
            origins: Origins::new(config.allow_origins.clone()),
            metrics,
        };
        let gate = Gate::new(listening, gate_config, stopper.clone())?;
        let run = move || {
            let ended = gate.run();
            drop(workers);
            drop(admin);
            drop(upkeep);
            drop(folder);
            // After the last connection to the database.
            drop(claim);
            ended
        };
        let gate = std::thread::Builder::new()
            .name("gate".to_owned())
            .spawn(run)
            .map_err(|error| Error::no_thread(&error))?;
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
    /// [`ErrorKind::DatabaseMoved`](crate::ErrorKind::DatabaseMoved).
    pub fn wait(mut self) -> Result<(), Error> {
        match self.gate.take().map(JoinHandle::join) {
            Some(Ok(Err(reason))) => Err(Error::from(reason)),
            Some(Err(_)) => Err(Error::from("the gate has died; the log has the cause".to_owned())),
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
