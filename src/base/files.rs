//! Files and folders, and why they cannot be used.

use std::fmt;
use std::fs::File;
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::process::geteuid;

use super::error::{Error, ErrorKind, meaning};

impl Error {
    /// Creates an error for a file that cannot be created, opened or renamed: `what`, a colon and the
    /// reason, with the folder or the owner. The kind follows from the system's error.
    pub fn of_file(what: impl fmt::Display, path: &Path, error: io::Error) -> Self {
        let folder = folder_of(path).display();
        let kind = ErrorKind::of_io(&error);
        let why = match kind {
            ErrorKind::FileMissing => format!("the folder {folder} does not exist, or is not a folder"),
            ErrorKind::FileExists => "the file already exists".to_owned(),
            ErrorKind::PermissionDenied if !path.exists() => {
                format!("this user cannot create files in {folder} ({error}): {}", whose(path))
            }
            ErrorKind::PermissionDenied => {
                format!("this user cannot read and write it ({error}): {}", whose(path))
            }
            _ => meaning(&error),
        };
        Self::new(kind, format!("{what}: {why}")).caused_by(error)
    }

    /// Creates the error for a database that does not exist, with the folder that a relative path starts from.
    pub fn no_database(path: &Path) -> Self {
        let folder = if path.is_relative() { std::env::current_dir().ok() } else { None };
        let folder = folder.map(|folder| format!(" in the folder {}", folder.display())).unwrap_or_default();
        Self::new(ErrorKind::DatabaseMissing, format!("there is no database {}{folder}", path.display()))
    }
}

/// This user, and the owner and mode of a file, or of the nearest folder above it that can be seen.
pub fn whose(path: &Path) -> String {
    let user = geteuid().as_raw();
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match path.ancestors().find_map(|at| Some((at, at.metadata().ok()?))) {
        Some((at, data)) => {
            let at = at.display();
            let mode = data.mode() & 0o7777;
            format!("this is user {user}, and {at} belongs to {}:{}, mode {mode:04o}", data.uid(), data.gid())
        }
        None => format!("this is user {user}"),
    }
}

/// The folder of a file.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Flushes the names in a folder, if the file system can do that: SMB before Linux 4.17 and some of FUSE cannot, and a
/// folder that can be written need not be readable.
pub fn flush_folder(folder: &Path) -> io::Result<()> {
    use io::ErrorKind::{InvalidInput, IsADirectory, PermissionDenied, Unsupported};
    let cannot = [InvalidInput, IsADirectory, PermissionDenied, Unsupported];
    let flushed = File::open(folder).and_then(|folder| folder.sync_all());
    flushed.or_else(|error| if cannot.contains(&error.kind()) { Ok(()) } else { Err(error) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn failure_of_a_file_has_its_reason() {
        let path = Path::new("/proc/none/pets.db");
        for (number, words) in [
            (Errno::NOSYS, "Linux 3.2"),
            (Errno::PERM, "lsattr"),
            (Errno::XDEV, "different file systems"),
            (Errno::NOLCK, "a local disk has it"),
            (Errno::ROFS, "Read-only file system"),
            (Errno::ACCESS, "/proc belongs to 0:0, mode 0555"),
        ] {
            let error = Error::of_file("cannot open it", path, number.into());
            assert!(error.to_string().contains(words), "{error}");
        }
    }
}
