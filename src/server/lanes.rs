//! Opens the lanes of a gate: a socket and a worker for each.

use super::SocketFolder;
use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::gate::{GateConfig, Intake, LaneAddress, Stopper, TrustedProxies};
use crate::lane::LaneKind;
use crate::metrics::Metrics;
use crate::service::Faults;
use crate::worker::{Service, Worker};

/// What the configuration says of every gate. Its responses to reads are small, and nothing is counted.
pub fn gate_config(
    config: &Config,
    max_connections: usize,
    lanes: Vec<LaneAddress>,
    passed_on: Vec<&'static str>,
) -> GateConfig {
    let trusted = TrustedProxies(config.trusted_proxies.clone());
    GateConfig {
        max_connections,
        client_memory: config.client_memory,
        deadlines: config.deadlines.clone(),
        lanes,
        intake: Intake { passed_on, trusted, ..Intake::default() },
        is_small: |_| true,
        delay: None,
        metrics: Metrics::default(),
    }
}

/// The lanes of a gate that are opened so far.
pub struct Lanes<'a> {
    folder: &'a SocketFolder,
    stopper: &'a Stopper,
    /// What makes requests fail on purpose.
    faults: Option<Faults>,
    pub workers: Vec<Worker>,
    pub addresses: Vec<LaneAddress>,
}

impl<'a> Lanes<'a> {
    /// `stopper` ends the gate if a worker dies.
    pub fn new(folder: &'a SocketFolder, stopper: &'a Stopper, faults: Option<Faults>) -> Self {
        Self { folder, stopper, faults, workers: Vec::new(), addresses: Vec::new() }
    }

    /// Starts the worker of one more lane, which has at most `window` requests at once.
    ///
    /// # Errors
    /// If there are too few threads or descriptors.
    pub fn open(
        &mut self,
        kind: LaneKind,
        window: usize,
        socket: &str,
        name: String,
        service: impl Service,
    ) -> Result<(), Error> {
        let path = self.folder.file(socket);
        let (stopper, reason) =
            (self.stopper.clone(), Error::new(ErrorKind::Internal, format!("the {name} has died")));
        let died = move || stopper.fail(reason);
        self.workers.push(match &self.faults {
            Some(faults) => Worker::start(&path, name, faults.around(service), died)?,
            None => Worker::start(&path, name, service, died)?,
        });
        self.addresses.push(LaneAddress { path, kind, window });
        Ok(())
    }
}
