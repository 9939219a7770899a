//! The store without the feature `cluster`: the address of a cluster is refused.

use std::path::Path;

use super::engine::{HostMeter, OpenStore, Reader, Whole, Writer};
use crate::error::{Error, unsupported};

/// Whether several services can share a database.
pub const IS_SHARED: bool = false;

pub fn open_reader(_: &Path) -> Result<Box<Reader>, Error> {
    Err(unsupported())
}

pub fn open_writer(_: &Path) -> Result<Box<Writer>, Error> {
    Err(unsupported())
}

pub fn open_for_service(_: &Path, _: usize) -> Result<OpenStore, Error> {
    Err(unsupported())
}

pub fn fetch(_: &Path) -> Result<Whole, Error> {
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

pub fn compare(_: &Path) -> Result<Vec<String>, Error> {
    Ok(Vec::new())
}

pub fn meters(_: &Path) -> Vec<HostMeter> {
    Vec::new()
}
