//! Starts the workers of a gate, each with its lane.

use std::path::Path;

use super::private_folder::temporarily;
use crate::app::pipeline::Faults;
use crate::net::gate::{OpenLane, Stopper};
use crate::net::lane::LaneKind;
use crate::net::worker::{LaneListener, Service, Worker};
use petstore_base::error::{Error, ErrorKind};

/// The workers that were started, and the gate's ends of their lanes.
pub struct Workers<'a> {
    database: &'a Path,
    stopper: &'a Stopper,
    /// The faults to inject.
    faults: Option<Faults>,
    pub running: Vec<Worker>,
    pub lanes: Vec<OpenLane>,
}

impl<'a> Workers<'a> {
    /// Begins without workers. `stopper` stops the gate if a worker dies.
    pub fn new(database: &'a Path, stopper: &'a Stopper, faults: Option<Faults>) -> Self {
        Self {
            database,
            stopper,
            faults,
            running: Vec::new(),
            lanes: Vec::new(),
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
        name: String,
        service: impl Service,
    ) -> Result<(), Error> {
        let (listener, stream) = temporarily(self.database, LaneListener::bind)?;
        let reason = Error::new(ErrorKind::Internal, format!("the {name} has died"));
        let stopper = self.stopper.clone();
        let died = move || stopper.fail(reason);
        self.running.push(match &self.faults {
            Some(faults) => Worker::start(listener, name, faults.around(service), died)?,
            None => Worker::start(listener, name, service, died)?,
        });
        self.lanes.push(OpenLane {
            stream,
            kind,
            window,
        });
        Ok(())
    }
}
