//! Keeps the write-ahead log of a service short: moves it into the database file while creates go on
//! (`sqlite.org/wal.html#ckpt`).
//!
//! A commit that leaves a long log moves it, as SQLite does by itself. But while another program reads in one long
//! transaction, the log grows, and the commit after that program's last one would move all of it and stall every
//! create meanwhile. So a thread with a connection of its own moves and flushes what has piled up, which holds up no
//! writer, and a commit moves only the rest. The log starts over when a writer finds all of it moved and nobody reading
//! it. The file of a log that was large shrinks in steps, because a commit waits for each.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rusqlite::ffi::SQLITE_IOERR_FSYNC;
use rusqlite::hooks::Wal;
use rusqlite::{Connection, OpenFlags};

use super::watch::{Loss, Watch};
use super::{Cause, Database, MAX_IDLE_LOG_BYTES, StoreError, Writer, cannot_open, connect, open_file};
use crate::error::Error;
use crate::log_line::{self, log_line};

/// A commit moves a log of so many frames, as `sqlite.org/pragma.html#pragma_wal_autocheckpoint` has it. A frame holds
/// a page of 4 KiB.
const LONG: i32 = 1000;
/// On a small disk the log is long sooner: at this part of the disk. The file must grow by what the log holds, and the
/// log keeps its room until then.
const DISK_PART: u64 = 32 * 4096;
/// The fewest frames of a long log.
const SHORTEST: i32 = 16;
/// The most frames that a commit moves: 16 MiB.
const MOST: i32 = 4096;
/// After so many passes that moved everything they found, and still left more than [`MOST`], a commit moves the rest:
/// creates are faster than the thread.
const MOST_PASSES: u32 = 4;
/// By how many bytes the file of the log shrinks each time that it starts over.
const SHRINK: i64 = 64 * 1024 * 1024;
/// The bytes of a frame: a page and its head (`sqlite.org/fileformat2.html#the_write_ahead_log`).
const FRAME: i64 = 4096 + 24;
/// The pause after a pass.
const PAUSE: Duration = Duration::from_millis(50);

/// What keeps the log of a service short. Dropping it waits for the pass under way.
pub struct LogKeeper {
    /// The frames of the log after the writer's last commit.
    frames: Arc<AtomicI32>,
    /// How many frames are a long log.
    long: i32,
    /// The passes since a commit last moved the log.
    passes: Arc<AtomicU32>,
    /// The bytes of the log's file that stay when it starts over.
    most_bytes: i64,
    /// Dropped to end the thread.
    wake: Option<SyncSender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl LogKeeper {
    fn wake(&self) {
        // If it is full, the thread is about to look anyway.
        let _ = self.wake.as_ref().map(|wake| wake.try_send(()));
    }
}

impl Drop for LogKeeper {
    fn drop(&mut self) {
        self.wake = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            log_line!(error, "the thread that moves the write-ahead log has died");
        }
    }
}

impl Writer {
    /// Keeps the log short from now on.
    ///
    /// # Errors
    /// If no thread can be started.
    pub fn keep_log_short(&mut self, path: &Path, loss: &Arc<Loss>) -> Result<(), Error> {
        let frames = Arc::new(AtomicI32::new(0));
        let seen = Arc::clone(&frames);
        // This takes the place of SQLite's own hook, which moves the log at each commit that leaves a long one.
        let note = move |_: &mut Wal, frames| {
            seen.store(frames, Relaxed);
            Ok(())
        };
        self.database.connection.wal_hook(Some(note)).map_err(|error| cannot_open(path, error))?;
        let mut watch = Watch::new(path).map_err(|error| open_file::cannot_open(path, error))?;
        watch.share(loss);
        let mover = Mover { path: path.to_owned(), watch, loss: Arc::clone(loss), database: None };
        let passes = Arc::new(AtomicU32::new(0));
        let (wake, woken) = sync_channel(1);
        let counter = Arc::clone(&passes);
        let thread = log_line::start("log", move || move_when_woken(mover, &woken, &counter))?;
        let disk =
            rustix::fs::statvfs(path).map_or(u64::MAX, |disk| disk.f_blocks.saturating_mul(disk.f_frsize));
        self.keeper = Some(Box::new(LogKeeper {
            frames,
            long: long(disk),
            passes,
            most_bytes: MAX_IDLE_LOG_BYTES,
            wake: Some(wake),
            thread: Some(thread),
        }));
        Ok(())
    }

