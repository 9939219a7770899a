//! Starts the workers of a gate, each with its lane.

use std::path::Path;

use super::private_folder::temporarily;
use crate::app::pipeline::Faults;
use petstore_base::error::Error;
use petstore_gate::{LaneKind, LaneListener, Service, Stopper};

/// The workers of a service. Their sockets are made among the temporary files, or next to the database.
pub struct ServiceWorkers<'a> {
    database: &'a Path,
    /// The faults to inject.
    faults: Option<Faults>,
    pub started: petstore_gate::Workers,
}

impl<'a> ServiceWorkers<'a> {
    /// Begins without workers. `stopper` stops the gate if a worker dies.
    pub fn new(database: &'a Path, stopper: &Stopper, faults: Option<Faults>) -> Self {
        Self {
            database,
            faults,
            started: petstore_gate::Workers::new(stopper),
        }
    }

    /// Starts a worker. Its lane has at most `window` requests at once.
    ///
    /// # Errors
    /// If there are too few threads or descriptors.
    pub fn start(
        &mut self,
        kind: LaneKind,
        window: usize,
        name: &str,
        service: impl Service,
    ) -> Result<(), Error> {
        let ends = temporarily(self.database, LaneListener::bind)?;
        match &self.faults {
            Some(faults) => {
                self.started
                    .start_behind(ends, kind, window, name, faults.around(service))
            }
            None => self.started.start_behind(ends, kind, window, name, service),
        }
    }
}
