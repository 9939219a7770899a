//! What an open database is: its connections, whatever engine they are of, and a whole database in one file.

use std::ops::{Deref, DerefMut};
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::engine::{Snapshots, Writes};
use super::sqlite::Claim;

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
    /// A connection of an engine.
    pub(super) fn new(engine: impl Snapshots + 'static) -> Self {
        Self(Box::new(engine))
    }
}

impl Writer {
    /// A connection of an engine.
    pub(super) fn new(engine: impl Writes + 'static) -> Self {
        Self(Box::new(engine))
    }
}

/// A database in one file of this machine: the file itself, or a temporary copy of a cluster's, deleted on drop.
pub struct Whole {
    path: PathBuf,
    folder: Option<PathBuf>,
}

impl Whole {
    /// A file that stays.
    pub(super) fn file(path: &Path) -> Self {
        Self { path: path.to_owned(), folder: None }
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
#[derive(Clone, Debug)]
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

/// A database that a service has open. The fields drop in their order: connections before the claim.
pub struct OpenStore {
    /// The connection for requests that write.
    pub writer: WriteAccess,
    /// The connections that read.
    pub readers: Vec<Reader>,
    /// The most requests that a reader is worth being sent at once, because they share what a batch costs.
    pub reads_at_once: usize,
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
