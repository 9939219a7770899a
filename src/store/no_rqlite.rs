//! The store without the feature `cluster`: the address of a cluster is refused.

use std::path::Path;

use super::location::unsupported;
use super::traits::{HostMeter, OpenStore};
use crate::base::error::Error;

/// Whether several services can share a database.
pub const IS_SHARED: bool = false;

pub fn refuse<T>(_: &Path) -> Result<T, Error> {
    Err(unsupported())
}

pub use self::{refuse as open_reader, refuse as open_writer, refuse as fetch, refuse as compare};

pub fn open_for_service(_: &Path, _: usize) -> Result<OpenStore, Error> {
    Err(unsupported())
}

pub struct Closed;

impl Closed {
    pub fn load(self, _: &Path) -> Result<(), Error> {
        Err(unsupported())
    }
}

pub fn close(_: &Path) -> Result<Closed, Error> {
    Err(unsupported())
}

pub fn meters(_: &Path) -> Vec<HostMeter> {
    Vec::new()
}
