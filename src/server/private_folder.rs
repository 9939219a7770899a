//! A private folder for the database of an ephemeral service or a restored backup, and the choice of the folder for
//! temporary files.

use std::fs::{self, DirBuilder, DirEntry, File};
use std::io;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use rustix::process::geteuid;

use petstore_base::error::Error;
use petstore_base::files::folder_of;

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
        remove_abandoned(&std::env::temp_dir());
        temporarily(database, Self::new_in)
    }

    fn new_in(parent: &Path) -> Result<Self, Error> {
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

/// Removes the folders that killed processes of this user have left. Name, mode and files must be those that this program
/// makes: anything else may be somebody's work.
fn remove_abandoned(parent: &Path) {
    let is_made = |file: DirEntry| {
        file.file_name().as_encoded_bytes().starts_with(b"pets.db")
            && file.file_type().is_ok_and(|kind| kind.is_file())
    };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let (name, path) = (entry.file_name(), entry.path());
        let random = name
            .to_str()
            .and_then(|name| name.strip_prefix(PREFIX))
            .unwrap_or_default();
        if u64::from_str_radix(random, 16).is_ok_and(|made| random == format!("{made:016x}"))
            // A folder that only its user may enter (inode(7)).
            && entry
                .metadata()
                .is_ok_and(|found| found.uid() == geteuid().as_raw() && found.mode() == 0o40700)
            && File::open(&path).is_ok_and(|folder| folder.try_lock().is_ok())
            && fs::read_dir(&path).is_ok_and(|mut files| files.all(|file| file.is_ok_and(is_made)))
        {
            let _ = fs::remove_dir_all(path);
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
    use petstore_base::error::ErrorKind;
    use petstore_base::testing::Folder;
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
    fn folders_that_nobody_holds_are_removed_if_all_in_them_is_ours() {
        let parent = Folder::for_sockets();
        let held = PrivateFolder::new_in(&parent.0).unwrap();
        let make = |random: &str, mode, files: &[&str]| {
            let path = parent.0.join(format!("{PREFIX}{random}"));
            DirBuilder::new().mode(mode).create(&path).unwrap();
            for file in files {
                std::fs::write(path.join(file), "").unwrap();
            }
            path
        };
        let names = ["pets.db", "pets.db-wal", "pets.db.partial-journal"];
        let left = make("00000000000000a1", 0o700, &names);
        let empty = make("00000000000000a2", 0o700, &[]);
        let mut kept = vec![
            held.path.clone(),
            make("1", 0o700, &names),
            make("00000000000000A1", 0o700, &names),
            make("+0000000000000a1", 0o700, &names),
            make("00000000000000a1-mine", 0o700, &names),
            make("00000000000000b1", 0o755, &names),
            make("00000000000000b2", 0o700, &["pets.db", "my pets.db"]),
            make("00000000000000b3", 0o700, &["pets.db", "notes"]),
            make("00000000000000b4", 0o700, &["pets.db"]),
            parent.0.join(format!("{PREFIX}00000000000000b5")),
        ];
        std::fs::create_dir(kept[8].join("pets.db-wal")).unwrap();
        std::os::unix::fs::symlink(&kept[7], &kept[9]).unwrap();
        kept.extend([6, 7, 8].map(|folder| kept[folder].join("pets.db")));
        remove_abandoned(&parent.0);
        for removed in [left, empty] {
            assert!(!removed.exists(), "{}", removed.display());
        }
        for kept in kept {
            assert!(kept.exists(), "{}", kept.display());
        }
    }

    #[test]
    fn only_the_folder_for_temporary_files_is_tidied() {
        let parent = Folder::for_sockets();
        let left = parent.0.join(format!("{PREFIX}00000000000000a1"));
        DirBuilder::new().mode(0o700).create(&left).unwrap();
        drop(PrivateFolder::new(&parent.0.join("pets.db")).unwrap());
        drop(PrivateFolder::new_in(&parent.0).unwrap());
        assert!(left.exists());
    }

    #[test]
    fn folders_made_at_the_same_time_all_stay() {
        let parent = Folder::for_sockets();
        let make = || {
            (0..50).for_each(|_| {
                remove_abandoned(&parent.0);
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
