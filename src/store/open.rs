//! Opens a database with its engine.

use std::fmt;
use std::path::Path;

use super::location::is_cluster;
use super::reader::{Engine, Reader};
use super::rows::text;
use super::rqlite;
use super::sqlite::{self, Claim, FileConnection, FileReader, Purpose, log_of};
use super::whole::{HostMeter, Whole};
use super::writer::Writer;
use crate::base::error::{Error, ErrorKind, fail};

/// A database that a service has open. The fields drop in their order: connections before the claim.
pub struct OpenStore {
    /// The connection for requests that write.
    pub writer: WriteAccess,
    /// The connections that read.
    pub readers: Vec<Reader>,
    /// The most requests to send to a reader at once.
    pub reads_at_once: usize,
    /// Keeps other services that write away, as long as it is not dropped.
    pub claim: Option<Claim>,
    /// Its description in the log, such as `existing database /var/lib/petstore/petstore.db`.
    pub about: String,
}

/// The access of a service to its database.
pub enum WriteAccess {
    /// It writes with this connection.
    Writes(Writer),
    /// It only reads. This connection checks the keys of writes before they are rejected.
    Refused(Reader),
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Reader")
    }
}

impl fmt::Debug for Writer {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("Writer")
    }
}

impl Reader {
    /// Opens a connection that cannot write.
    ///
    /// # Errors
    /// If the database does not exist, is not a petstore database of this version, has the log of another one, or this
    /// user may not read it.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::open_with(path, FileReader::open)
    }

    /// Opens an existing database without changing it.
    ///
    /// # Errors
    /// If it does not exist, is not a petstore database, is damaged, or this user may not read it.
    pub fn open_existing(path: &Path) -> Result<Self, Error> {
        Self::open_with(path, FileReader::open_existing)
    }

    fn open_with(
        path: &Path,
        open: impl FnOnce(&Path) -> Result<FileReader, Error>,
    ) -> Result<Self, Error> {
        let engine = if is_cluster(path) {
            rqlite::open_reader(path)?.into()
        } else {
            Engine::File(open(path)?.into())
        };
        Ok(Self { engine })
    }
}

impl Writer {
    /// Opens the database for writing, and creates it if there is none. The schema of an older database on a cluster is
    /// brought up to date.
    ///
    /// # Errors
    /// If it cannot be opened, is not a petstore database, or is a file of an older version.
    pub fn open(path: &Path) -> Result<Self, Error> {
        if is_cluster(path) {
            rqlite::open_writer(path).map(Engine::from).map(Self::new)
        } else {
            FileConnection::open(path).map(Engine::File).map(Self::new)
        }
    }
}

/// Returns `true` if there is a database at a path, or if the path is the address of a cluster, which is not asked. An
/// empty file without a log is none.
pub fn exists(path: &Path) -> bool {
    let is_empty = |path: &Path| {
        path.metadata()
            .map_or(true, |file| file.is_file() && file.len() == 0)
    };
    is_cluster(path) || path.exists() && !(is_empty(path) && is_empty(&log_of(path)))
}

impl Whole {
    /// The database at a path.
    ///
    /// # Errors
    /// If it belongs to a cluster and cannot be copied.
    pub fn new(path: &Path) -> Result<Self, Error> {
        if is_cluster(path) {
            rqlite::fetch(path)
        } else {
            Ok(Self {
                path: path.to_owned(),
                folder: None,
            })
        }
    }
}

/// The requests of this process to each host of a cluster; empty if the database is a file.
pub fn meters(path: &Path) -> Vec<HostMeter> {
    if is_cluster(path) {
        rqlite::meters(path)
    } else {
        Vec::new()
    }
}

/// The faults of single nodes of a cluster, one line each; empty if the database is a file.
///
/// # Errors
/// If the cluster does not answer, or is changed all the time.
pub fn compare_nodes(path: &Path) -> Result<Vec<String>, Error> {
    if is_cluster(path) {
        rqlite::compare(path)
    } else {
        Ok(Vec::new())
    }
}

/// Opens a database for a service with this many readers, and creates it if there is none.
///
/// # Errors
/// If another service has the database, it is not one of ours, its log is that of another database, or the system
/// fails.
pub fn open_for_service(path: &Path, readers: usize) -> Result<OpenStore, Error> {
    if !is_cluster(path) {
        return open_file(path, readers, Purpose::Service);
    }
    let writer = WriteAccess::Writes(Writer::open(path)?);
    open_with_readers(path, readers, writer, None, rqlite::describe(path)?)
}

/// Opens a new database for a service with this many readers, and adds this many sample pets. It is never flushed to the
/// disk, and ends with the service.
///
/// # Errors
/// Fails for the reasons of [`open_for_service`].
pub fn open_ephemeral(path: &Path, readers: usize, sample: u32) -> Result<OpenStore, Error> {
    let store = open_file(path, readers, Purpose::Ephemeral)?;
    sqlite::reset_ephemeral(path, sample)?;
    Ok(store)
}

fn open_file(path: &Path, readers: usize, purpose: Purpose) -> Result<OpenStore, Error> {
    // The claim first: from here on, no other service opens the database or removes its log.
    let claim = Claim::take(path)?;
    let about = format!(
        "{} database {}",
        if claim.is_new { "new" } else { "existing" },
        path.display()
    );
    // The writer before the readers: it makes the schema that they expect, and checkpoints the log, which they would keep.
    let writer = Writer::new(Engine::File(sqlite::open_for_service(path, purpose)?));
    let triggers =
        "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND lower(tbl_name) = 'pets'";
    for name in writer.all(triggers, |row| Ok(text(row, 0)?.escape_debug().to_string()))? {
        log::warn!(
            "the trigger {name} can change the pets that clients send; responses have what they sent"
        );
    }
    let writer = WriteAccess::Writes(writer);
    open_with_readers(path, readers, writer, Some(claim), about)
}

fn open_with_readers(
    path: &Path,
    readers: usize,
    writer: WriteAccess,
    claim: Option<Claim>,
    about: String,
) -> Result<OpenStore, Error> {
    let readers: Result<_, _> = (0..readers).map(|_| Reader::open(path)).collect();
    Ok(OpenStore {
        writer,
        readers: readers?,
        reads_at_once: if is_cluster(path) {
            rqlite::READS_AT_ONCE
        } else {
            sqlite::READS_AT_ONCE
        },
        claim,
        about,
    })
}

/// Opens an existing database for a service with this many readers, only for reading.
///
/// # Errors
/// Those of `Reader::open`, or if the database is a cluster.
pub fn open_only_to_read(path: &Path, readers: usize) -> Result<OpenStore, Error> {
    if is_cluster(path) {
        let message = "a service that only reads needs a file, and the database is a cluster; give clients a read-only key instead";
        return fail(ErrorKind::Config("read_only"), message);
    }
    let writer = WriteAccess::Refused(Reader::open(path)?);
    let about = format!("read-only database {}", path.display());
    open_with_readers(path, readers, writer, None, about)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn database_of_a_cluster_is_there_and_a_file_if_it_exists() {
        let folder = crate::testing::Folder::new();
        assert!(
            exists(&folder.0) && exists(Path::new("rqlite://one")) && !exists(&folder.database())
        );
    }
}
