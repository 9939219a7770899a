//! Opens a database for a service.

use std::fmt;
use std::path::Path;

use super::rows::text;
use super::sqlite::{self, Claim, Purpose, Reader, Writer, log_of};
use petstore_base::error::Error;

/// A database that a service has open. The fields drop in their order: connections before the claim.
pub struct OpenStore {
    /// The connection for requests that write.
    pub writer: WriteAccess,
    /// The connections that read.
    pub readers: Vec<Reader>,
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

/// Returns `true` if there is a database at a path. An empty file without a log is none.
pub fn exists(path: &Path) -> bool {
    let is_empty = |path: &Path| {
        path.metadata()
            .map_or(true, |file| file.is_file() && file.len() == 0)
    };
    path.exists() && !(is_empty(path) && is_empty(&log_of(path)))
}

/// Opens a database for a service with this many readers, and creates it if there is none.
///
/// # Errors
/// If another service has the database, it is not one of ours, its log is that of another database, or the system
/// fails.
pub fn open_for_service(path: &Path, readers: usize) -> Result<OpenStore, Error> {
    open_file(path, readers, Purpose::Service)
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
    let writer = sqlite::open_for_service(path, purpose)?;
    let triggers =
        "SELECT name FROM sqlite_schema WHERE type = 'trigger' AND lower(tbl_name) = 'pets'";
    for name in writer.all(triggers, |row| Ok(text(row, 0)?.escape_debug().to_string()))? {
        log::warn!(
            "the trigger {name} can change the pets that clients send; responses have what they sent"
        );
    }
    for saved in sqlite::saved_next_to(path) {
        log::warn!(
            "{} has what a service held when the database was taken from it, perhaps the latest pets: compare it, restore it or \
             move it away",
            saved.display()
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
        claim,
        about,
    })
}

/// Opens an existing database for a service with this many readers, only for reading.
///
/// # Errors
/// Those of `Reader::open`.
pub fn open_only_to_read(path: &Path, readers: usize) -> Result<OpenStore, Error> {
    let writer = WriteAccess::Refused(Reader::open(path)?);
    let about = format!("read-only database {}", path.display());
    open_with_readers(path, readers, writer, None, about)
}
