//! The file of a Unix socket: made when the socket listens, removed at the end.

use std::fs::{Metadata, Permissions};
use std::io::{self, ErrorKind as Os};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};

use socket2::{Domain, SockAddr, Socket, Type};

use petstore_base::error::{Error, ErrorKind};

/// The connections that can wait to be accepted. Beyond, clients retry after a second. The operating system
/// may allow fewer (Linux: `net.core.somaxconn`).
pub const BACKLOG: usize = 4096;
/// The owner and the group may connect. A proxy must belong to the group.
const MODE: u32 = 0o660;

/// The file of a listening socket. Dropping it removes it.
pub struct SocketFile {
    path: PathBuf,
    /// Device and inode, to distinguish it from the file of another service.
    identity: (u64, u64),
}

impl SocketFile {
    /// Listens at `path`, and replaces the file of a killed service.
    ///
    /// # Errors
    /// [`ErrorKind::AddressInUse`] if another service listens there, [`ErrorKind::AddressUnavailable`] or
    /// [`ErrorKind::PermissionDenied`] if the path cannot be used.
    pub fn listen(path: &Path) -> Result<(Socket, Self), Error> {
        let listen = || {
            remove_abandoned(path)?;
            let socket = Socket::new(Domain::UNIX, Type::STREAM, None)?;
            socket.bind(&SockAddr::unix(path)?)?;
            let identity = identity(&std::fs::symlink_metadata(path)?);
            let file = Self {
                path: path.to_owned(),
                identity,
            };
            // Nobody can connect before it listens, so the mode is set in time.
            std::fs::set_permissions(path, Permissions::from_mode(MODE))?;
            socket.listen(BACKLOG as i32)?;
            Ok((socket, file))
        };
        listen().map_err(|error| cannot(path, error))
    }
}

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Another service may have put its own there.
        if std::fs::symlink_metadata(&self.path).is_ok_and(|data| identity(&data) == self.identity)
        {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

fn identity(data: &Metadata) -> (u64, u64) {
    (data.dev(), data.ino())
}

/// Removes the socket of a killed service of the same user.
fn remove_abandoned(path: &Path) -> io::Result<()> {
    let Ok(data) = std::fs::symlink_metadata(path) else {
        return Ok(());
    };
    if !data.file_type().is_socket() {
        return Err(io::Error::other("the file there is not a socket"));
    }
    if !has_nobody_listening(path)? {
        return Err(io::Error::new(
            Os::AddrInUse,
            "another service listens there",
        ));
    }
    std::fs::remove_file(path)
}

/// Returns whether the process of a socket has ended. A socket with a full backlog has an owner.
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
    let kind = match error.kind() {
        Os::AddrInUse => ErrorKind::AddressInUse,
        Os::PermissionDenied | Os::ReadOnlyFilesystem => ErrorKind::of_io(&error),
        _ => ErrorKind::AddressUnavailable,
    };
    Error::io(format!("cannot listen on unix:{}", path.display()), error).with_kind(kind)
}

#[cfg(test)]
mod tests {
    use super::*;
    use petstore_base::testing::Folder;
    use std::os::unix::net::{UnixListener, UnixStream};

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
        assert_eq!(
            std::fs::metadata(&path).unwrap().permissions().mode() & 0o777,
            0o660
        );
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
    fn other_files_are_left_alone() {
        let folder = Folder::new();
        let path = folder.0.join("file");
        std::fs::write(&path, "mine").unwrap();
        let link = folder.0.join("link");
        std::os::unix::fs::symlink(folder.0.join("nowhere"), &link).unwrap();
        for path in [&path, &link] {
            let (kind, line) = refused(path);
            assert!(
                kind == ErrorKind::AddressUnavailable && line.ends_with("is not a socket"),
                "{line}"
            );
        }
        assert_eq!(std::fs::read(&path).unwrap(), b"mine");
    }

    #[test]
    fn file_of_a_successor_stays() {
        let folder = Folder::new();
        let path = folder.0.join("socket");
        let (_socket, file) = SocketFile::listen(&path).unwrap();
        std::fs::rename(&path, folder.0.join("moved")).unwrap();
        let _successor = SocketFile::listen(&path).unwrap();
        drop(file);
        assert!(path.exists());
    }

    #[test]
    fn longest_path_is_accepted_and_one_byte_more_is_rejected() {
        let folder = Folder::new();
        let longest = if cfg!(target_os = "linux") { 107 } else { 103 };
        let rest = longest - folder.0.as_os_str().len() - 1;
        SocketFile::listen(&folder.0.join("x".repeat(rest))).unwrap();
        assert_eq!(
            refused(&folder.0.join("x".repeat(rest + 1))).0,
            ErrorKind::AddressUnavailable
        );
    }

    #[test]
    fn failures_have_a_kind() {
        for (why, kind) in [
            (Os::NotFound, ErrorKind::AddressUnavailable),
            (Os::PermissionDenied, ErrorKind::PermissionDenied),
            (Os::ReadOnlyFilesystem, ErrorKind::FileSystemReadOnly),
            (Os::AddrInUse, ErrorKind::AddressInUse),
        ] {
            assert_eq!(
                cannot(Path::new("/run/pets/socket"), why.into()).kind(),
                kind,
                "{why}"
            );
        }
    }
}
