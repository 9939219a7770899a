//! Opens the writer of a service.

use std::path::Path;

use super::{Cause, FileConnection, StoreError, schema};
use crate::base::error::Error;
use crate::model::sample_pets;

/// Opens the writer of a service that has claimed the file, and brings the schema up to date.
///
/// # Errors
/// If it is not a database of ours, its log is that of another one or cannot be applied, or the system fails.
pub fn open_for_service(path: &Path) -> Result<FileConnection, Error> {
    let mut writer = FileConnection::open_with(path, "FULL", true)?;
    writer.checkpoint_at_start()?;
    Ok(writer)
}

/// Opens the writer of a temporary database: a new file with this many sample pets, which is never flushed to the disk.
///
/// # Errors
/// Those of [`open_for_service`].
pub fn open_ephemeral(path: &Path, sample: u32) -> Result<FileConnection, Error> {
    let mut writer = FileConnection::open_with(path, "OFF", true)?;
    writer.begin()?;
    writer.add_samples(sample)?;
    writer.checkpoint_at_start()?;
    Ok(writer)
}

/// Returns a temporary database to its first state, while it is served.
///
/// # Errors
/// Those of [`open_for_service`].
pub fn reset_ephemeral(path: &Path, sample: u32) -> Result<(), Error> {
    let mut writer = FileConnection::open_with(path, "OFF", true)?;
    writer.begin()?;
    writer.write(schema::empty)?;
    writer.add_samples(sample)
}

impl FileConnection {
    /// Checkpoints the log that a crash has left.
    fn checkpoint_at_start(&mut self) -> Result<(), Error> {
        match self.checkpoint() {
            Err(error) if error.is_lost() || matches!(error, StoreError::Unavailable(Cause::Damaged, _)) => {
                return Err(Error::from(error).context("its log cannot be applied"));
            }
            Err(error) if error.passes() => log::debug!("the write-ahead log stays for now: {error}"),
            Err(error) => log::warn!("the write-ahead log stays next to the database: {error}"),
            Ok(()) => {}
        }
        Ok(())
    }

    /// Adds sample pets and commits.
    fn add_samples(&mut self, count: u32) -> Result<(), Error> {
        for pet in sample_pets(count) {
            self.insert_pet(&pet, None)?;
        }
        self.commit()?;
        Ok(())
    }
}
