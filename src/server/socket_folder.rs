//! The private folder for the sockets of the lanes.

use std::fs::{DirBuilder, DirEntry, Metadata};
use std::io::ErrorKind as Os;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};

use crate::error::{Error, ErrorKind};

/// The beginning of the folder's name.
const PREFIX: &str = "petstore-lanes-";
/// The longest name of a socket in the folder.
const LONGEST_NAME: &str = "/admin-write";
/// The longest path of a Unix socket, in bytes: Linux has 108 with the zero at the end, others 104.
const MAX_PATH: usize = 103;
/// A folder younger than this can belong to a service that is just starting.
const STARTING: Duration = Duration::from_secs(60);

/// A folder that only this user may enter. Dropping it removes it.
pub struct SocketFolder(PathBuf);

impl SocketFolder {
    /// Creates the folder in the folder for temporary files (`TMPDIR`), and removes those that killed services have
    /// left there.
    ///
    /// # Errors
    /// Fails if the folder cannot be created.
    pub fn new() -> Result<Self, Error> {
        Self::new_in(&std::env::temp_dir())
    }

    fn new_in(parent: &Path) -> Result<Self, Error> {
        let random = getrandom::u64()
            .map_err(|error| Error::new(ErrorKind::Io, format!("cannot get random bits: {error}")))?;
        let path = parent.join(format!("{PREFIX}{random:016x}"));
        if path.as_os_str().len() + LONGEST_NAME.len() > MAX_PATH {
            let parent = parent.display();
            let line =
                format!("the folder for temporary files (TMPDIR) has too long a path for sockets: {parent}");
            return Err(Error::new(ErrorKind::InvalidInput, line));
        }
        let created = DirBuilder::new().mode(0o700).create(&path);
        let what = || format!("cannot create a folder in {} (TMPDIR)", parent.display());
        created.map_err(|error| Error::io(what(), error))?;
        let folder = Self(path);
        if let Ok(own) = std::fs::symlink_metadata(&folder.0) {
            remove_abandoned(parent, own.uid());
        }
        Ok(folder)
    }

    /// The path of a socket in the folder.
    pub fn socket(&self, name: &str) -> PathBuf {
        self.0.join(name)
    }
}

