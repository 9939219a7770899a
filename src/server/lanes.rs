//! Opens the lanes of a gate: a socket and a worker for each.

use super::SocketFolder;
use crate::error::{Error, ErrorKind};
use crate::gate::{LaneAddress, Stopper};
use crate::lane::LaneKind;
use crate::worker::{Service, Worker};

/// The lanes of a gate that are opened so far.
pub struct Lanes<'a> {
    folder: &'a SocketFolder,
    stopper: &'a Stopper,
    pub workers: Vec<Worker>,
    pub addresses: Vec<LaneAddress>,
}

impl<'a> Lanes<'a> {
    /// `stopper` ends the gate if a worker dies.
    pub fn new(folder: &'a SocketFolder, stopper: &'a Stopper) -> Self {
        Self { folder, stopper, workers: Vec::new(), addresses: Vec::new() }
    }

    /// Starts the worker of one more lane, which has at most so many requests and bytes at once.
    ///
    /// # Errors
    /// If there are too few threads or descriptors.
    pub fn open(
        &mut self,
        kind: LaneKind,
        (window, window_bytes): (usize, usize),
        socket: &str,
        name: String,
        service: impl Service,
    ) -> Result<(), Error> {
        let path = self.folder.file(socket);
        let (stopper, reason) =
            (self.stopper.clone(), Error::new(ErrorKind::Internal, format!("the {name} has died")));
        self.workers.push(Worker::start(&path, name, service, move || stopper.fail(&reason))?);
        self.addresses.push(LaneAddress { path, kind, window, window_bytes });
        Ok(())
    }
}
