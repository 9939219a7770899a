//! The file of a Unix socket: made when the socket listens, removed at the end.

use std::fs::{Metadata, Permissions};
use std::io::{self, ErrorKind as Os};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use socket2::{Domain, SockAddr, Socket, Type};

use crate::error::{Error, ErrorKind};

/// The connections that can wait to be accepted. Beyond, clients retry after a second. The operating system
/// may allow fewer (Linux: `net.core.somaxconn`).
pub const BACKLOG: usize = 4096;
/// The owner and the group may connect. A proxy must belong to the group.
const MODE: u32 = 0o660;
/// A temporary name younger than this can belong to a service that is just starting.
const STARTING: Duration = Duration::from_secs(60);
/// The longest path in bytes: Linux has 108 with the zero at the end, others 104. The name of a socket that does
/// not listen yet has a dot and four digits more.
const MAX_PATH: usize = if cfg!(target_os = "linux") { 107 } else { 103 } - 5;

/// The file of a listening socket. Dropping it removes it.
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode, to tell it from the file of another service.
    identity: (u64, u64),
}

impl SocketFile {
    /// Listens at `path`, and replaces a file that a killed service has left there.
    ///
    /// # Errors
    /// [`ErrorKind::AddressInUse`] if another service listens there, [`ErrorKind::AddressUnavailable`] or
    /// [`ErrorKind::PermissionDenied`] if the path cannot be used.
    pub fn listen(path: &Path) -> Result<(Socket, Self), Error> {
        if path.as_os_str().len() > MAX_PATH {
            let line =
                format!("cannot listen on unix:{}: the path is longer than {MAX_PATH} bytes", path.display());
            return Err(Error::new(ErrorKind::AddressUnavailable, line));
        }
        listen(path).map_err(|error| cannot(path, error))
    }

    /// Whether its path leads to another file or nowhere, so that nobody can connect.
    pub fn is_lost(&self) -> bool {
        match std::fs::symlink_metadata(&self.path) {
            Ok(data) => identity(&data) != self.identity,
            Err(error) => error.kind() == Os::NotFound,
        }
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        if !self.is_lost() {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(data: &Metadata) -> (u64, u64) {
    (data.dev(), data.ino())
}

/// A socket gets its name only once it listens. So a socket that refuses connections belongs to a service
/// that has gone, never to one that is starting.
fn listen(path: &Path) -> io::Result<(Socket, SocketFile)> {
    let own = beside(path);
    remove_unfinished(path);
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.bind(&SockAddr::unix(&own)?)?;
    let mut file = SocketFile { identity: identity(&std::fs::symlink_metadata(&own)?), path: own };
    // Before anybody can connect.
    std::fs::set_permissions(&file.path, Permissions::from_mode(MODE))?;
    socket.listen(BACKLOG as i32)?;
    let mut named = std::fs::hard_link(&file.path, path);
    if named.as_ref().is_err_and(|error| error.kind() == Os::AlreadyExists) {
        named = remove_abandoned(path)
            // Another service that starts has removed it.
            .or_else(|error| if error.kind() == Os::NotFound { Ok(()) } else { Err(error) })
            .and_then(|()| std::fs::hard_link(&file.path, path));
    }
    named?;
    let own = std::mem::replace(&mut file.path, path.to_owned());
    let _ = std::fs::remove_file(own);
    Ok((socket, file))
}

/// A temporary name in the same folder.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(format!(".{:04x}", getrandom::u32().unwrap_or_default() >> 16));
    name.into()
}

/// Removes the temporary names that killed services have left. A young one can belong to a service that is starting.
fn remove_unfinished(path: &Path) {
    let Some(name) = path.file_name() else { return };
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let entry_name = entry.file_name();
        let rest = entry_name.as_encoded_bytes().strip_prefix(name.as_encoded_bytes());
        let is_ours = rest.is_some_and(|rest| {
            rest.len() == 5 && rest[0] == b'.' && rest[1..].iter().all(u8::is_ascii_hexdigit)
        });
        let is_old = |data: Metadata| {
            let age = data.modified().ok().and_then(|at| at.elapsed().ok());
            data.file_type().is_socket() && age.is_some_and(|age| age > STARTING)
        };
        let is_left = is_ours && entry.metadata().is_ok_and(is_old);
        if is_left && has_nobody_listening(&entry.path()).unwrap_or(false) {
            let _ = std::fs::remove_file(entry.path());
        }
    }
}

/// Removes the socket that a service of the same user has left behind.
fn remove_abandoned(path: &Path) -> io::Result<()> {
    let data = std::fs::symlink_metadata(path)?;
    if !data.file_type().is_socket() {
        return Err(io::Error::other("the file there is not a socket"));
    }
    if !has_nobody_listening(path)? {
        return Err(io::Error::from(Os::AddrInUse));
    }
    // Another service that starts may have put its own there meanwhile.
    let found = beside(path);
    std::fs::rename(path, &found)?;
    let is_other = identity(&std::fs::symlink_metadata(&found)?) != identity(&data);
    if is_other {
        std::fs::hard_link(&found, path)?;
    }
    std::fs::remove_file(&found)?;
    if is_other { Err(Os::AlreadyExists.into()) } else { Ok(()) }
}

/// Whether the process of a socket has gone. A socket with a full backlog has an owner.
fn has_nobody_listening(path: &Path) -> io::Result<bool> {
    let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
    socket.set_nonblocking(true)?;
    match socket.connect(&SockAddr::unix(path)?) {
        Err(error) if error.kind() == Os::ConnectionRefused => Ok(true),
        Err(error) if error.kind() == Os::PermissionDenied => {
            Err(io::Error::other("the socket there belongs to another user"))
        }
        _ => Ok(false),
    }
}

/// The error for a path that cannot be used.
fn cannot(path: &Path, error: io::Error) -> Error {
    let folder = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let folder = folder.display();
    let (kind, why) = match error.kind() {
        Os::NotFound => (ErrorKind::AddressUnavailable, format!("the folder {folder} does not exist")),
        Os::NotADirectory => (ErrorKind::AddressUnavailable, format!("{folder} is not a folder")),
        Os::PermissionDenied => (ErrorKind::PermissionDenied, format!("this user may not write to {folder}")),
        Os::ReadOnlyFilesystem => (ErrorKind::PermissionDenied, format!("{folder} is read-only")),
        Os::AddrInUse | Os::AlreadyExists => {
            (ErrorKind::AddressInUse, "another service listens there".to_owned())
        }
        _ => (ErrorKind::AddressUnavailable, error.to_string()),
    };
    Error::new(kind, format!("cannot listen on unix:{}: {why}", path.display())).caused_by(error)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;
    use std::os::unix::net::{UnixListener, UnixStream};
    use std::sync::Barrier;

    #[track_caller]
    fn refused(path: &Path) -> (ErrorKind, String) {
        let error = SocketFile::listen(path).err().unwrap();
        (error.kind(), error.to_string())
    }

    #[test]
    fn file_is_for_owner_and_group_and_removed_at_the_end() {
        let folder = Folder::new();
        let path = folder.0.join("socket");
        let (_socket, file) = SocketFile::listen(&path).unwrap();
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o660);
        UnixStream::connect(&path).unwrap();
        drop(file);
        assert!(!path.exists());
    }

