//! Checks that the paths of an open database still lead to the files that were opened.
//!
//! A file that was moved, deleted or replaced accepts writes without an error, and nobody finds them again. So each
//! batch looks once, between its last write and its commit. A look a moment after another one also notices another
//! database in the file, as after `cp` over it. A raw copy of the same database goes unnoticed.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::log_check::identity_of_file;
use super::open_file::{FileId, OpenFile, log_of, modified};
use super::{Cause, StoreError};

/// How long a look is valid for requests that only read.
const LOOK_HOLDS: Duration = Duration::from_millis(100);

/// The files of an open database: itself and its write-ahead log.
#[derive(Debug)]
pub struct Watch {
    /// Each with the time of its last write if nothing keeps others from writing.
    pub(super) files: Vec<(PathBuf, FileId, Option<SystemTime>)>,
    file: OpenFile,
    /// The database that is in the file, if it is known.
    identity: Option<String>,
    looked_at: Option<Instant>,
    /// When the content of the file was last looked at.
    compared_at: Option<Instant>,
    /// The result of the last look. A failure stays.
    found: Result<(), StoreError>,
}

impl Watch {
    /// Watches the files of a database that is open: the file, and its log. The time is there if the file is read without
    /// locks.
    pub fn new(path: &Path, file: OpenFile, unlocked: Option<SystemTime>, identity: Option<String>) -> Self {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let log = log_of(path);
        let mut files = vec![(absolute, file.id, unlocked)];
        files.extend(FileId::of(&log).ok().map(|id| (log, id, None)));
        Self { files, file, identity, looked_at: None, compared_at: None, found: Ok(()) }
    }

    /// Whether the file or its log has no name any more, so that only its connections have what it holds.
    pub fn is_deleted(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.nlink() == 0)
            || self.files.iter().skip(1).any(|(log, id, _)| !is_at(log, *id))
    }

    /// Whether the file has become that of another database, or a backup, which announces no log.
    fn is_overwritten(&self) -> bool {
        let other = || Some(identity_of_file(&self.files[0].0)? != *self.identity.as_ref()?);
        self.files.len() > 1 && !self.file.has_log_mode().unwrap_or(true) || other().unwrap_or(false)
    }

    /// Makes the connection fail from now on.
    pub fn fail(&mut self, error: &StoreError) {
        self.found = Err(error.clone());
    }

    /// Looks, unless the last look was a moment ago.
    ///
    /// # Errors
    /// If a path leads elsewhere.
    pub fn look(&mut self) -> Result<(), StoreError> {
        if self.looked_at.is_none_or(|at| at.elapsed() >= LOOK_HOLDS) {
            return self.look_now();
        }
        self.found()
    }

    /// Looks.
    ///
    /// # Errors
    /// If a path leads elsewhere.
    pub fn look_now(&mut self) -> Result<(), StoreError> {
        self.found()?;
        self.looked_at = Some(Instant::now());
        let moved = |(path, id, unlocked): &&(PathBuf, FileId, Option<SystemTime>)| {
            !is_at(path, *id) || unlocked.is_some() && modified(path) != *unlocked
        };
        let is_due = self.compared_at.is_none_or(|at| at.elapsed() >= LOOK_HOLDS);
        let detail = if let Some((path, ..)) = self.files.iter().find(moved) {
            format!("{} is not the file that was opened, or was written to", path.display())
        } else if is_due && self.is_overwritten() {
            format!("another file was copied over {}", self.files[0].0.display())
        } else {
            if is_due {
                self.compared_at = Some(Instant::now());
            }
            return Ok(());
        };
        self.found = Err(StoreError::Unavailable(Cause::Moved, detail));
        self.found()
    }

    /// What the last look found.
    ///
    /// # Errors
    /// If a path led elsewhere, or the connection is to fail.
    pub fn found(&self) -> Result<(), StoreError> {
        self.found.clone()
    }
}

/// Whether a path leads to a file. If that cannot be told for another reason, such as too little memory, it counts
/// as there.
fn is_at(path: &Path, id: FileId) -> bool {
    match FileId::of(path) {
        Ok(found) => found == id,
        Err(error) => !matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory),
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::new_pet;
    use super::super::tests::pair;
    use super::*;
    use std::fs;

    fn watch(folder: &crate::testing::Folder) -> Watch {
        Watch::new(&folder.database(), OpenFile::at(&folder.database()).unwrap(), None, None)
    }

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
        ]
        .into_iter()
        .enumerate()
        {
            let (folder, _writer, _reader) = pair();
            let mut watch = watch(&folder);
            assert_eq!(watch.look_now(), Ok(()));
            leave(&folder.database());
            assert!(watch.look_now().unwrap_err().is_lost(), "{i}");
            assert!(watch.look().unwrap_err().is_lost() && watch.found().is_err(), "{i}");
        }
    }

    #[test]
    fn look_of_a_moment_ago_is_not_enough_for_long() {
        let (folder, _writer, _reader) = pair();
        let mut watch = watch(&folder);
        assert_eq!(watch.look(), Ok(()));
        fs::remove_file(folder.database()).unwrap();
        watch.looked_at = watch.looked_at.and_then(|at| at.checked_sub(LOOK_HOLDS));
        assert!(watch.look().unwrap_err().is_lost());
    }

    #[test]
    fn flush_that_failed_stops_the_writer_and_the_log_stays() {
        let (folder, mut writer, reader) = pair();
        writer.insert_pet(&new_pet("Rex"), None).unwrap();
        writer.commit().unwrap();
        assert!(writer.reader.lose_flush(&rusqlite::Error::InvalidQuery).is_lost());
        writer.insert_pet(&new_pet("Tom"), None).unwrap();
        assert!(writer.commit().unwrap_err().is_lost() && writer.checkpoint().unwrap_err().is_lost());
        // The last to close would move it.
        drop((reader, writer));
        assert!(log_of(&folder.database()).exists(), "nothing is moved into the file");
    }
}
