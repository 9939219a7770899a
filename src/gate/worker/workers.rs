//! Starts the workers of a gate, each with its lane.

use std::os::unix::net::UnixStream;

use super::{LaneListener, Service, Worker};
use crate::lane::LaneKind;
use crate::lanes::OpenLane;
use crate::stopper::Stopper;
use petstore_base::error::{Error, ErrorKind};

/// The most requests in a lane that [`Workers::start`] makes.
const WINDOW: usize = 64;

/// The workers that were started, and the gate's ends of their lanes. They stop when this is dropped, which must be after
/// the gate.
pub struct Workers {
    stopper: Stopper,
    running: Vec<Worker>,
    lanes: Vec<OpenLane>,
}

impl Workers {
    /// Begins without workers. `stopper` stops the gate if a worker dies.
    pub fn new(stopper: &Stopper) -> Self {
        Self {
            stopper: stopper.clone(),
            running: Vec::new(),
            lanes: Vec::new(),
        }
    }

    /// The lanes so far, for [`GateConfig::lanes`](crate::GateConfig::lanes).
    pub fn take_lanes(&mut self) -> Vec<OpenLane> {
        std::mem::take(&mut self.lanes)
    }

    /// Starts a worker. Its lane is a socket among the temporary files, and has at most 64 requests at once.
    ///
    /// # Errors
    /// If there are too few threads or descriptors, or the folder of temporary files cannot be written.
    pub fn start(
        &mut self,
        kind: LaneKind,
        name: &str,
        service: impl Service,
    ) -> Result<(), Error> {
        let ends = LaneListener::bind(&std::env::temp_dir())?;
        self.start_behind(ends, kind, WINDOW, name, service)
    }

    /// Starts a worker at the far end of a lane, which has at most `window` requests at once.
    ///
    /// # Errors
    /// If there are too few threads or descriptors.
    pub fn start_behind(
        &mut self,
        (listener, stream): (LaneListener, UnixStream),
        kind: LaneKind,
        window: usize,
        name: &str,
        service: impl Service,
    ) -> Result<(), Error> {
        let reason = Error::new(ErrorKind::Internal, format!("the {name} has died"));
        let stopper = self.stopper.clone();
        let died = move || stopper.fail(reason);
        self.running
            .push(Worker::start(listener, name.to_owned(), service, died)?);
        self.lanes.push(OpenLane {
            stream,
            kind,
            window,
        });
        Ok(())
    }
}
