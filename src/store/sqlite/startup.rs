//! Opens a database for a service: the one order in which that is safe.

use std::path::Path;

use super::claim::Claim;
use super::{Cause, FileReader, FileWriter, READS_AT_ONCE, StoreError, schema};
use crate::base::error::Error;
use crate::model::sample_pets;
use crate::store::traits::Writes;
use crate::store::traits::{OpenStore, Reader, WriteAccess};

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
        if error.is_lost() || matches!(error, StoreError::Unavailable(Cause::Damaged, _)) {
            return Err(Error::from(error).context("its log cannot be applied"));
        } else if error.passes() {
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
