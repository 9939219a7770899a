//! Keeps the write-ahead log short with checkpoints (`sqlite.org/wal.html#ckpt`).
//!
//! SQLite's own checkpoint runs within the commit that makes the log long, and the clients of that commit would wait for
//! it. Here it runs before the next batch. SQLite also ignores a checkpoint that fails, and after a failed flush the log
//! must stay. The log starts over when a writer finds that its checkpoint is complete and that nobody reads it.

use std::sync::Arc;
use std::sync::atomic::{AtomicI32, Ordering::Relaxed};

use rusqlite::Connection;
use rusqlite::ffi::SQLITE_IOERR_FSYNC;
use rusqlite::hooks::Wal;

use super::{Cause, Reader, StoreError, Writer};

/// The frames of a log that needs a checkpoint: the default of `sqlite.org/pragma.html#pragma_wal_autocheckpoint`. A
/// frame holds a page of 4 KiB.
const LONG: i32 = 1000;

/// The frames of a log that gets a checkpoint as soon as the writer is idle: those of 20 to 30 creates, each with its own
/// commit.
pub const WORTH_A_CHECKPOINT: i32 = 100;

const PASSIVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";
pub const TRUNCATE: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// Counts the frames of the log after each commit of a connection. This replaces SQLite's hook, which runs checkpoints.
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

impl Writer {
    /// Runs a checkpoint if the log is long. If it fails, the next batch tries again.
    pub(super) fn shorten_log(&mut self) {
        if self.frames.load(Relaxed) >= LONG {
            let _ = self.reader.run_checkpoint(PASSIVE);
        }
    }
}

impl Reader {
    /// Runs a checkpoint; `false` if a reader kept it from completing (`sqlite.org/pragma.html#pragma_wal_checkpoint`).
    pub(super) fn run_checkpoint(&mut self, statement: &str) -> Result<bool, StoreError> {
        let completed = self
            .raw()
            .prepare_cached(statement)
            .and_then(|mut statement| {
                statement.query_row([], |row| Ok(row.get::<_, i32>(0)? == 0))
            });
        completed.map_err(|error| match error.sqlite_error() {
            Some(failure) if failure.extended_code == SQLITE_IOERR_FSYNC => self.lose_flush(&error),
            _ => error.into(),
        })
    }

    /// If the flush of the file fails, Linux may drop the pages that it did not flush, and report that only once. So the
    /// service ends, and the checkpoint of the next start writes all pages of the log again.
    pub(super) fn lose_flush(&mut self, error: &rusqlite::Error) -> StoreError {
        let detail = format!("{error}; the next start moves its whole log into it again");
        let error = StoreError::Unavailable(Cause::Unflushed, detail);
        self.watch.fail(&error);
        self.keep_log();
        error
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{new_pet, pair};
    use super::*;

    fn add(writer: &mut Writer, bytes: usize) {
        writer
            .insert_pet(&new_pet(&"x".repeat(bytes)), None)
            .unwrap();
        writer.commit().unwrap();
    }

    #[test]
    fn checkpoint_empties_the_log_unless_somebody_reads() {
        let (folder, mut writer, mut reader) = pair();
        let log = || {
            std::fs::metadata(folder.0.join("pets.db-wal"))
                .unwrap()
                .len()
        };
        add(&mut writer, 1);
        reader.begin().unwrap();
        assert!(writer.checkpoint().is_err());
        assert_ne!(log(), 0);
        reader.end().unwrap();
        assert_eq!(writer.checkpoint(), Ok(()));
        assert_eq!(log(), 0);
    }

    #[test]
    fn long_log_gets_a_checkpoint_before_the_next_batch_and_starts_over() {
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