    /// Moves a long log, or has the thread do it. Called after each commit, which has succeeded whatever happens here:
    /// what fails is tried again later.
    pub(super) fn shorten_log(&mut self) {
        let Some(keeper) = &mut self.keeper else { return };
        let frames = keeper.frames.load(Relaxed);
        if frames < keeper.long {
            return;
        }
        let connection = &self.database.connection;
        let is_much = waiting(connection).is_ok_and(|waiting| waiting > MOST);
        if is_much && keeper.passes.load(Relaxed) < MOST_PASSES {
            return keeper.wake();
        }
        keeper.passes.store(0, Relaxed);
        let _ = self.database.move_log(PASSIVE);
        let bytes = (i64::from(frames) * FRAME).max(keeper.most_bytes);
        let most_bytes = (bytes - SHRINK).max(MAX_IDLE_LOG_BYTES);
        if most_bytes != keeper.most_bytes
            && connection.pragma_update(None, "journal_size_limit", most_bytes).is_ok()
        {
            keeper.most_bytes = most_bytes;
        }
    }

    /// Moves everything that the log holds, so that the file alone is whole, and empties the log. Waits for nobody, and
    /// leaves much to the thread.
    ///
    /// # Errors
    /// If the disk fails, another process reads, or the thread is at work; nothing is lost then, the log stays.
    pub fn empty_log(&mut self) -> Result<(), StoreError> {
        if let Some(keeper) = &self.keeper
            && waiting(&self.database.connection)? > MOST
        {
            keeper.wake();
            return Err(StoreError::Unavailable(Cause::Locked, "it is being moved".to_owned()));
        }
        self.truncate_log()
    }

    /// Moves everything that the log holds, and empties the log, before clients come or after they have gone: nothing
    /// keeps the log short any more. Waits for no other process.
    ///
    /// # Errors
    /// If the disk fails, or another process reads; nothing is lost then, the log stays.
    pub fn checkpoint(&mut self) -> Result<(), StoreError> {
        self.keeper = None;
        self.truncate_log()
    }

    fn truncate_log(&mut self) -> Result<(), StoreError> {
        // The log may be that of another database by now, and this file in nobody's sight.
        self.database.watch.look_now()?;
        match self.database.move_log(TRUNCATE) {
            Ok(Moved { is_busy: false, .. }) => Ok(()),
            Ok(_) => Err(StoreError::Unavailable(Cause::Locked, "another process reads it".to_owned())),
            Err(error) => Err(self.database.with_room_needed(error)),
        }
    }
}

impl Database {
    /// Moves the log into the file. If the flush of the file fails, Linux may drop what is to be flushed and report that
    /// only once. SQLite then moves again what this call has moved, but not what earlier calls have moved without a
    /// flush. So the service ends: the next start moves all of the log.
    fn move_log(&self, statement: &str) -> Result<Moved, StoreError> {
        move_log(&self.connection, statement).map_err(|error| {
            let is_flush =
                error.sqlite_error().is_some_and(|error| error.extended_code == SQLITE_IOERR_FSYNC);
            let is_partly_moved = || move_log(&self.connection, NOTHING).is_ok_and(|log| log.moved > 0);
            if is_flush && is_partly_moved() { self.lose_flush(&error.to_string()) } else { error.into() }
        })
    }

    pub(super) fn lose_flush(&self, error: &str) -> StoreError {
        let detail = format!("{error}; the next start moves its whole log into it again");
        let error = StoreError::Unavailable(Cause::Unflushed, detail);
        self.watch.lose(&error);
        error
    }

    /// Adds to the failure of a full disk by how much the file must grow.
    fn with_room_needed(&self, error: StoreError) -> StoreError {
        let StoreError::Unavailable(Cause::Full, detail) = error else { return error };
        let number = |name| self.connection.pragma_query_value(None, name, |row| row.get::<_, u32>(0));
        let pages = |name| number(name).map_or(0, u64::from);
        let length = self._files.0.metadata().map_or(0, |file| file.len());
        let needed = (pages("page_count") * pages("page_size")).saturating_sub(length);
        let room =
            format!("{detail}; it must grow by {} KiB to take the content of its log", needed.div_ceil(1024));
        StoreError::Unavailable(Cause::Full, room)
    }
}

const NOTHING: &str = "PRAGMA wal_checkpoint(NOOP)";
const PASSIVE: &str = "PRAGMA wal_checkpoint(PASSIVE)";
const TRUNCATE: &str = "PRAGMA wal_checkpoint(TRUNCATE)";

/// What a checkpoint reports (`sqlite.org/pragma.html#pragma_wal_checkpoint`).
struct Moved {
    is_busy: bool,
    frames: i32,
    moved: i32,
}

fn move_log(connection: &Connection, statement: &str) -> rusqlite::Result<Moved> {
    connection.prepare_cached(statement)?.query_row([], |row| {
        let (is_busy, frames, moved) = row.try_into()?;
        Ok(Moved { is_busy, frames, moved })
    })
}

/// How many frames of the log are not in the file yet.
fn waiting(connection: &Connection) -> rusqlite::Result<i32> {
    move_log(connection, NOTHING).map(|log| log.frames - log.moved)
}

