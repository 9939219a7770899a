//! Opens a database with its engine.

use std::ops::{Deref, DerefMut};
use std::path::Path;
use std::sync::Arc;

use super::engine::{Snapshots, Writes};
use super::sqlite::{self, Claim, Loss};
use crate::error::Error;

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
        Ok(sqlite::Reader::open(path)?.into())
    }

    /// Opens a connection that cannot write, to a database that this service does not have to itself.
    ///
    /// # Errors
    /// If it does not exist, is not a petstore database of this version, has the log of another one, or this user may
    /// not read it.
    pub fn open_only(path: &Path) -> Result<Self, Error> {
        Ok(sqlite::Reader::open_only(path)?.into())
    }

    /// Opens an existing database without changing it.
    ///
    /// # Errors
    /// If it does not exist, is not a petstore database, is damaged, or this user may not read it.
    pub fn open_existing(path: &Path) -> Result<Self, Error> {
        Ok(sqlite::Reader::open_existing(path)?.into())
    }
}

impl Writer {
    /// Opens the database for writing: makes it if there is none, refuses one that is not ours, and brings an older
    /// one up to date.
    ///
    /// # Errors
    /// If it cannot be opened, or is not a database of ours.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Ok(sqlite::Writer::open(path)?.into())
    }
}

impl From<sqlite::Reader> for Reader {
    fn from(reader: sqlite::Reader) -> Self {
        Self(Box::new(reader))
    }
}

impl From<sqlite::Writer> for Writer {
    fn from(writer: sqlite::Writer) -> Self {
        Self(Box::new(writer))
    }
}

/// A database that a service has open. The fields drop in their order: connections before the claim.
pub struct OpenStore {
    /// The connection for requests that write.
    pub writer: WriteAccess,
    /// The connections that read.
    pub readers: Vec<Reader>,
    /// What stops all of them once one has lost the database.
    pub loss: Arc<Loss>,
    /// Keeps other services that write away.
    pub claim: Option<Claim>,
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
    sqlite::open_for_service(path, readers)
}

/// Opens the database of a service that it goes with: a new file with so many sample pets, which is never flushed to
/// the disk.
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
    sqlite::open_only_to_read(path, readers)
}
