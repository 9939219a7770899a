//! A private folder for the database of an ephemeral service or a restored backup, and the choice of the folder for
//! temporary files.

use std::fs::{self, DirBuilder, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use crate::base::error::Error;
use crate::base::files::folder_of;

/// The beginning of the folder's name.
const PREFIX: &str = "petstore-private-";

/// A folder that only this user may enter. Dropping it removes it. It stays locked, so that systemd's clean-up of
/// `/tmp` (`systemd.io/TEMPORARY_DIRECTORIES`) skips it, and that of the next [`PrivateFolder`].
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
        remove_abandoned(parent);
        Self::create(parent).map_err(|error| {
            let parent = parent.display();
            Error::io(
                format!("cannot create a folder in {parent} (TMPDIR)"),
                error,
            )
        })
    }

    fn create(parent: &Path) -> io::Result<Self> {
        let random = getrandom::u64().map_err(io::Error::other)?;
        let name = format!("{PREFIX}{random:016x}");
        // Locked before it has a name that others look for.
        let [new, path] = [format!(".{name}"), name].map(|name| parent.join(name));
        DirBuilder::new().mode(0o700).create(&new)?;
        let lock = File::open(&new)?;
        // The lock may fail on a file system without locks, where no clean-up honours them either.
        let _ = lock.try_lock();
        fs::rename(new, &path)?;
        Ok(Self { path, _lock: lock })
    }
}

/// Removes the folders of this user that nobody holds any more, because their process was killed.
fn remove_abandoned(parent: &Path) {
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.as_encoded_bytes().starts_with(PREFIX.as_bytes())
            && entry
                .metadata()
                .is_ok_and(|found| found.uid() == geteuid().as_raw() && found.is_dir())
            && File::open(entry.path()).is_ok_and(|folder| folder.try_lock().is_ok())
        {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// Calls `make` with the folder for temporary files (`TMPDIR`) or, if that fails, with the folder of the database,
/// which may be the only writable one in a container.
///
/// # Errors
/// The first failure, if both fail.
pub fn temporarily<T>(
    database: &Path,
    make: impl Fn(&Path) -> Result<T, Error>,
) -> Result<T, Error> {
    make(&std::env::temp_dir()).or_else(|error| make(folder_of(database)).map_err(|_| error))
}

impl Drop for PrivateFolder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.path);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::error::ErrorKind;
    use crate::testing::Folder;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;

    #[test]
    fn folder_is_private_and_removed_at_the_end() {
        let parent = Folder::for_sockets();
        let folder = PrivateFolder::new_in(&parent.0).unwrap();
        let path = folder.path.clone();
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o700
        );
        UnixListener::bind(folder.path.join("read-99")).unwrap();
        assert!(path.join("read-99").exists());
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn folders_that_nobody_holds_are_removed() {
        let parent = Folder::for_sockets();
        let held = PrivateFolder::new_in(&parent.0).unwrap();
        let [left, foreign, file] = [
            "petstore-private-1",
            "petstore-other-1",
            "petstore-private-2",
        ]
        .map(|name| parent.0.join(name));
        std::fs::create_dir_all(left.join("pets.db")).unwrap();
        std::fs::create_dir(&foreign).unwrap();
        std::os::unix::fs::symlink(&foreign, &file).unwrap();
        let next = PrivateFolder::new_in(&parent.0).unwrap();
        assert!(!left.exists());
        for kept in [&held.path, &next.path, &foreign, &file] {
            assert!(kept.exists(), "{}", kept.display());
        }
    }

    #[test]
    fn folders_made_at_the_same_time_all_stay() {
        let parent = Folder::for_sockets();
        let make = || {
            (0..50).for_each(|_| {
                let folder = PrivateFolder::new_in(&parent.0).unwrap();
                std::fs::write(folder.path.join("pets.db"), "").unwrap();
                assert!(folder.path.exists());
            });
        };
        std::thread::scope(|scope| (0..4).for_each(|_| drop(scope.spawn(make))));
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
