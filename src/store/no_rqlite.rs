//! The store without the feature `cluster`: the address of a cluster is rejected.

use std::path::Path;

use super::location::unsupported;
use super::sqlite::FileConnection;
use super::whole::HostMeter;
use crate::base::error::Error;

pub const READS_AT_ONCE: usize = 0;

/// There is no connection but that of a file.
pub fn open_reader(path: &Path) -> Result<FileConnection, Error> {
    reject(path)
}

pub fn reject<T>(_: &Path) -> Result<T, Error> {
    Err(unsupported())
}

pub use self::{
    open_reader as open_writer, reject as compare, reject as describe, reject as fetch,
};

pub fn load(path: &Path, _: &Path) -> Result<(), Error> {
    reject(path)
}

pub fn meters(_: &Path) -> Vec<HostMeter> {
    Vec::new()
}
