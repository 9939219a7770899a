//! Atomic files: written under a temporary name in the folder of the target, and then renamed in one step.

use std::fs::{self, File, Metadata, TryLockError};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use petstore_base::clock::{rfc3339, unix_time};
use petstore_base::error::{Error, ErrorKind, fail};
use petstore_base::files::{
    create_private, flush_folder, folder_of, is_next_to_database, open_at_once,
};

/// An incomplete file that only its owner may read, locked while it is written. It is removed on drop or, if the
/// process is killed, by the next process with the same target.
pub struct Partial {
    pub path: PathBuf,
    pub file: File,
    has_name: bool,
}

impl Partial {
    /// Creates an empty file named after its target: `pets.db.partial`.
    ///
    /// # Errors
    /// [`ErrorKind::Conflict`] if another process is writing this file. Fails if the target is not the name of a file,
    /// or no file can be created in its folder.
    pub fn beside(target: &Path) -> Result<Self, Error> {
        let name = target.as_os_str().as_encoded_bytes();
        if name.is_empty() || name.ends_with(b"/") || is_next_to_database(target) {
            let line = format!(
                "'{}' is not the name of a file, or ends in -wal, -shm or -journal",
                target.display()
            );
            return fail(ErrorKind::InvalidInput, line);
        }
        let path = target.with_added_extension("partial");
        let line = format!("another process writes {}", path.display());
        let is_in_use = || fail(ErrorKind::Conflict, line);
        // A killed process has left a file. Its lock is held until the new file is locked, so that only one process
        // removes it.
        let left = open_at_once(&path).ok();
        if let Some(left) = &left {
            if matches!(left.try_lock(), Err(TryLockError::WouldBlock)) {
                return is_in_use();
            }
            let _ = fs::remove_file(&path);
        }
        let file = create_private(&path).map_err(|error| cannot_create(&path, error))?;
        let _ = file.lock();
        // If the identities differ, another process has removed this file before it was locked. Not all file systems
        // count links, so the link count does not show it.
        let id = |file: io::Result<Metadata>| file.map(|file| (file.dev(), file.ino())).ok();
        if id(fs::symlink_metadata(&path)) != id(file.metadata()) {
            return is_in_use();
        }
        Ok(Self {
            path,
            file,
            has_name: false,
        })
    }

    /// Renames the file to its target, which must not exist, and flushes the name. Flush the content before.
    ///
    /// # Errors
    /// [`ErrorKind::FileExists`] if there is a file of this name. If the name cannot be flushed, the file is removed.
    pub fn put(self, target: &Path) -> Result<(), Error> {
        if target.symlink_metadata().is_ok() {
            return Err(exists(target));
        }
        self.replace(target)?;
        flush_new(target)
    }

    /// Replaces the target in one step. Flush the content before, and the name afterwards.
    ///
    /// # Errors
    /// Fails if the file cannot be renamed. The target is then unchanged.
    pub fn replace(mut self, target: &Path) -> Result<(), Error> {
        fs::rename(&self.path, target).map_err(|error| cannot_create(target, error))?;
        self.has_name = true;
        Ok(())
    }
}

/// Flushes the name of a file that this process has just created. If that fails, the file is removed.
pub fn flush_new(path: &Path) -> Result<(), Error> {
    flush_name(path).inspect_err(|_| drop(fs::remove_file(path)))
}

/// Flushes the folder of a file, and with it the file's name.
pub fn flush_name(path: &Path) -> Result<(), Error> {
    let folder = folder_of(path);
    flush_folder(folder).map_err(|error| {
        Error::io(
            format!("cannot flush the folder {}", folder.display()),
            error,
        )
    })
}

impl Drop for Partial {
    fn drop(&mut self) {
        if !self.has_name {
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// The error for a file that would have to be overwritten.
pub fn exists(path: &Path) -> Error {
    Error::new(
        ErrorKind::FileExists,
        format!("{} already exists and is not overwritten", path.display()),
    )
}

/// Returns the path that `name` makes from the current time in UTC, such as `2026-11-22T06-25-40Z`, without colons,
/// which some file systems do not allow. If the path exists, waits for the next second.
pub fn dated(name: impl Fn(&str) -> PathBuf) -> PathBuf {
    loop {
        let path = name(&rfc3339(unix_time()).replace(':', "-"));
        if path.symlink_metadata().is_err() {
            return path;
        }
        std::thread::sleep(Duration::from_secs(1));
    }
}

pub fn cannot_create(path: &Path, error: io::Error) -> Error {
    Error::of_file(
        format_args!("cannot create {}", path.display()),
        path,
        error,
    )
}

#[cfg(test)]
mod tests {
    use std::io::ErrorKind as Os;

    use super::*;
    use petstore_base::testing::Folder;

    #[test]
    fn nothing_is_put_over_a_file() {
        let folder = Folder::new();
        fs::write(folder.database(), "mine").unwrap();
        let partial = Partial::beside(&folder.database()).unwrap();
        assert_eq!(
            partial.put(&folder.database()).unwrap_err().kind(),
            ErrorKind::FileExists
        );
        assert_eq!(fs::read(folder.database()).unwrap(), b"mine");
        assert_eq!(fs::read_dir(&folder.0).unwrap().count(), 1);
    }

    #[test]
    fn only_what_a_killed_process_left_is_removed() {
        let folder = Folder::new();
        fs::write(folder.0.join("pets.db.partial"), "left").unwrap();
        let partial = Partial::beside(&folder.database()).unwrap();
        assert_eq!(partial.file.metadata().unwrap().len(), 0);
        assert_eq!(
            Partial::beside(&folder.database()).err().unwrap().kind(),
            ErrorKind::Conflict
        );
        partial.put(&folder.database()).unwrap();
        assert!(Partial::beside(&folder.database()).is_ok());
    }

    #[test]
    fn failures_say_what_to_look_at() {
        let at = Path::new("/backups/copy.db");
        for (error, kind, words) in [
            (
                Os::NotFound,
                ErrorKind::FileMissing,
                "copy.db: the folder /backups does not exist",
            ),
            (
                Os::PermissionDenied,
                ErrorKind::PermissionDenied,
                "copy.db: this user cannot create files in /backups",
            ),
            (Os::StorageFull, ErrorKind::DiskFull, ""),
        ] {
            let error = cannot_create(at, error.into());
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().contains(words), "{error}");
        }
        for name in ["", "copies/", "pets.db-wal", "-journal"] {
            let error = Partial::beside(Path::new(name)).err().unwrap();
            assert!(
                error
                    .to_string()
                    .ends_with("or ends in -wal, -shm or -journal"),
                "{error}"
            );
        }
    }
}