    #[test]
    fn abandoned_socket_is_replaced_and_a_live_one_is_not() {
        let folder = Folder::new();
        let path = folder.0.join("socket");
        let alive = UnixListener::bind(&path).unwrap();
        let (kind, line) = refused(&path);
        assert!(
            kind == ErrorKind::AddressInUse && line.ends_with(": another service listens there"),
            "{line}"
        );
        drop(alive);
        SocketFile::listen(&path).unwrap();
    }

    #[test]
    fn socket_with_a_full_backlog_has_an_owner() {
        let folder = Folder::new();
        let path = folder.0.join("socket");
        let busy = Socket::new(Domain::UNIX, Type::STREAM, None).unwrap();
        busy.bind(&SockAddr::unix(&path).unwrap()).unwrap();
        busy.listen(0).unwrap();
        let _waits = UnixStream::connect(&path).unwrap();
        assert_eq!(refused(&path).0, ErrorKind::AddressInUse);
    }

    #[test]
    fn temporary_names_that_killed_services_left_are_removed() {
        let folder = Folder::new();
        let path = folder.0.join("socket");
        let left = |name: &str, age: Duration| {
            let path = folder.0.join(name);
            let listener = UnixListener::bind(&path).unwrap();
            let at = rustix::fs::Timespec {
                tv_sec: (std::time::SystemTime::now() - age)
                    .duration_since(std::time::UNIX_EPOCH)
                    .unwrap()
                    .as_secs() as i64,
                tv_nsec: 0,
            };
            let times = rustix::fs::Timestamps { last_access: at, last_modification: at };
            rustix::fs::utimensat(rustix::fs::CWD, &path, &times, rustix::fs::AtFlags::empty()).unwrap();
            (path, listener)
        };
        let (old, listener) = left("socket.0a1f", 2 * STARTING);
        drop(listener);
        let (young, listener) = left("socket.0a1e", Duration::ZERO);
        drop(listener);
        let (other, listener) = left("socket.0a1x", 2 * STARTING);
        drop(listener);
        let (alive, _listener) = left("socket.0a1d", 2 * STARTING);
        drop(SocketFile::listen(&path).unwrap());
        assert!(!old.exists());
        assert!(young.exists() && other.exists() && alive.exists());
    }

