//! Keeps the write-ahead log short: moves it into the database file (`sqlite.org/wal.html#ckpt`).
//!
//! SQLite would do so within the commit that leaves a long log, whose clients would wait for it. Here the next batch does
//! before it begins. SQLite also says nothing if that fails, and after a failed flush the log must stay. The log starts
//! over when a writer finds all of it moved and nobody reading it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use rusqlite::Connection;
use rusqlite::config::DbConfig;
use rusqlite::ffi::SQLITE_IOERR_FSYNC;
use rusqlite::hooks::Wal;

use super::{Cause, FileConnection, FileReader, StoreError};

/// A log of so many frames is moved, as `sqlite.org/pragma.html#pragma_wal_autocheckpoint` has it. A frame holds
/// a page of 4 KiB.
const LONG: i32 = 1000;

const PASSIVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";
pub const TRUNCATE: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// Counts the frames of the log after each commit of a connection, in place of SQLite's own hook, which moves the log.
pub fn count_frames(connection: &mut Connection) -> rusqlite::Result<Arc<AtomicI32>> {
    let counted = Arc::new(AtomicI32::new(0));
    let frames = Arc::clone(&counted);
    let count = move |_: &mut Wal, now| {
        frames.store(now, Relaxed);
        Ok(())
    };
    connection.wal_hook(Some(count))?;
    Ok(counted)
}

impl FileConnection {
    /// Moves a long log. What fails is tried again before the next batch.
    pub(super) fn shorten_log(&mut self) {
        if self.frames.load(Relaxed) >= LONG {
            let _ = self.reader.checkpoint_log(PASSIVE);
        }
    }
}

impl FileReader {
    /// Moves the log into the file; `false` if somebody reads it (`sqlite.org/pragma.html#pragma_wal_checkpoint`).
    pub(super) fn checkpoint_log(&mut self, statement: &str) -> Result<bool, StoreError> {
        let moved = self
            .connection
            .prepare_cached(statement)
            .and_then(|mut statement| statement.query_row([], |row| Ok(row.get::<_, i32>(0)? == 0)));
        moved.map_err(|error| match error.sqlite_error() {
            Some(failure) if failure.extended_code == SQLITE_IOERR_FSYNC => self.lose_flush(&error),
            _ => error.into(),
        })
    }

    /// If the flush of the file fails, Linux may drop what is to be flushed, and report that only once. So the service
    /// ends, and the next start moves all of the log.
    pub(super) fn lose_flush(&mut self, error: &rusqlite::Error) -> StoreError {
        let detail = format!("{error}; the next start moves its whole log into it again");
        let error = StoreError::Unavailable(Cause::Unflushed, detail);
        self.watch.fail(&error);
        // Or SQLite would move what is left when it closes the database.
        let _ = self.connection.set_db_config(DbConfig::SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, true);
        error
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{new_pet, pair};
    use super::*;

    fn add(writer: &mut FileConnection, bytes: usize) {
        writer.insert_pet(&new_pet(&"x".repeat(bytes)), None).unwrap();
        writer.commit().unwrap();
    }

    #[test]
    fn checkpoint_empties_the_log_unless_somebody_reads() {
        let (folder, mut writer, mut reader) = pair();
        let log = || std::fs::metadata(folder.0.join("pets.db-wal")).unwrap().len();
        add(&mut writer, 1);
        reader.begin().unwrap();
        assert!(writer.checkpoint().is_err());
        assert_ne!(log(), 0);
        reader.end().unwrap();
        assert_eq!(writer.checkpoint(), Ok(()));
        assert_eq!(log(), 0);
    }

    #[test]
    fn long_log_is_moved_before_the_next_batch_and_starts_over() {
        let (_folder, mut writer, mut reader) = pair();
        reader.begin().unwrap();
        while writer.frames.load(Relaxed) < 2 * LONG {
            add(&mut writer, 500_000);
        }
        reader.end().unwrap();
        for _ in 0..2 {
            add(&mut writer, 1);
        }
        assert!(writer.frames.load(Relaxed) < 20);
    }
}
