//! The store without the feature `cluster`: the address of a cluster is rejected.

use std::path::Path;

use super::location::unsupported;
use super::whole::HostMeter;
use crate::base::error::Error;

pub const READS_AT_ONCE: usize = 0;

pub fn reject<T>(_: &Path) -> Result<T, Error> {
    Err(unsupported())
}

pub use self::{
    reject as compare, reject as describe, reject as fetch, reject as open_reader, reject as open_writer,
};

pub struct NoCluster;

impl NoCluster {
    pub fn load(self, path: &Path) -> Result<(), Error> {
        reject(path)
    }
}

pub fn close(path: &Path) -> Result<NoCluster, Error> {
    reject(path)
}

pub fn meters(_: &Path) -> Vec<HostMeter> {
    Vec::new()
}
