//! The admin address. It has a gate of its own, with the same rules of HTTP, limits and failures.

use std::path::PathBuf;
use std::sync::Arc;
use std::thread::JoinHandle;

use super::SERVER;
use super::descriptors::ADMIN_CONNECTIONS;
use super::workers::ServiceWorkers;
use crate::admin::{
    self, AdminContext, AdminService, Count, LastCounts, ProjectSettings, Refresh, Reset,
};
use crate::app::endpoint::ApiError;
use crate::app::pipeline::{self, SharedState};
use crate::config::Config;
use crate::store::Reader;
use petstore_base::error::Error;
use petstore_base::http::ACCESS_LOG;
use petstore_base::http::limits::MAX_BODY_BYTES;
use petstore_base::threads::start_thread;
use petstore_gate::{Gate, GateConfig, LaneKind, Limits, Listening, Stopper, TrustedProxies};

/// The memory budget of its clients is that of the service's clients, divided by this, and in addition to it.
const MEMORY_SHARE: usize = 4;

/// What the admin address needs of the database.
pub struct AdminData {
    /// The database, or the private one of a service on a cluster.
    pub file: PathBuf,
    /// Counts the pets.
    pub count: Count,
    /// Updates the copy of the keys.
    pub refresh: Refresh,
}

/// The running admin address. Dropping it stops it.
pub struct Admin {
    stopper: Stopper,
    gate: Option<JoinHandle<()>>,
}

impl Admin {
    /// Serves on an address. If the gate fails, it stops the `service`.
    ///
    /// # Errors
    /// [`ErrorKind::Resources`](crate::ErrorKind::Resources) if there are too few threads or descriptors, and the kinds of a database that cannot
    /// be opened.
    pub fn start(
        config: &Config,
        shared: &SharedState,
        listening: Listening,
        settings: &ProjectSettings,
        data: AdminData,
        reset: Option<Reset>,
        service: Stopper,
    ) -> Result<Self, Error> {
        let stopper = Stopper::default();
        let mut workers = ServiceWorkers::new(&config.database, &stopper, None);
        let counts = config.experimental.then(LastCounts::default);
        let mut count = Some(data.count);
        for (name, kind) in [
            ("admin-read", LaneKind::Read),
            ("admin-write", LaneKind::Write),
        ] {
            let context = AdminContext {
                metrics: shared.metrics.clone(),
                store: Reader::open(&data.file)?,
                refresh: Arc::clone(&data.refresh),
                damage: shared.damage.clone(),
                database: config.database.clone(),
                read_only: config.read_only,
                settings: settings.clone(),
                hosts: config.admin_hosts.clone(),
                reset: reset.clone(),
                counts: counts.clone(),
            };
            // One worker counts, which has little else to do.
            let count = count.take_if(|_| kind == LaneKind::Write);
            let handler = AdminService::new(context, count);
            workers.start(kind, ADMIN_CONNECTIONS, name, handler)?;
        }
        let mut workers = workers.started;
        let lanes = workers.take_lanes();
        let gate_config = GateConfig {
            limits: Limits {
                connections: ADMIN_CONNECTIONS,
                memory: config.client_memory / MEMORY_SHARE,
                body: MAX_BODY_BYTES,
                deadlines: config.deadlines.clone(),
            },
            lanes,
            forwarded: admin::header_fields(),
            trusted: TrustedProxies(config.trusted_proxies.clone()),
            server: SERVER,
            access_log: ACCESS_LOG,
            size: pipeline::size,
            refuse: Box::new(|refusal| ApiError::from(refusal).into_response()),
            ..GateConfig::default()
        };
        let gate = Gate::new(listening, gate_config, stopper.clone())?;
        let run = move || {
            let ended = gate.run();
            drop(workers);
            if let Err(error) = ended {
                service.stop_because(error.context("the admin address has died"));
            }
        };
        let gate = start_thread("admin", run)?;
        Ok(Self {
            stopper,
            gate: Some(gate),
        })
    }
}

impl Drop for Admin {
    fn drop(&mut self) {
        self.stopper.stop();
        if self.gate.take().is_some_and(|gate| gate.join().is_err()) {
            log::error!("the gate of the admin address has died");
        }
    }
}
