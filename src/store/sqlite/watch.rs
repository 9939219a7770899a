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

/// The files of an open database: itself and its write-ahead log.
#[derive(Debug)]
pub struct Watch {
    /// The paths, and the files to which they led.
    files: Vec<(PathBuf, FileId)>,
    pub(super) file: OpenFile,
    /// The time of the last write to the file, if no lock keeps others from writing.
    pub(super) unlocked_since: Option<SystemTime>,
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
        let mut files = vec![(absolute, file.id)];
        let log = log_of(path);
        if let Ok(id) = FileId::from_path(&log) {
            files.push((log, id));
        }
        Self {
            files,
            file,
            unlocked_since,
            identity,
            compared_at: None,
            result: Ok(()),
        }
    }

    /// The path of the database.
    pub fn path(&self) -> &Path {
        &self.files[0].0
    }

    /// The identities of the database and its log.
    pub fn ids(&self) -> impl Iterator<Item = FileId> {
        self.files.iter().map(|(_, id)| *id)
    }

    /// Returns true if the file was written to without a lock.
    pub fn is_written_to(&self) -> bool {
        self.unlocked_since.is_some() && modified(self.path()) != self.unlocked_since
    }

    /// Returns true if the file or its log has no name any more, so that only open connections have its content.
    pub fn is_deleted(&self) -> bool {
        self.file.metadata().is_ok_and(|file| file.nlink() == 0)
            || self.files[1..].iter().any(|(log, id)| !is_at(log, *id))
    }

    /// Returns true if the file is now another database, or a backup, which announces no log.
    fn is_overwritten(&self) -> bool {
        let other = || Some(identity_of_file(self.path())? != *self.identity.as_ref()?);
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
        let is_left = |(path, id): &&(PathBuf, FileId)| !is_at(path, *id);
        let left = self.files.iter().find(is_left).map(|(path, _)| &**path);
        let changed = left.or_else(|| self.is_written_to().then(|| self.path()));
        let detail = if let Some(path) = changed {
            let path = path.display();
            format!("{path} is not the file that was opened, or was written to")
        } else if is_due && self.is_overwritten() {
            format!("another file was copied over {}", self.path().display())
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
    use super::super::tests::{new_pet, pair};
    use super::*;
    use std::fs;

    fn watch(folder: &petstore_base::testing::Folder) -> Watch {
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