/// What the thread works with.
struct Mover {
    path: PathBuf,
    watch: Watch,
    loss: Arc<Loss>,
    /// Opened when it is first needed, which is seldom.
    database: Option<Database>,
}

impl Mover {
    /// Moves and flushes what no reader needs in the log any more. Returns whether that was all.
    fn pass(&mut self) -> Result<bool, StoreError> {
        self.watch.look_now()?;
        let database = match self.database.take() {
            Some(database) => database,
            None => {
                let opened = open(&self.path, &self.loss);
                let opened =
                    opened.map_err(|error| StoreError::Unavailable(Cause::Failing, error.to_string()))?;
                // The files that it has opened are those of the service.
                self.watch.look_now()?;
                opened
            }
        };
        let log = database.move_log(PASSIVE)?;
        // SQLite flushes the file only when the last frame is moved, and that is the writer's part.
        database._files.0.sync_data().map_err(|error| database.lose_flush(&error.to_string()))?;
        self.database = Some(database);
        Ok(!log.is_busy && log.moved == log.frames)
    }
}

/// Opens a connection that moves the log.
fn open(path: &Path, loss: &Arc<Loss>) -> Result<Database, Error> {
    let say = |error: rusqlite::Error| cannot_open(path, error);
    let file = open_file::open(path)?;
    let connection = connect(path, OpenFlags::SQLITE_OPEN_READ_WRITE).map_err(say)?;
    connection.busy_timeout(Duration::ZERO).map_err(say)?;
    // What is moved is flushed before the log may start over.
    connection.pragma_update(None, "synchronous", "FULL").map_err(say)?;
    waiting(&connection).map_err(say)?;
    let mut database = Database::new(connection, path, file)?;
    database.watch.share(loss);
    Ok(database)
}

/// The work of the thread: a pass each time it is woken.
fn move_when_woken(mut mover: Mover, woken: &Receiver<()>, passes: &AtomicU32) {
    while woken.recv().is_ok() {
        match mover.pass() {
            Ok(true) => drop(passes.fetch_add(1, Relaxed)),
            Ok(false) => passes.store(0, Relaxed),
            Err(error) => {
                log_line!(debug, "the write-ahead log stays for now: {error}");
                // Then a commit does it.
                passes.store(if error.passes() { 0 } else { MOST_PASSES }, Relaxed);
            }
        }
        thread::sleep(PAUSE);
    }
}

/// How many frames are a long log on a disk of so many bytes.
fn long(disk: u64) -> i32 {
    i32::try_from(disk / DISK_PART).unwrap_or(LONG).clamp(SHORTEST, LONG)
}

#[cfg(test)]
mod tests {
    use super::super::tests::new_pet;
    use super::super::tests::pair;
    use super::*;
    use crate::testing::PATIENCE;
    use std::time::Instant;

    fn add(writer: &mut Writer, bytes: usize) {
        writer.insert_pet(&new_pet(&"x".repeat(bytes))).unwrap();
        writer.commit().unwrap();
    }

    #[test]
    fn checkpoint_empties_the_log_unless_somebody_reads() {
        let (folder, mut writer, mut reader) = pair();
        let log = || std::fs::metadata(folder.0.join("pets.db-wal")).unwrap().len();
        writer.insert_pet(&new_pet("Rex")).unwrap();
        writer.commit().unwrap();
        reader.begin().unwrap();
        assert!(writer.checkpoint().is_err());
        assert_ne!(log(), 0);
        reader.end().unwrap();
        assert_eq!(writer.checkpoint(), Ok(()));
        assert_eq!(log(), 0);
    }

    #[test]
    fn log_is_long_sooner_on_a_small_disk() {
        let mib = 1024 * 1024;
        assert_eq!([0, 4 * mib, 8 * mib, 1024 * mib, u64::MAX].map(long), [SHORTEST, 32, 64, LONG, LONG]);
    }

    #[test]
    fn commit_moves_a_long_log_and_the_next_starts_over() {
        let (folder, mut writer, _reader) = pair();
        writer.keep_log_short(&folder.database(), &Arc::default()).unwrap();
        let frames = |writer: &Writer| writer.keeper.as_ref().unwrap().frames.load(Relaxed);
        while frames(&writer) < LONG {
            add(&mut writer, 500_000);
        }
        assert_eq!(waiting(&writer.connection), Ok(0));
        add(&mut writer, 1);
        assert!(frames(&writer) < 20);
    }

