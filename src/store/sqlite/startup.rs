//! Opens a database for writing, and for a service: the one order in which that is safe. `claim.rs` has the checks of
//! the file.

use std::path::Path;
use std::time::Duration;

use rusqlite::config::DbConfig;
use rusqlite::{MAIN_DB, OpenFlags};

use super::checkpoint::count_frames;
use super::claim::{open_with_own_log, prepare, refuse_log_of_another};
use super::connection::{cannot_open, cannot_write, connect};
use super::open_file::log_of;
use super::{Cause, Reader, StoreError, Writer, migrations, schema, schema_diff};
use crate::model::sample_pets;
use petstore_base::error::{Error, ErrorKind};

/// The most bytes of the write-ahead log that stay after a checkpoint.
const MAX_IDLE_LOG_BYTES: i64 = 16 * 1024 * 1024;

/// The purpose of a writer.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Purpose {
    /// A command, which migrates no database: its service may still run.
    Command,
    /// A service.
    Service,
    /// A service whose database ends with it, and is never flushed to the disk.
    Ephemeral,
}

/// Opens the writer of a service that has claimed the file, brings the schema up to date, and checkpoints the log of a
/// crash.
///
/// # Errors
/// If it is not a database of ours, its log is that of another one or cannot be applied, or the system fails.
pub fn open_for_service(path: &Path, purpose: Purpose) -> Result<Writer, Error> {
    let mut writer = Writer::open_with(path, purpose)?;
    match writer.checkpoint() {
        Err(error)
            if error.is_lost() || matches!(error, StoreError::Unavailable(Cause::Damaged, _)) =>
        {
            return Err(Error::from(error).context("its log cannot be applied"));
        }
        Err(error) if error.passes() => log::debug!("the write-ahead log stays for now: {error}"),
        Err(error) => log::warn!("the write-ahead log stays next to the database: {error}"),
        Ok(()) => {}
    }
    Ok(writer)
}

/// Returns an ephemeral database to its first state, while it is served.
///
/// # Errors
/// Fails for the reasons of [`open_for_service`].
pub fn reset_ephemeral(path: &Path, sample: u32) -> Result<(), Error> {
    let mut writer = Writer::open_with(path, Purpose::Ephemeral)?;
    writer.begin()?;
    writer.open_transaction()?;
    schema::empty(writer.raw()).map_err(StoreError::from)?;
    for pet in sample_pets(sample) {
        writer.insert_pet(&pet, None)?;
    }
    writer.commit()?;
    Ok(())
}

impl Writer {
    /// Opens the database for writing: makes the file if there is none (mode 0600), and refuses one that is not ours, or
    /// older: its service may still run, and only a service brings it up to date.
    ///
    /// # Errors
    /// If it cannot be opened, or is not a database of ours.
    pub fn open(path: &Path) -> Result<Self, Error> {
        Self::open_with(path, Purpose::Command)
    }

    /// Opens the database like [`Writer::open`]. A service migrates an older one.
    fn open_with(path: &Path, purpose: Purpose) -> Result<Self, Error> {
        prepare(path)?;
        let file = open_with_own_log(path)?;
        let say = |error: rusqlite::Error| cannot_open(path, error);
        let has_log = log_of(path).exists();
        let mut connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(say)?;
        // A database that is refused keeps its log, and gets none if it had none
        // (sqlite.org/c3ref/c_dbconfig_defensive.html).
        connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, has_log)
            .map_err(say)?;
        // SQLite also opens a file that it may not write.
        if connection.is_readonly(MAIN_DB).map_err(say)? {
            return Err(cannot_write(path));
        }
        schema::check(&connection, path, migrations::STEPS)?;
        refuse_log_of_another(path, &connection)?;
        if purpose == Purpose::Command {
            schema::refuse_older(&connection, path)?;
        }
        // Before the migration, so that a refused database stays as it is.
        schema_diff::refuse_gaps(&connection, path)?;
        // FULL: every commit is flushed to the disk before it counts (sqlite.org/pragma.html#pragma_synchronous).
        let synchronous = if purpose == Purpose::Ephemeral {
            "OFF"
        } else {
            "FULL"
        };
        connection
            .pragma_update(None, "synchronous", synchronous)
            .map_err(say)?;
        // Readers never wait for the writer (sqlite.org/wal.html). Asked for before the migration, as a
        // transaction cannot change it.
        let mode: String = connection
            .query_row("PRAGMA journal_mode = WAL", [], |row| row.get(0))
            .map_err(say)?;
        if mode != "wal" {
            let why = format!("SQLite cannot use write-ahead logging here (it stays at '{mode}')");
            let message = format!("{}: {why}; a local file system is needed", path.display());
            return Err(Error::new(ErrorKind::Io, message));
        }
        // A log that grew during a long read is cut (sqlite.org/pragma.html#pragma_journal_size_limit).
        connection
            .pragma_update(None, "journal_size_limit", MAX_IDLE_LOG_BYTES)
            .map_err(say)?;
        migrations::migrate(&mut connection, path, migrations::STEPS)?;
        // From here on, SQLite has no busy timeout; `batch.rs` waits for locks.
        connection.busy_timeout(Duration::ZERO).map_err(say)?;
        connection
            .set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, false)
            .map_err(say)?;
        let frames = count_frames(&mut connection).map_err(say)?;
        let reader = Reader::new(path, connection, file, None);
        let mut writer = Self::new(reader);
        writer.frames = frames;
        if purpose == Purpose::Ephemeral {
            // Nobody misses it.
            writer.never_rescue();
        }
        Ok(writer)
    }
}
