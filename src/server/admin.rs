//! The admin address: a gate of its own, so that all rules of HTTP, limits and failures hold there too.

use std::thread::JoinHandle;

use super::descriptors::ADMIN_CONNECTIONS;
use super::lanes::{Lanes, gate_config};
use crate::admin::{self, AdminContext, AdminService, ProjectSettings, Reset};
use crate::app::pipeline::SharedState;
use crate::base::error::{Error, start_thread};
use crate::net::gate::{Gate, Listening, Stopper};
use crate::net::lane::LaneKind;
use crate::store::Reader;

/// Its share of what is held for clients. It is in addition to theirs.
const MEMORY_SHARE: usize = 4;

/// The running admin address. Dropping it ends it.
pub struct Admin {
    stopper: Stopper,
    gate: Option<JoinHandle<()>>,
}

impl Admin {
    /// Starts to serve on an address. If it ends by a fault of its own, it calls `died` with the reason.
    ///
    /// # Errors
    /// [`ErrorKind::Resources`](crate::ErrorKind::Resources) if there are too few threads or descriptors, and the kinds of a database that cannot
    /// be opened.
    pub fn start(
        shared: &SharedState,
        listening: Listening,
        settings: &ProjectSettings,
        reset: Option<Reset>,
        died: impl FnOnce(Error) + Send + 'static,
    ) -> Result<Self, Error> {
        let (config, stopper) = (&*shared.config, Stopper::default());
        let mut lanes = Lanes::new(&config.database, &stopper, None);
        for (name, kind) in [("admin-read", LaneKind::Read), ("admin-write", LaneKind::Write)] {
            let service = AdminService::new(AdminContext {
                metrics: shared.metrics.clone(),
                store: Reader::open(&config.database)?,
                damage: shared.damage.clone(),
                database: config.database.clone(),
                read_only: config.read_only,
                settings: settings.clone(),
                hosts: config.admin_hosts.clone(),
                reset: reset.clone(),
            });
            lanes.open(kind, ADMIN_CONNECTIONS, name.to_owned(), service)?;
        }
        let Lanes { workers, open, .. } = lanes;
        let mut gate_config = gate_config(config, ADMIN_CONNECTIONS, open, admin::header_fields());
        gate_config.client_memory /= MEMORY_SHARE;
        let gate = Gate::new(listening, gate_config, stopper.clone())?;
        let run = move || {
            let ended = gate.run();
            drop(workers);
            if let Err(error) = ended {
                died(error);
            }
        };
        let gate = start_thread("admin", run)?;
        Ok(Self { stopper, gate: Some(gate) })
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
