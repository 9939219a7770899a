//! A database of several machines in place of the file, with the feature `cluster`: rqlite, which is SQLite under Raft.
//! `rqlite/` asks it, and nobody else does.
//!
//! The seam is [`Cluster`]: a connection, which begins, reads, commits [`Work`] and probes. Then there are functions for whole
//! databases, by their location: [`whole()`], [`load`], [`compare`] and [`meters`]. Values of the model go through it, and no SQL.
//! `location.rs` distinguishes a file from a cluster.

mod location;
#[cfg_attr(not(feature = "cluster"), path = "no_rqlite.rs")]
mod rqlite;
mod whole;
mod work;

use std::path::Path;
use std::time::Duration;

use crate::store;
use petstore_base::error::Error;

pub use location::{absolute, check_supported, is_cluster, require_file};
#[cfg(all(test, feature = "cluster"))]
pub use rqlite::run;
#[cfg(feature = "cluster")]
pub use rqlite::set_database_password;
pub use rqlite::{Cluster, HostMeter, load};
pub use whole::Whole;
pub use work::{Done, Keys, Revision, Version, Work};

/// The most pets in one transaction of a command or an embedding program.
pub const MOST_PETS: usize = 4096;
/// The time for which work that other instances overtake is repeated.
pub const CONTENDS_FOR: Duration = Duration::from_secs(4);

impl Cluster {
    /// Opens the cluster at this location, and brings its schema up to date; `None` if the location is a file.
    ///
    /// # Errors
    /// If the cluster does not answer, or its database is not ours.
    pub fn at(location: &Path) -> Result<Option<Self>, Error> {
        is_cluster(location)
            .then(|| Self::open(location))
            .transpose()
    }

    /// Opens the cluster at this location to read; `None` if the location is a file.
    ///
    /// # Errors
    /// If the cluster does not answer, or has no database of this version.
    pub fn at_existing(location: &Path) -> Result<Option<Self>, Error> {
        is_cluster(location)
            .then(|| Self::open_existing(location))
            .transpose()
    }
}

/// Returns `true` if there is a database at a location, or if it is the address of a cluster, which is not asked.
pub fn exists(location: &Path) -> bool {
    is_cluster(location) || store::exists(location)
}

/// The database at a location as a file: itself, or a copy of a cluster's.
///
/// # Errors
/// If it belongs to a cluster and cannot be copied.
pub fn whole(location: &Path) -> Result<Whole, Error> {
    if is_cluster(location) {
        rqlite::fetch(location)
    } else {
        Ok(Whole::of_file(location))
    }
}

/// The requests of this process to each host of a cluster; empty if the database is a file.
pub fn meters(location: &Path) -> Vec<HostMeter> {
    if is_cluster(location) {
        rqlite::meters(location)
    } else {
        Vec::new()
    }
}

/// The faults of single nodes of a cluster, one line each; empty if the database is a file.
///
/// # Errors
/// If the cluster does not answer, or is changed all the time.
pub fn compare(location: &Path) -> Result<Vec<String>, Error> {
    if is_cluster(location) {
        rqlite::compare(location)
    } else {
        Ok(Vec::new())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_of_a_cluster_is_there_and_a_file_if_it_exists() {
        let folder = petstore_base::testing::Folder::new();
        assert!(
            exists(&folder.0) && exists(Path::new("rqlite://one")) && !exists(&folder.database())
        );
    }
}
