//! Opens a database with its engine.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::engine::{Snapshots, Writes};
use super::rqlite;
use super::sqlite::{self, Claim, Loss};
use crate::error::{Error, ErrorKind, fail, is_cluster};

/// A connection that cannot write.
pub struct Reader(Box<dyn Snapshots>);

/// The connection that writes, and the batch under way on it.
pub struct Writer(Box<dyn Writes>);

impl Deref for Reader {
    type Target = dyn Snapshots;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl DerefMut for Reader {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.0
    }
}

impl Deref for Writer {
    type Target = dyn Writes;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl DerefMut for Writer {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut *self.0
    }
}

impl Reader {
    /// Opens a connection that cannot write, to a database that [`Writer::open`] has seen.
    ///
    /// # Errors
    /// If it cannot be opened, or is not a database of ours.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if is_cluster(path) { rqlite::open_reader(path) } else { Ok(Self::new(sqlite::Reader::open(path)?)) }
    }

    /// Opens a connection that cannot write, to a database that this service does not have to itself.
    ///
    /// # Errors
    /// If it does not exist, is not a petstore database of this version, has the log of another one, or this user may
    /// not read it.
    pub fn open_only(path: &Path) -> Result<Self, Error> {
        Ok(Self::new(sqlite::Reader::open_only(path)?))
    }

    /// Opens an existing database without changing it.
    ///
    /// # Errors
    /// If it does not exist, is not a petstore database, is damaged, or this user may not read it.
    pub fn open_existing(path: &Path) -> Result<Self, Error> {
        if is_cluster(path) {
            rqlite::open_reader(path)
        } else {
            Ok(Self::new(sqlite::Reader::open_existing(path)?))
        }
    }

    /// A connection of an engine.
    pub(super) fn new(engine: impl Snapshots + 'static) -> Self {
        Self(Box::new(engine))
    }
}

impl Writer {
    /// Opens the database for writing: makes it if there is none, refuses one that is not ours, and brings an older
    /// one up to date.
    ///
    /// # Errors
    /// If it cannot be opened, or is not a database of ours.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if is_cluster(path) { rqlite::open_writer(path) } else { Ok(Self::new(sqlite::Writer::open(path)?)) }
    }

    /// A connection of an engine.
    pub(super) fn new(engine: impl Writes + 'static) -> Self {
        Self(Box::new(engine))
    }
}

/// Whether there is a database at a path. For a cluster, this returns `true` without asking it.
pub fn exists(path: &Path) -> bool {
    is_cluster(path) || path.exists()
}

/// A database in one file of this machine: the file itself, or a temporary copy of a cluster's, deleted on drop.
pub struct Whole {
    path: PathBuf,
    folder: Option<PathBuf>,
}

impl Whole {
    /// The database at a path.
    ///
    /// # Errors
    /// If it belongs to a cluster and cannot be copied.
    pub fn of(path: &Path) -> Result<Self, Error> {
        if is_cluster(path) { rqlite::fetch(path) } else { Ok(Self { path: path.to_owned(), folder: None }) }
    }

    /// A file in a folder that is deleted on drop.
    #[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "only a cluster is copied"))]
    pub(super) fn temporary(folder: PathBuf, name: &str) -> Self {
        Self { path: folder.join(name), folder: Some(folder) }
    }
}

impl Deref for Whole {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.path
    }
}

impl Drop for Whole {
    fn drop(&mut self) {
        if let Some(folder) = &self.folder {
            let _ = std::fs::remove_dir_all(folder);
        }
    }
}

/// The requests to one host of a cluster.
#[derive(Debug)]
pub struct HostMeter {
    /// Such as `one:4001`.
    pub host: String,
    /// Requests to it.
    pub requests: u64,
    /// Requests that failed, refusals included.
    pub failures: u64,
    /// How long all of them took.
    pub duration: Duration,
}

/// What this process has asked of each host of a cluster; nothing if the database is a file.
pub fn meters(path: &Path) -> Vec<HostMeter> {
    if is_cluster(path) { rqlite::meters(path) } else { Vec::new() }
}

/// What is wrong with single nodes of a cluster, one line each; nothing if the database is a file.
///
/// # Errors
/// If the cluster does not answer, or is changed all the time.
pub fn compare_nodes(path: &Path) -> Result<Vec<String>, Error> {
    if is_cluster(path) { rqlite::compare(path) } else { Ok(Vec::new()) }
}

/// A database that a service has open. The fields drop in their order: connections before the claim.
pub struct OpenStore {
    /// The connection for requests that write.
    pub writer: WriteAccess,
    /// The connections that read.
    pub readers: Vec<Reader>,
    /// The most requests that a reader is worth being sent at once, because they share what a batch costs.
    pub reads_at_once: usize,
    /// What stops all of them once one has lost the database.
    pub loss: Arc<Loss>,
    /// Keeps other services that write away.
    pub claim: Option<Claim>,
    /// What it is, for the log: such as `existing database /var/lib/petstore/petstore.db`.
    pub about: String,
}

/// Whether a service writes to its database.
pub enum WriteAccess {
    /// It does, with this connection.
    Writes(Writer),
    /// It only reads. This connection finds the keys of requests that want to write.
    Refused(Reader),
}

/// Opens a database for a service with this many readers, and creates it if there is none.
///
/// # Errors
/// If another service has the database, it is not one of ours, its log is that of another database, or the system
/// refuses.
pub fn open_for_service(path: &Path, readers: usize) -> Result<OpenStore, Error> {
    if is_cluster(path) {
        rqlite::open_for_service(path, readers)
    } else {
        sqlite::open_for_service(path, readers)
    }
}

/// Opens a new database that is deleted with its service: a file with this many sample pets, never flushed to the disk.
///
/// # Errors
/// As [`open_for_service`].
pub fn open_ephemeral(path: &Path, readers: usize, sample: u32) -> Result<OpenStore, Error> {
    sqlite::open_ephemeral(path, readers, sample)
}

/// Opens an existing database for a service with this many readers, only for reading.
///
/// # Errors
/// As [`Reader::open_only`].
pub fn open_only_to_read(path: &Path, readers: usize) -> Result<OpenStore, Error> {
    if is_cluster(path) {
        let message = "a service that only reads needs a file, and the database is a cluster; give clients a read-only key instead";
        return fail(ErrorKind::Config("read_only"), message);
    }
    sqlite::open_only_to_read(path, readers)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_of_a_cluster_is_there_and_a_file_if_it_exists() {
        let folder = crate::testing::Folder::new();
        assert!(exists(&folder.0) && exists(Path::new("rqlite://one")) && !exists(&folder.database()));
    }
}