    #[test]
    fn one_of_two_that_start_at_once_has_the_path() {
        let folder = Folder::new();
        let path = folder.0.join("socket");
        for is_abandoned in [true, false].repeat(50) {
            if is_abandoned {
                drop(UnixListener::bind(&path).unwrap());
            }
            let both_are_there = Barrier::new(2);
            let start = || {
                both_are_there.wait();
                SocketFile::listen(&path)
            };
            let started = std::thread::scope(|scope| {
                let other = scope.spawn(start);
                [start(), other.join().unwrap()]
            });
            let (mut files, refusals): (Vec<_>, Vec<_>) = started.into_iter().partition(Result::is_ok);
            assert_eq!(files.len(), 1);
            let refusal = refusals[0].as_ref().err().unwrap();
            assert_eq!(refusal.kind(), ErrorKind::AddressInUse, "{refusal}");
            let (_socket, file) = files.remove(0).unwrap();
            assert!(!file.is_lost());
            drop(file);
            assert_eq!(std::fs::read_dir(&folder.0).unwrap().count(), 0, "nothing is left behind");
        }
    }

    #[test]
    fn other_files_are_left_alone() {
        let folder = Folder::new();
        let path = folder.0.join("file");
        std::fs::write(&path, "mine").unwrap();
        let link = folder.0.join("link");
        std::os::unix::fs::symlink(folder.0.join("nowhere"), &link).unwrap();
        for path in [&path, &link] {
            let (kind, line) = refused(path);
            assert!(kind == ErrorKind::AddressUnavailable && line.ends_with("is not a socket"), "{line}");
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    }

    #[test]
    fn file_of_a_successor_stays() {
        let folder = Folder::new();
        let path = folder.0.join("socket");
        let (_socket, file) = SocketFile::listen(&path).unwrap();
        assert!(!file.is_lost());
        std::fs::rename(&path, folder.0.join("moved")).unwrap();
        assert!(file.is_lost());
        let _successor = SocketFile::listen(&path).unwrap();
        assert!(file.is_lost());
        drop(file);
        assert!(path.exists());
    }

    #[test]
    fn longest_path_is_accepted_and_one_byte_more_is_refused() {
        let folder = Folder::new();
        let rest = MAX_PATH - folder.0.as_os_str().len() - 1;
        SocketFile::listen(&folder.0.join("x".repeat(rest))).unwrap();
        let (kind, line) = refused(&folder.0.join("x".repeat(rest + 1)));
        assert_eq!(kind, ErrorKind::AddressUnavailable);
        assert!(line.ends_with(&format!("longer than {MAX_PATH} bytes")), "{line}");
    }

    #[test]
    fn unusable_folders_are_named() {
        let folder = Folder::new();
        let file = folder.0.join("file");
        std::fs::write(&file, "").unwrap();
        for (path, why) in [
            (folder.0.join("missing/socket"), "missing does not exist"),
            (file.join("socket"), "is not a folder"),
        ] {
            let (kind, line) = refused(&path);
            assert!(kind == ErrorKind::AddressUnavailable && line.ends_with(why), "{line}");
        }
    }

    #[test]
    fn failures_say_what_to_look_at() {
        for (why, kind, words) in [
            (Os::NotFound, ErrorKind::AddressUnavailable, "the folder /run/pets does not exist"),
            (Os::NotADirectory, ErrorKind::AddressUnavailable, "/run/pets is not a folder"),
            (Os::PermissionDenied, ErrorKind::PermissionDenied, "this user may not write to /run/pets"),
            (Os::ReadOnlyFilesystem, ErrorKind::PermissionDenied, "/run/pets is read-only"),
            (Os::AddrInUse, ErrorKind::AddressInUse, "another service listens there"),
            (Os::AlreadyExists, ErrorKind::AddressInUse, "another service listens there"),
            (Os::TimedOut, ErrorKind::AddressUnavailable, "timed out"),
        ] {
            let error = cannot(Path::new("/run/pets/socket"), why.into());
            assert_eq!(error.kind(), kind, "{error}");
            assert!(error.to_string().ends_with(words), "{error}");
        }
    }
}
