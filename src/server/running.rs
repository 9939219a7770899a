//! The rooms of a running service, and the order in which they end.

use std::sync::Arc;

use super::PrivateFolder;
use super::admin::Admin;
use super::lanes::{Lanes, gate_config};
use super::project::{self, Upkeep};
use crate::admin::Reset;
use crate::app::pipeline::{self, Authenticator, Draws, Faults, Lost, ReadService, Shared, WriteService};
use crate::base::config::Config;
use crate::base::error::{Error, check_threads};
use crate::base::metrics::Metrics;
use crate::net::gate::{Delay, Gate, Listening, Origins, Stopper};
use crate::net::lane::LaneKind;
use crate::net::worker::{THREADS, Worker};
use crate::site;
use crate::store::{self, Claim, Damage, OpenStore, WriteAccess};

/// The most requests in the lane for writing at once: they share a flush of the disk.
const WRITES_AT_ONCE: usize = 512;

/// All that runs for a service. The fields drop in their order: whoever sends requests before whoever serves them,
/// and the claim on the database after the last connection to it.
pub struct Running {
    gate: Gate,
    _workers: Vec<Worker>,
    _admin: Option<Admin>,
    _upkeep: Option<Arc<Upkeep>>,
    _folder: Option<PrivateFolder>,
    _claim: Option<Claim>,
}

impl Running {
    /// Starts the workers, the admin address and the gate.
    ///
    /// # Errors
    /// If there are too few threads or descriptors, or the project cannot be opened.
    pub fn start(
        config: &Arc<Config>,
        places: usize,
        folder: Option<PrivateFolder>,
        listening: Listening,
        admin: Option<Listening>,
        store: OpenStore,
        stopper: &Stopper,
    ) -> Result<Self, Error> {
        // tiny_http panics if it cannot start a thread. The threads that serve no lane are no more than those of one.
        let lanes = config.workers + 1 + if admin.is_some() { 2 } else { 0 };
        check_threads((lanes + 1) * THREADS)?;
        let OpenStore { writer, readers, reads_at_once, claim, about: _ } = store;
        let lost: Lost = {
            let stopper = stopper.clone();
            Arc::new(move |error| stopper.stop_because(Error::from(error.clone())))
        };
        let mut metrics =
            if admin.is_some() { Metrics::watched(config.client_memory) } else { Metrics::default() };
        pipeline::announce(&mut metrics);
        let upkeep = project::start(config)?;
        let shared = Shared {
            config: Arc::clone(config),
            assets: site::lazy_assets(config, &listening.address),
            authenticator: Authenticator::new(config.api_key.as_deref()),
            lost,
            damage: Damage::default(),
            metrics: metrics.clone(),
            hosts: project::hosts(config, upkeep.as_ref()),
        };
        let guide = config.root().map_or_else(|| listening.address.local_url(), str::to_owned);
        let (draws, ephemeral) = (Draws::default(), config.ephemeral.clone().unwrap_or_default());
        let faults = (ephemeral.fail > 0.0).then(|| Faults::new(ephemeral.fail, draws.clone()));
        let mut lanes = Lanes::new(&config.database, stopper, faults);
        for (i, store) in readers.into_iter().enumerate() {
            let service = ReadService::new(store, shared.clone());
            let name = format!("reader-{i}");
            lanes.open(LaneKind::Read, reads_at_once, name, service)?;
        }
        let (kind, window, name) = (LaneKind::Write, WRITES_AT_ONCE, "writer".to_owned());
        match writer {
            WriteAccess::Writes(writer) => {
                lanes.open(kind, window, name, WriteService::new(writer, shared.clone()))?;
            }
            WriteAccess::Refused(reader) => {
                lanes.open(kind, window, name, ReadService::refusing(reader, shared.clone()))?;
            }
        }
        let Lanes { workers, open, .. } = lanes;
        let admin = admin.map(|listening| {
            let stopper = stopper.clone();
            let died = move |error: Error| stopper.stop_because(error.context("the admin address has died"));
            let settings = project::settings(config, &guide, upkeep.as_ref());
            let reset = reset(config, draws.clone());
            Admin::start(&shared, listening, &settings, reset, died)
        });
        let admin = admin.transpose()?;
        let mut gate_config = gate_config(config, places, open, pipeline::header_fields(config));
        gate_config.intake.origins = Origins(config.allow_origins.clone());
        gate_config.delay = ephemeral.delay.map(|delay| Box::new(pipeline::delays(delay, draws)) as Delay);
        gate_config.metrics = metrics;
        let gate = Gate::new(listening, gate_config, stopper.clone())?;
        Ok(Self { gate, _workers: workers, _admin: admin, _upkeep: upkeep, _folder: folder, _claim: claim })
    }

    /// Serves until the service is stopped, and ends all rooms in their order.
    ///
    /// # Errors
    /// The reason, if the service ended by a fault of its own.
    pub fn serve(self) -> Result<(), Error> {
        // The gate goes here, and the other fields at the end of this function.
        self.gate.run()
    }
}

/// What returns an ephemeral service to its first state; `None` for any other. Everything that workers remember is valid
/// for one version of the database only, so they need not be told.
fn reset(config: &Config, draws: Draws) -> Option<Reset> {
    let (database, sample) = (config.database.clone(), config.ephemeral.as_ref()?.sample);
    Some(Arc::new(move || {
        store::reset_ephemeral(&database, sample)?;
        draws.restart();
        Ok(())
    }))
}
