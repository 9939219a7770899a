//! Looks whether a database that is open is still the file that was opened, and written by SQLite alone.

use std::io::{self, ErrorKind};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use super::file::{FileId, Opened, PAUSE, index_of, log_of};
use super::{StoreError, Trouble};

/// How long a look at the file counts.
const LOOK_HOLDS: Duration = Duration::from_millis(100);
/// The bytes at the beginning that are compared. The mark of `mark.rs` is among them, which each transaction changes.
const HEAD: usize = 32 * 1024;

/// The files of a database that one service has open, for all its connections.
#[derive(Debug)]
pub struct Content {
    name: PathBuf,
    database: Opened,
    index: Opened,
    /// What was the matter when it was lost.
    lost: OnceLock<StoreError>,
}

impl Content {
    /// Of a database that is open. Has the service stay away from it from the first time on that it is lost.
    pub fn open(path: &Path) -> io::Result<Self> {
        let (database, index) = (Opened::at(path)?, Opened::at(&index_of(path))?);
        Ok(Self { name: path.to_owned(), database, index, lost: OnceLock::new() })
    }

    /// Has nothing be written any more.
    pub fn lose(&self, error: &StoreError) {
        let _ = self.lost.set(error.clone());
    }

    /// How far the log has been moved into the file: the log's salts, and the frames that are moved, and are being
    /// moved (`sqlite.org/walformat.html`, sections 2.3.1 and 2.3.2). Whoever moves some changes it before and after.
    fn progress(&self) -> Option<[u8; 16]> {
        let mut bytes = [0; 132];
        self.index.read_exact_at(&mut bytes, 0).ok()?;
        let mut progress = [0; 16];
        for (to, from) in [32, 36, 96, 128].into_iter().enumerate() {
            progress[4 * to..4 * to + 4].copy_from_slice(&bytes[from..from + 4]);
        }
        Some(progress)
    }

    fn head(&self) -> Vec<u8> {
        let mut head = vec![0; HEAD];
        let length = self.database.read_at(&mut head, 0).unwrap_or(0);
        head.truncate(length);
        head
    }

    /// The length and the time of modification.
    fn stamp(&self) -> Option<(u64, i64, i64)> {
        let file = self.database.metadata().ok()?;
        Some((file.len(), file.mtime(), file.mtime_nsec()))
    }
}

/// The file as a connection has seen it.
#[derive(Debug)]
struct Seen {
    content: Arc<Content>,
    stamp: Option<(u64, i64, i64)>,
    progress: Option<[u8; 16]>,
    head: Vec<u8>,
}

impl Seen {
    fn now(content: Arc<Content>) -> Self {
        let (progress, stamp, head) = (content.progress(), content.stamp(), content.head());
        Self { content, stamp, progress, head }
    }

    /// Looks whether the file has changed although nothing was moved into it. Where something was moved at the same
    /// time, this says nothing.
    fn look(&mut self) -> Result<(), StoreError> {
        let content = &self.content;
        if let Some(error) = content.lost.get() {
            return Err(error.clone());
        }
        let (progress, stamp) = (content.progress(), content.stamp());
        if stamp == self.stamp {
            self.progress = progress;
            return Ok(());
        }
        let is_still = || {
            let is_at_rest = |now: [u8; 16]| now[8..12] == now[12..];
            progress == self.progress && content.progress() == progress && progress.is_some_and(is_at_rest)
        };
        if is_still() {
            std::thread::sleep(PAUSE);
            let is_touched_only =
                content.head() == self.head && stamp.map(|s| s.0) == self.stamp.map(|s| s.0);
            if !is_touched_only && is_still() {
                let detail =
                    format!("{} was written over by another program than SQLite", content.name.display());
                content.lose(&StoreError::Unavailable(Trouble::Damaged, detail));
                return content.lost.get().cloned().map_or(Ok(()), Err);
            }
        }
        *self = Self { progress, stamp, ..Self::now(Arc::clone(content)) };
        Ok(())
    }
}

/// Looks whether the paths of a database and of the files beside it still lead to the files that were opened.
#[derive(Debug)]
pub struct Watch {
    files: Vec<(PathBuf, FileId)>,
    seen: Option<Seen>,
    looked_at: Option<Instant>,
    /// What the last look found.
    verdict: Result<(), StoreError>,
}

impl Watch {
    /// Of a database that is open, with its write-ahead log and the log's index where it has them.
    pub fn new(path: &Path) -> io::Result<Self> {
        let mut files = vec![(path.to_owned(), FileId::of(path)?)];
        let beside = [log_of(path), index_of(path)].into_iter();
        files.extend(beside.filter_map(|path| FileId::of(&path).ok().map(|id| (path, id))));
        Ok(Self { files, seen: None, looked_at: None, verdict: Ok(()) })
    }

    /// Looks at what stands in the files as well.
    pub fn look_into(&mut self, content: &Arc<Content>) {
        self.seen = Some(Seen::now(Arc::clone(content)));
    }

    /// Looks, unless it has looked a moment ago.
    ///
    /// # Errors
    /// Where a path leads elsewhere, or the file was written over.
    pub fn look(&mut self) -> Result<(), StoreError> {
        if self.looked_at.is_none_or(|at| at.elapsed() >= LOOK_HOLDS) {
            return self.look_now();
        }
        self.verdict.clone()
    }

