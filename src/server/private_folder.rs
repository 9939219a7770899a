//! A private folder for the database of an ephemeral service or a restored backup, and the choice of the folder for
//! temporary files.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::base::error::{Error, ErrorKind};
use crate::base::files::folder_of;

/// The beginning of the folder's name.
const PREFIX: &str = "petstore-private-";

/// A folder that only this user may enter. Dropping it removes it. It stays locked, so that systemd's clean-up of
/// `/tmp` skips it (`systemd.io/TEMPORARY_DIRECTORIES`).
pub struct PrivateFolder {
    pub path: PathBuf,
    _lock: File,
}

impl PrivateFolder {
    /// Creates a folder among the temporary files.
    ///
    /// # Errors
    /// Fails if the folder cannot be created.
    pub fn new(database: &Path) -> Result<Self, Error> {
        temporarily(database, Self::new_in)
    }

    fn new_in(parent: &Path) -> Result<Self, Error> {
        let cannot =
            |error| Error::io(format!("cannot create a folder in {} (TMPDIR)", parent.display()), error);
        let random = getrandom::u64()
            .map_err(|error| Error::new(ErrorKind::Io, format!("cannot get random bits: {error}")))?;
        let path = parent.join(format!("{PREFIX}{random:016x}"));
        DirBuilder::new().mode(0o700).create(&path).map_err(cannot)?;
        let lock = File::open(&path).map_err(cannot)?;
        // The lock may fail on a file system without locks, where no clean-up honours them either.
        let _ = lock.try_lock();
        Ok(Self { path, _lock: lock })
    }
}

/// Calls `make` with the folder for temporary files (`TMPDIR`) or, if that fails, with the folder of the database,
/// which may be the only writable one in a container.
///
/// # Errors
/// The first failure, if both fail.
pub fn temporarily<T>(database: &Path, make: impl Fn(&Path) -> Result<T, Error>) -> Result<T, Error> {
    make(&std::env::temp_dir()).or_else(|error| make(folder_of(database)).map_err(|_| error))
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    #[test]
    fn folder_is_private_and_removed_at_the_end() {
        let parent = Folder::for_sockets();
        let folder = PrivateFolder::new_in(&parent.0).unwrap();
        let path = folder.path.clone();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        UnixListener::bind(folder.path.join("read-99")).unwrap();
        assert!(path.join("read-99").exists());
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn unusable_parents_are_named() {
        let parent = Folder::for_sockets();
        let refusal = |path: &Path| PrivateFolder::new_in(path).err().unwrap();
        let missing = parent.0.join("missing");
        assert_eq!(refusal(&missing).kind(), ErrorKind::FileMissing);
        let file = parent.0.join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(refusal(&file).kind(), ErrorKind::FileMissing);
    }
}
