//! Opens a database, for a service or for a command that only reads: the one order in which that is safe.

use std::path::Path;

use rusqlite::Connection;

use super::claim::Claim;
use super::log_check::open_with_own_log;
use super::open_file::OpenFile;
use super::{FileReader, FileWriter, READS_AT_ONCE, cannot_open, connect, reading, schema};
use crate::error::Error;
use crate::model::sample_pets;
use crate::store::engine::Writes;
use crate::store::engine::{OpenStore, Reader, WriteAccess};

/// Opens a database for a service with this many readers, and creates the file if there is none.
///
/// # Errors
/// If another service has the database, it is not one of ours, its log is that of another database, or the system
/// refuses.
pub fn open_for_service(path: &Path, readers: usize) -> Result<OpenStore, Error> {
    open_with(path, readers, |path| FileWriter::open_with(path, "FULL", true))
}

/// Opens the database of a service that it goes with: a new file with so many sample pets, which is never flushed to
/// the disk.
///
/// # Errors
/// As [`open_for_service`].
pub fn open_ephemeral(path: &Path, readers: usize, sample: u32) -> Result<OpenStore, Error> {
    open_with(path, readers, |path| {
        let mut writer = FileWriter::open_with(path, "OFF", true)?;
        writer.begin()?;
        writer.add_samples(sample)?;
        Ok(writer)
    })
}

/// Returns the database of a service that it goes with to its first state, while it is served.
///
/// # Errors
/// As [`open_for_service`].
pub fn reset_ephemeral(path: &Path, sample: u32) -> Result<(), Error> {
    let mut writer = FileWriter::open_with(path, "OFF", true)?;
    writer.begin()?;
    writer.write(schema::empty)?;
    writer.add_samples(sample)
}

fn open_with(
    path: &Path,
    readers: usize,
    open_writer: impl FnOnce(&Path) -> Result<FileWriter, Error>,
) -> Result<OpenStore, Error> {
    // The claim first: from here on, no other service opens the database or removes its log.
    let claim = Claim::take(path)?;
    let about = format!("{} database {}", if claim.is_new { "new" } else { "existing" }, path.display());
    // The writer before the readers: it makes the schema that they expect.
    let mut writer = open_writer(path)?;
    // What a crash left in the log moves into the file. Before the readers, which would keep the log.
    if let Err(error) = writer.checkpoint() {
        if error.passes() {
            log::debug!("the write-ahead log stays for now: {error}");
        } else {
            log::warn!("the write-ahead log stays next to the database: {error}");
        }
    }
    let open = |_| Ok(Box::new(FileReader::open(path)?) as Box<Reader>);
    let readers = (0..readers).map(open).collect::<Result<_, Error>>()?;
    Ok(OpenStore {
        writer: WriteAccess::Writes(Box::new(writer)),
        readers,
        reads_at_once: READS_AT_ONCE,
        claim: Some(Box::new(claim)),
        about,
    })
}

/// Opens an existing database without changing it, whether a service has it or not. The file stays open until after
/// the connection.
///
/// # Errors
/// If it does not exist, is not a petstore database, is damaged, or this user may not read it.
pub fn open_existing(path: &Path) -> Result<(Connection, OpenFile), Error> {
    let file = open_with_own_log(path)?;
    let connection = connect(path, reading(path)).map_err(|error| cannot_open(path, error))?;
    schema::check_used(&connection, path)?;
    Ok((connection, file))
}

impl FileWriter {
    /// Adds sample pets and commits.
    fn add_samples(&mut self, count: u32) -> Result<(), Error> {
        for pet in sample_pets(count) {
            self.insert_pet(&pet, None)?;
        }
        self.commit()?;
        Ok(())
    }
}

impl FileReader {
    /// Opens an existing database without changing it.
    ///
    /// # Errors
    /// If it does not exist, is not a petstore database, is damaged, or this user may not read it.
    pub fn open_existing(path: &Path) -> Result<Self, Error> {
        let (connection, file) = open_existing(path)?;
        Self::new(connection, path, file)
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::Folder;
    use super::*;
    use crate::error::ErrorKind;

    #[test]
    fn empty_or_missing_file_is_named_and_left() {
        let folder = Folder::new();
        let path = folder.database();
        let said = || FileReader::open_existing(&path).err().unwrap();
        assert_eq!(said().kind(), ErrorKind::DatabaseMissing);
        assert!(!path.exists());
        std::fs::write(&path, "").unwrap();
        assert_eq!(said().kind(), ErrorKind::DatabaseMissing);
        assert!(said().to_string().contains("is empty"), "{}", said());
        std::fs::write(&path, "some text that goes on for a while").unwrap();
        assert_eq!(said().kind(), ErrorKind::DatabaseForeign);
    }
}
