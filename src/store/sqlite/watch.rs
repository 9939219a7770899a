//! Checks that the paths of an open database still lead to the files that were opened.
//!
//! A file that was moved, deleted or replaced accepts writes without an error, and nobody finds them again. So each
//! batch checks the paths once, between its last write and its commit. At most ten times a second, the check also reads
//! the file, and notices another database in it, as after `cp` over it. A raw copy of the same database goes unnoticed.

use std::io::ErrorKind;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime};

use super::claim::identity_of_file;
use super::open_file::{FileId, OpenFile, log_of, modified};
use super::{Cause, StoreError};

/// The time between two comparisons of the content, and the age up to which reads rely on the last check.
const CHECK_HOLDS: Duration = Duration::from_millis(100);

/// A file as it was opened.
#[derive(Debug)]
pub(super) struct WatchedFile {
    pub path: PathBuf,
    pub id: FileId,
    /// The time of its last write, if no lock keeps others from writing.
    pub unlocked_since: Option<SystemTime>,
}

impl WatchedFile {
    /// Returns true if the path leads to another file, or the file was written to without a lock.
    fn has_changed(&self) -> bool {
        !is_at(&self.path, self.id) || self.is_written_to()
    }

    /// Returns true if the file was written to without a lock.
    pub fn is_written_to(&self) -> bool {
        self.unlocked_since.is_some() && modified(&self.path) != self.unlocked_since
    }
}

/// The files of an open database: itself and its write-ahead log.
#[derive(Debug)]
pub struct Watch {
    pub(super) files: Vec<WatchedFile>,
    pub(super) file: OpenFile,
    /// The database that is in the file, if it is known.
    identity: Option<String>,
    /// When the identity in the file was last compared.
    compared_at: Option<Instant>,
    /// The result of the last check. A failure stays.
    result: Result<(), StoreError>,
}

impl Watch {
    /// Watches the files of a database that is open. `unlocked_since` is the time of the last write to a file that is
    /// read without locks.
    pub fn new(
        path: &Path,
        file: OpenFile,
        unlocked_since: Option<SystemTime>,
        identity: Option<String>,
    ) -> Self {
        let absolute = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
        let mut files = vec![WatchedFile {
            path: absolute,
            id: file.id,
            unlocked_since,
        }];
        let log = log_of(path);
        if let Ok(id) = FileId::from_path(&log) {
            files.push(WatchedFile {
                path: log,
                id,
                unlocked_since: None,
            });
        }
        Self {
            files,
            file,
            identity,
            compared_at: None,
            result: Ok(()),
        }
    }

    /// Returns true if the file or its log has no name any more, so that only open connections have its content.
    pub fn is_deleted(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.nlink() == 0)
            || self
                .files
                .iter()
                .skip(1)
                .any(|log| !is_at(&log.path, log.id))
    }

    /// Returns true if the file is now another database, or a backup, which announces no log.
    fn is_overwritten(&self) -> bool {
        let other = || Some(identity_of_file(&self.files[0].path)? != *self.identity.as_ref()?);
        self.files.len() > 1 && !self.file.has_log_mode().unwrap_or(true)
            || other().unwrap_or(false)
    }

    /// Makes the connection fail from now on.
    pub fn fail(&mut self, error: &StoreError) {
        self.result = Err(error.clone());
    }

    /// Checks the files, unless the last comparison was a moment ago.
    ///
    /// # Errors
    /// If a path leads elsewhere.
    pub fn check(&mut self) -> Result<(), StoreError> {
        if self.is_due() {
            self.check_now()
        } else {
            self.result()
        }
    }

    fn is_due(&self) -> bool {
        self.compared_at
            .is_none_or(|at| at.elapsed() >= CHECK_HOLDS)
    }

    /// Checks the files.
    ///
    /// # Errors
    /// If a path leads elsewhere.
    pub fn check_now(&mut self) -> Result<(), StoreError> {
        self.result()?;
        let is_due = self.is_due();
        let detail = if let Some(file) = self.files.iter().find(|file| file.has_changed()) {
            format!(
                "{} is not the file that was opened, or was written to",
                file.path.display()
            )
        } else if is_due && self.is_overwritten() {
            format!(
                "another file was copied over {}",
                self.files[0].path.display()
            )
        } else {
            if is_due {
                self.compared_at = Some(Instant::now());
            }
            return Ok(());
        };
        self.result = Err(StoreError::Unavailable(Cause::Moved, detail));
        self.result()
    }

    /// The result of the last check.
    ///
    /// # Errors
    /// If a path led elsewhere, or the connection is to fail.
    pub fn result(&self) -> Result<(), StoreError> {
        self.result.clone()
    }
}

/// Returns true if a path leads to a file, or if the system cannot report that, for example with too little memory.
fn is_at(path: &Path, id: FileId) -> bool {
    match FileId::from_path(path) {
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
        Watch::new(
            &folder.database(),
            OpenFile::at(&folder.database()).unwrap(),
            None,
            None,
        )
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
            assert_eq!(watch.check_now(), Ok(()));
            leave(&folder.database());
            assert!(watch.check_now().unwrap_err().is_lost(), "{i}");
            assert!(
                watch.check().unwrap_err().is_lost() && watch.result().is_err(),
                "{i}"
            );
        }
    }

    #[test]
    fn check_of_a_moment_ago_is_not_enough_for_long() {
        let (folder, _writer, _reader) = pair();
        let mut watch = watch(&folder);
        assert_eq!(watch.check(), Ok(()));
        fs::remove_file(folder.database()).unwrap();
        watch.compared_at = watch.compared_at.and_then(|at| at.checked_sub(CHECK_HOLDS));
        assert!(watch.check().unwrap_err().is_lost());
    }

    #[test]
    fn flush_that_failed_stops_the_writer_and_the_log_stays() {
        let (folder, mut writer, reader) = pair();
        writer.insert_pet(&new_pet("Rex"), None).unwrap();
        writer.commit().unwrap();
        assert!(
            writer
                .reader
                .lose_flush(&rusqlite::Error::InvalidQuery)
                .is_lost()
        );
        assert!(
            writer
                .insert_pet(&new_pet("Tom"), None)
                .unwrap_err()
                .is_lost()
        );
        assert!(
            writer.commit().unwrap_err().is_lost() && writer.checkpoint().unwrap_err().is_lost()
        );
        // The last to close would run a checkpoint.
        drop((reader, writer));
        assert!(
            log_of(&folder.database()).exists(),
            "nothing is moved into the file"
        );
    }
}