impl Drop for SocketFolder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Removes the folders that killed services of this user have left. It leaves other users' folders alone, and waits
/// for nobody.
fn remove_abandoned(parent: &Path, user: u32) {
    let Ok(entries) = std::fs::read_dir(parent) else { return };
    let is_named = |entry: &DirEntry| entry.file_name().as_encoded_bytes().starts_with(PREFIX.as_bytes());
    for entry in entries.flatten().filter(is_named) {
        // The metadata of the entry itself: a link is not a folder.
        let is_abandoned = entry.metadata().is_ok_and(|data| is_old_and_own(&data, user))
            && has_nobody_listening(&entry.path().join("write"));
        if is_abandoned {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn is_old_and_own(data: &Metadata, user: u32) -> bool {
    let age = data.modified().ok().and_then(|at| at.elapsed().ok());
    data.is_dir()
        && data.uid() == user
        && data.mode() & 0o777 == 0o700
        && age.is_some_and(|age| age > STARTING)
}

/// Whether the process that listened on a socket has ended. A socket with a full queue still has an owner.
fn has_nobody_listening(path: &Path) -> bool {
    let connect = || {
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
        socket.set_nonblocking(true)?;
        socket.connect(&SockAddr::unix(path)?)
    };
    connect().is_err_and(|error| error.kind() == Os::ConnectionRefused)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;
    use std::os::unix::fs::PermissionsExt;
    use std::os::unix::net::UnixListener;
    use std::time::SystemTime;

    fn age(path: &Path) {
        let long_ago = SystemTime::now() - 2 * STARTING;
        std::fs::File::open(path).unwrap().set_modified(long_ago).unwrap();
    }

    /// A folder as a service leaves it, with its listener while that lives.
    fn left(parent: &Path, name: &str, mode: u32) -> (PathBuf, UnixListener) {
        let path = parent.join(format!("{PREFIX}{name}"));
        DirBuilder::new().mode(mode).create(&path).unwrap();
        let listener = UnixListener::bind(path.join("write")).unwrap();
        age(&path);
        (path, listener)
    }

    #[test]
    fn folder_is_private_and_removed_at_the_end() {
        let parent = Folder::new();
        let folder = SocketFolder::new_in(&parent.0).unwrap();
        let path = folder.0.clone();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o700);
        UnixListener::bind(folder.socket("read-99")).unwrap();
        assert!(path.join("read-99").exists());
        drop(folder);
        assert!(!path.exists());
    }

    #[test]
    fn abandoned_folders_are_removed_and_no_others() {
        let parent = Folder::new();
        let (abandoned, listener) = left(&parent.0, "abandoned", 0o700);
        drop(listener);
        let (alive, _listener) = left(&parent.0, "alive", 0o700);
        let (open, listener) = left(&parent.0, "open", 0o755);
        drop(listener);
        let (young, listener) = left(&parent.0, "young", 0o700);
        drop(listener);
        std::fs::File::open(&young).unwrap().set_modified(SystemTime::now()).unwrap();
        let elsewhere = Folder::new();
        let (target, listener) = left(&elsewhere.0, "target", 0o700);
        drop(listener);
        std::os::unix::fs::symlink(&target, parent.0.join(format!("{PREFIX}link"))).unwrap();
        drop(SocketFolder::new_in(&parent.0).unwrap());
        assert!(!abandoned.exists());
        for path in [alive, open, young, target] {
            assert!(path.exists(), "{}", path.display());
        }
    }

    #[test]
    fn folders_of_other_users_are_not_touched() {
        let parent = Folder::new();
        let (abandoned, listener) = left(&parent.0, "abandoned", 0o700);
        drop(listener);
        let user = std::fs::metadata(&abandoned).unwrap().uid();
        remove_abandoned(&parent.0, user + 1);
        assert!(abandoned.exists());
        remove_abandoned(&parent.0, user);
        assert!(!abandoned.exists());
    }

    #[test]
    fn full_queue_of_another_holds_up_nobody() {
        let parent = Folder::new();
        let path = parent.0.join("write");
        let socket = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        socket.bind(&SockAddr::unix(&path).unwrap()).unwrap();
        socket.listen(0).unwrap();
        let mut waiting = Vec::new();
        loop {
            let client = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
            client.set_nonblocking(true).unwrap();
            if client.connect(&SockAddr::unix(&path).unwrap()).is_err() {
                break;
            }
            waiting.push(client);
        }
        assert!(!has_nobody_listening(&path));
    }

    #[test]
    fn unusable_parents_are_named() {
        let parent = Folder::new();
        let refusal = |path: &Path| SocketFolder::new_in(path).err().unwrap();
        let missing = parent.0.join("missing");
        assert_eq!(refusal(&missing).kind(), ErrorKind::FileMissing);
        let file = parent.0.join("file");
        std::fs::write(&file, "").unwrap();
        assert_eq!(refusal(&file).kind(), ErrorKind::FileMissing);
    }

    #[test]
    fn longest_path_fits_a_socket_and_one_byte_more_is_refused() {
        let parent = Folder::new();
        let own = "/".len() + PREFIX.len() + 16 + LONGEST_NAME.len();
        let rest = MAX_PATH - own - "/".len() - parent.0.as_os_str().len();
        let (longest, longer) = (parent.0.join("x".repeat(rest)), parent.0.join("x".repeat(rest + 1)));
        std::fs::create_dir(&longest).unwrap();
        std::fs::create_dir(&longer).unwrap();
        let folder = SocketFolder::new_in(&longest).unwrap();
        UnixListener::bind(folder.socket(&LONGEST_NAME[1..])).unwrap();
        let error = SocketFolder::new_in(&longer).err().unwrap();
        assert_eq!(error.kind(), ErrorKind::InvalidInput);
    }
}
