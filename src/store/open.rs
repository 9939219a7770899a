//! Opens a database with its engine.

use std::path::Path;

use super::location::is_cluster;
use super::sqlite::{FileReader, FileWriter};
use super::traits::{HostMeter, OpenStore, Reader, Whole, WriteAccess, Writer};
use super::{rqlite, sqlite};
use crate::base::error::{Error, ErrorKind, fail};

impl Reader {
    /// Opens a connection that cannot write.
    ///
    /// # Errors
    /// If the database does not exist, is not a petstore database of this version, has the log of another one, or this
    /// user may not read it.
    pub fn open(path: &Path) -> Result<Box<Self>, Error> {
        if is_cluster(path) { rqlite::open_reader(path) } else { Ok(Box::new(FileReader::open(path)?)) }
    }

    /// Opens an existing database without changing it.
    ///
    /// # Errors
    /// If it does not exist, is not a petstore database, is damaged, or this user may not read it.
    pub fn open_existing(path: &Path) -> Result<Box<Self>, Error> {
        if is_cluster(path) {
            rqlite::open_reader(path)
        } else {
            Ok(Box::new(FileReader::open_existing(path)?))
        }
    }
}

impl Writer {
    /// Opens the database for writing: makes it if there is none, and refuses one that is not ours, or older: on a
    /// cluster, it is brought up to date.
    ///
    /// # Errors
    /// If it cannot be opened, or is not a database of ours.
    pub fn open(path: &Path) -> Result<Box<Self>, Error> {
        if is_cluster(path) { rqlite::open_writer(path) } else { Ok(Box::new(FileWriter::open(path)?)) }
    }
}

/// Whether there is a database at a path. For the address of a cluster this is true: what the cluster has is known
/// once it is asked.
pub fn exists(path: &Path) -> bool {
    is_cluster(path) || path.exists()
}

impl Whole {
    /// The database at a path.
    ///
    /// # Errors
    /// If it belongs to a cluster and cannot be copied.
    pub fn new(path: &Path) -> Result<Self, Error> {
        if is_cluster(path) { rqlite::fetch(path) } else { Ok(Self { path: path.to_owned(), folder: None }) }
    }
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

/// Opens an existing database for a service with this many readers, only for reading.
///
/// # Errors
/// As `Reader::open`, or if the database is a cluster.
pub fn open_only_to_read(path: &Path, readers: usize) -> Result<OpenStore, Error> {
    if is_cluster(path) {
        let message = "a service that only reads needs a file, and the database is a cluster; give clients a read-only key instead";
        return fail(ErrorKind::Config("read_only"), message);
    }
    let writer = WriteAccess::Refused(Reader::open(path)?);
    let readers = (0..readers).map(|_| Reader::open(path)).collect::<Result<_, _>>()?;
    let about = format!("read-only database {}", path.display());
    Ok(OpenStore { writer, readers, reads_at_once: sqlite::READS_AT_ONCE, claim: None, about })
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