    #[test]
    fn what_piled_up_behind_a_reader_is_moved_by_the_thread() {
        let (folder, mut writer, mut reader) = pair();
        writer.keep_log_short(&folder.database(), &Arc::default()).unwrap();
        reader.begin().unwrap();
        while waiting(&writer.connection).unwrap() <= MOST + 1000 {
            add(&mut writer, 1_000_000);
        }
        reader.end().unwrap();
        let before = waiting(&writer.connection).unwrap();
        // Idle or not, the writer leaves it to the thread.
        assert!(writer.empty_log().is_err());
        let deadline = Instant::now() + PATIENCE;
        while waiting(&writer.connection).unwrap() > 0 {
            assert!(Instant::now() < deadline, "the thread has moved nothing");
            thread::sleep(PAUSE);
        }
        assert!(before > MOST);
        add(&mut writer, 1);
        assert!(writer.keeper.as_ref().unwrap().frames.load(Relaxed) < 20, "the log starts over");
        assert_eq!(writer.empty_log(), Ok(()));
        assert_eq!(std::fs::metadata(folder.0.join("pets.db-wal")).unwrap().len(), 0);
    }

    #[test]
    fn commit_leaves_much_to_the_thread_and_moves_any_other_long_log() {
        let (folder, mut writer, mut reader) = pair();
        writer.keep_log_short(&folder.database(), &Arc::default()).unwrap();
        add(&mut writer, 1);
        for (frames, is_moved) in [(LONG - 1, false), (LONG, true)] {
            writer.keeper.as_ref().unwrap().frames.store(frames, Relaxed);
            writer.shorten_log();
            assert_eq!(waiting(&writer.connection).unwrap() == 0, is_moved, "{frames}");
        }
        // As if the thread never came to its work.
        let keeper = writer.keeper.as_mut().unwrap();
        keeper.wake = None;
        reader.begin().unwrap();
        while waiting(&writer.connection).unwrap() <= MOST {
            add(&mut writer, 1_000_000);
        }
        reader.end().unwrap();
        add(&mut writer, 1);
        assert!(waiting(&writer.connection).unwrap() > MOST);
    }

    #[test]
    fn file_of_a_log_that_was_large_shrinks_in_steps() {
        let (folder, mut writer, _reader) = pair();
        writer.keep_log_short(&folder.database(), &Arc::default()).unwrap();
        let large = 40_000;
        let bytes = i64::from(large) * FRAME;
        for (frames, stays) in [
            (large, bytes - SHRINK),
            (LONG, bytes - 2 * SHRINK),
            (LONG, MAX_IDLE_LOG_BYTES),
            (LONG, MAX_IDLE_LOG_BYTES),
        ] {
            writer.keeper.as_ref().unwrap().frames.store(frames, Relaxed);
            writer.shorten_log();
            let limit = writer.connection.pragma_query_value(None, "journal_size_limit", |row| row.get(0));
            assert_eq!((limit, writer.keeper.as_ref().unwrap().most_bytes), (Ok(stays), stays));
        }
    }

    #[test]
    fn pass_says_whether_it_moved_all() {
        let (folder, mut writer, mut reader) = pair();
        let (path, loss) = (folder.database(), Arc::default());
        let mut mover = Mover { watch: Watch::new(&path).unwrap(), path, loss, database: None };
        add(&mut writer, 1);
        assert_eq!(mover.pass(), Ok(true));
        reader.begin().unwrap();
        add(&mut writer, 1);
        assert_eq!(mover.pass(), Ok(false), "somebody reads what was before");
        reader.end().unwrap();
        assert_eq!(mover.pass(), Ok(true));
    }

    #[test]
    fn end_waits_for_the_thread() {
        let (folder, mut writer, _reader) = pair();
        writer.keep_log_short(&folder.database(), &Arc::default()).unwrap();
        let passes = Arc::clone(&writer.keeper.as_ref().unwrap().passes);
        writer.keeper.as_ref().unwrap().wake();
        let deadline = Instant::now() + PATIENCE;
        while passes.load(Relaxed) == 0 {
            assert!(Instant::now() < deadline, "the thread does nothing");
            thread::yield_now();
        }
        // Now it pauses.
        writer.checkpoint().unwrap();
        assert_eq!(Arc::strong_count(&passes), 1, "it is gone");
    }

    #[test]
    fn commit_moves_what_the_thread_cannot_keep_up_with() {
        let (folder, mut writer, mut reader) = pair();
        writer.keep_log_short(&folder.database(), &Arc::default()).unwrap();
        // As if the thread had moved all it found, again and again.
        writer.keeper.as_ref().unwrap().passes.store(MOST_PASSES, Relaxed);
        reader.begin().unwrap();
        while waiting(&writer.connection).unwrap() <= MOST {
            writer.keeper.as_ref().unwrap().passes.store(MOST_PASSES, Relaxed);
            add(&mut writer, 1_000_000);
        }
        reader.end().unwrap();
        writer.keeper.as_ref().unwrap().passes.store(MOST_PASSES, Relaxed);
        add(&mut writer, 1);
        assert_eq!(waiting(&writer.connection), Ok(0));
    }
}