    /// Looks.
    ///
    /// # Errors
    /// Where a path leads elsewhere, or the file was written over.
    pub fn look_now(&mut self) -> Result<(), StoreError> {
        self.looked_at = Some(Instant::now());
        let is_here = |path: &Path, id: FileId| match FileId::of(path) {
            Ok(found) => found == id,
            // What cannot be seen for another reason, such as too little memory, may still be there.
            Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
        };
        self.verdict = self.files.iter().try_for_each(|(path, id)| {
            if is_here(path, *id) {
                return Ok(());
            }
            // It may be on its way back.
            std::thread::sleep(PAUSE);
            if is_here(path, *id) {
                return Ok(());
            }
            let detail = format!("{} is not the file that was opened", path.display());
            Err(StoreError::Unavailable(Trouble::Moved, detail))
        });
        if self.verdict.is_ok() {
            self.verdict = self.look_inside();
        }
        self.verdict.clone()
    }

    /// Looks at what stands in the files alone, where it is to.
    ///
    /// # Errors
    /// Where the file was written over.
    pub fn look_inside(&mut self) -> Result<(), StoreError> {
        self.seen.as_mut().map_or(Ok(()), Seen::look)
    }

    /// What the last look found.
    ///
    /// # Errors
    /// Where a path led elsewhere, or the file was written over.
    pub fn verdict(&self) -> Result<(), StoreError> {
        self.verdict.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::super::Writer;
    use super::super::pets::tests::new_pet;
    use super::super::tests::{Folder, pair};
    use super::*;
    use std::fs::{self, File};

    #[test]
    fn moved_files_are_noticed() {
        for (i, leave) in [
            (|path: &Path| fs::remove_file(path).unwrap()) as fn(&Path),
            |path| fs::rename(path, path.with_extension("old")).unwrap(),
            |path| {
                fs::copy(path, path.with_extension("copy")).unwrap();
                fs::rename(path.with_extension("copy"), path).unwrap();
            },
            |path| fs::remove_file(log_of(path)).unwrap(),
            |path| fs::remove_file(index_of(path)).unwrap(),
        ]
        .into_iter()
        .enumerate()
        {
            let (folder, _writer, _reader) = pair();
            let mut watch = Watch::new(&folder.database()).unwrap();
            assert_eq!(watch.look_now(), Ok(()));
            leave(&folder.database());
            assert!(watch.look_now().unwrap_err().is_lost(), "{i}");
            assert!(watch.look().unwrap_err().is_lost() && watch.verdict().is_err(), "{i}");
        }
    }

    /// A database at rest, its writer, and a watch of its content.
    fn watched() -> (Folder, Writer, Watch) {
        let (folder, mut writer, reader) = pair();
        writer.insert_pet(&new_pet("Rex")).unwrap();
        writer.commit().unwrap();
        writer.checkpoint().unwrap();
        drop(reader);
        let mut watch = Watch::new(&folder.database()).unwrap();
        watch.look_into(&Arc::new(Content::open(&folder.database()).unwrap()));
        (folder, writer, watch)
    }

    #[test]
    fn file_that_is_written_over_is_noticed() {
        for (i, write) in [
            (|path: &Path, _: &Path| File::options().write(true).open(path).unwrap().set_len(0).unwrap())
                as fn(&Path, &Path),
            |path, copy| assert_ne!(fs::copy(copy, path).unwrap(), 0),
            |path, _| {
                let file = File::options().write(true).open(path).unwrap();
                file.write_all_at(b"no SQLite at all", 0).unwrap();
            },
        ]
        .into_iter()
        .enumerate()
        {
            let (folder, mut writer, mut watch) = watched();
            let copy = folder.0.join("copy");
            fs::copy(folder.database(), &copy).unwrap();
            writer.insert_pet(&new_pet("Tom")).unwrap();
            writer.commit().unwrap();
            writer.checkpoint().unwrap();
            assert_eq!(watch.look_now(), Ok(()));
            write(&folder.database(), &copy);
            assert!(watch.look_now().unwrap_err().is_lost(), "{i}");
            assert!(watch.look_now().is_err(), "{i}: it stays lost");
        }
    }

    #[test]
    fn what_sqlite_does_is_not_taken_for_damage() {
        let (folder, mut writer, mut watch) = watched();
        let other = rusqlite::Connection::open(folder.database()).unwrap();
        let mut steps = 0;
        for round in 0..20 {
            let size = if round % 3 == 0 { 60_000 } else { 10 };
            writer.insert_pet(&new_pet(&"x".repeat(size))).unwrap();
            writer.commit().unwrap();
            for sql in [
                "PRAGMA wal_checkpoint(PASSIVE)",
                "DELETE FROM pets WHERE id % 3 = 0",
                "VACUUM",
                "PRAGMA wal_checkpoint(FULL)",
                "PRAGMA wal_checkpoint(RESTART)",
                "PRAGMA wal_checkpoint(TRUNCATE)",
            ] {
                assert_eq!(watch.look_now(), Ok(()), "{round} before {sql}");
                other.execute_batch(sql).unwrap();
                steps += 1;
            }
        }
        assert_eq!((steps, watch.look_now()), (120, Ok(())));
        // Nor is what changes nothing.
        File::options()
            .write(true)
            .open(folder.database())
            .unwrap()
            .set_modified(std::time::UNIX_EPOCH)
            .unwrap();
        assert_eq!(watch.look_now(), Ok(()));
    }

    #[test]
    fn checkpoint_under_way_is_not_taken_for_damage() {
        let (folder, mut writer, mut watch) = watched();
        let is_done = std::sync::atomic::AtomicBool::new(false);
        std::thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..200 {
                    writer.insert_pet(&new_pet(&"x".repeat(20_000))).unwrap();
                    writer.commit().unwrap();
                    let _ = writer.checkpoint();
                }
                is_done.store(true, std::sync::atomic::Ordering::SeqCst);
            });
            let mut looks = 0;
            while !is_done.load(std::sync::atomic::Ordering::SeqCst) {
                assert_eq!(watch.look_now(), Ok(()), "{looks}");
                looks += 1;
            }
        });
        drop(folder);
    }
}
