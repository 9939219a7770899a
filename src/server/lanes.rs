//! Opens the lanes of a gate: a socket and a worker for each.

use std::path::Path;

use super::private_folder::temporarily;
use crate::app::pipeline::{self, Faults};
use crate::base::config::Config;
use crate::base::error::{Error, ErrorKind};
use crate::base::metrics::Metrics;
use crate::net::gate::{GateConfig, Intake, OpenLane, Stopper, TrustedProxies};
use crate::net::lane::LaneKind;
use crate::net::worker::{LaneListener, Service, Worker};

/// What the configuration says of every gate. Nothing is counted.
pub fn gate_config(
    config: &Config,
    max_connections: usize,
    lanes: Vec<OpenLane>,
    forwarded: Vec<&'static str>,
) -> GateConfig {
    let trusted = TrustedProxies(config.trusted_proxies.clone());
    GateConfig {
        max_connections,
        client_memory: config.client_memory,
        deadlines: config.deadlines.clone(),
        lanes,
        intake: Intake { forwarded, trusted, ..Intake::default() },
        size: pipeline::size,
        delay: None,
        metrics: Metrics::default(),
    }
}

/// The lanes of a gate that are opened so far.
pub struct Lanes<'a> {
    database: &'a Path,
    stopper: &'a Stopper,
    /// What makes requests fail on purpose.
    faults: Option<Faults>,
    pub workers: Vec<Worker>,
    pub open: Vec<OpenLane>,
}

impl<'a> Lanes<'a> {
    /// `stopper` ends the gate if a worker dies.
    pub fn new(database: &'a Path, stopper: &'a Stopper, faults: Option<Faults>) -> Self {
        Self { database, stopper, faults, workers: Vec::new(), open: Vec::new() }
    }

    /// Starts the worker of one more lane, which has at most `window` requests at once.
    ///
    /// # Errors
    /// If there are too few threads or descriptors.
    pub fn open(
        &mut self,
        kind: LaneKind,
        window: usize,
        name: String,
        service: impl Service,
    ) -> Result<(), Error> {
        let make = |folder: &Path| {
            LaneListener::bind(folder).map_err(|error| {
                Error::io(format!("cannot make a socket in {} (TMPDIR)", folder.display()), error)
            })
        };
        let (listener, stream) = temporarily(self.database, make)?;
        let (stopper, reason) =
            (self.stopper.clone(), Error::new(ErrorKind::Internal, format!("the {name} has died")));
        let died = move || stopper.fail(reason);
        self.workers.push(match &self.faults {
            Some(faults) => Worker::start(listener, name, faults.around(service), died)?,
            None => Worker::start(listener, name, service, died)?,
        });
        self.open.push(OpenLane { stream, kind, window });
        Ok(())
    }
}
