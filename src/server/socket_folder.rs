//! The private folder of a service: the sockets of its lanes, and its database if that is ephemeral.

use std::fs::{DirBuilder, File};
use std::os::unix::fs::DirBuilderExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, ErrorKind};

/// The beginning of the folder's name.
const PREFIX: &str = "petstore-lanes-";
/// The longest name of a socket in the folder.
const LONGEST_NAME: &str = "/admin-write";
/// The longest path of a Unix socket, in bytes: Linux has 108 with the zero at the end, others 104.
const MAX_PATH: usize = 103;

/// A folder that only this user may enter. Dropping it removes it. While it exists it is locked, which also keeps
/// systemd's clean-up of `/tmp` away (`systemd.io/TEMPORARY_DIRECTORIES`).
pub struct SocketFolder {
    path: PathBuf,
    _lock: File,
}

impl SocketFolder {
    /// Creates the folder in the folder for temporary files (`TMPDIR`).
    ///
    /// # Errors
    /// Fails if the folder cannot be created.
    pub fn new() -> Result<Self, Error> {
        let parent = std::env::temp_dir();
        if parent.as_os_str().is_empty() {
            return Err(Error::new(ErrorKind::InvalidInput, "TMPDIR is empty: name a folder, or unset it"));
        }
        Self::new_in(&parent)
    }

    fn new_in(parent: &Path) -> Result<Self, Error> {
        let cannot =
            |error| Error::io(format!("cannot create a folder in {} (TMPDIR)", parent.display()), error);
        let random = getrandom::u64()
            .map_err(|error| Error::new(ErrorKind::Io, format!("cannot get random bits: {error}")))?;
        let path = parent.join(format!("{PREFIX}{random:016x}"));
        if path.as_os_str().len() + LONGEST_NAME.len() > MAX_PATH {
            let parent = parent.display();
            let line = format!(
                "the path of the folder for temporary files (TMPDIR) is too long for sockets: {parent}"
            );
            return Err(Error::new(ErrorKind::InvalidInput, line));
        }
        DirBuilder::new().mode(0o700).create(&path).map_err(cannot)?;
        let lock = File::open(&path).map_err(cannot)?;
        // A file system without locks has no clean-up that asks for them.
        let _ = lock.try_lock();
        Ok(Self { path, _lock: lock })
    }

    /// The path of a file in the folder.
    pub fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }
}

impl Drop for SocketFolder {
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
        let folder = SocketFolder::new_in(&parent.0).unwrap();
        let path = folder.path.clone();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        UnixListener::bind(folder.file("read-99")).unwrap();
        assert!(path.join("read-99").exists());
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn unusable_parents_are_named() {
        let parent = Folder::for_sockets();
        let refusal = |path: &Path| SocketFolder::new_in(path).err().unwrap();
        let missing = parent.0.join("missing");
        assert_eq!(refusal(&missing).kind(), ErrorKind::FileMissing);
        let file = parent.0.join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(refusal(&file).kind(), ErrorKind::FileMissing);
    }

    #[test]
    fn longest_path_fits_a_socket_and_one_byte_more_is_refused() {
        let parent = Folder::for_sockets();
        let own = "/".len() + PREFIX.len() + 16 + LONGEST_NAME.len();
        let rest = MAX_PATH - own - "/".len() - parent.0.as_os_str().len();
        let (longest, longer) = (parent.0.join("x".repeat(rest)), parent.0.join("x".repeat(rest + 1)));
        std::fs::create_dir(&longest).unwrap();
        std::fs::create_dir(&longer).unwrap();
        let folder = SocketFolder::new_in(&longest).unwrap();
        UnixListener::bind(folder.file(&LONGEST_NAME[1..])).unwrap();
        let error = SocketFolder::new_in(&longer).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}
