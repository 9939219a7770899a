//! Files and folders: errors that name the folder or the owner, and flushes.

use std::fs::{File, OpenOptions};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::{fmt, io};

use rustix::fs::{Mode, OFlags, statvfs};
use rustix::process::geteuid;

use super::error::{Error, ErrorKind, meaning};

impl Error {
    /// Creates an error for a file that cannot be created, opened or renamed: `what`, a colon and the
    /// reason, with the folder or the owner. The kind follows from the system's error.
    pub fn of_file(what: impl fmt::Display, path: &Path, error: io::Error) -> Self {
        let folder = folder_of(path).display();
        let kind = ErrorKind::of_io(&error);
        let why = match kind {
            ErrorKind::FileMissing => {
                format!("the folder {folder} does not exist, or is not a folder")
            }
            ErrorKind::FileExists => "the file already exists".to_owned(),
            ErrorKind::PermissionDenied if !path.exists() => {
                format!(
                    "this user cannot create files in {folder} ({error}): {}",
                    whose(path)
                )
            }
            ErrorKind::PermissionDenied => {
                format!(
                    "this user cannot read and write it ({error}): {}",
                    whose(path)
                )
            }
            ErrorKind::DiskFull if lacks_inodes(folder_of(path)) => {
                format!("its file system has no inodes left (df -i): {error}")
            }
            _ => meaning(&error),
        };
        Self::new(kind, format!("{what}: {why}")).caused_by(error)
    }

    /// Creates the error for a database that does not exist, or that this user cannot see. If the path is relative, the
    /// message names the current folder.
    pub fn no_database(path: &Path) -> Self {
        if let Err(error) = path.metadata()
            && ErrorKind::of_io(&error) != ErrorKind::FileMissing
        {
            let name = path.display();
            let line = format!(
                "cannot look for the database {name}: {error}: {}",
                whose(path)
            );
            return Self::new(ErrorKind::of_io(&error), line);
        }
        let folder = if path.is_relative() {
            std::env::current_dir().ok()
        } else {
            None
        };
        let folder = folder
            .map(|folder| format!(" in the folder {}", folder.display()))
            .unwrap_or_default();
        let empty = if path.exists() {
            ": the file is empty"
        } else {
            ""
        };
        Self::new(
            ErrorKind::DatabaseMissing,
            format!("there is no database {}{folder}{empty}", path.display()),
        )
    }
}

/// Returns true if a file system has a limited number of files, and has reached it.
fn lacks_inodes(folder: &Path) -> bool {
    statvfs(folder).is_ok_and(|disk| disk.f_files > 0 && disk.f_favail == 0)
}

/// Describes this user, and the owner and mode of a file, or of its nearest ancestor with readable metadata.
pub fn whose(path: &Path) -> String {
    let user = geteuid().as_raw();
    let path = std::path::absolute(path).unwrap_or_else(|_| path.to_owned());
    match path
        .ancestors()
        .find_map(|at| Some((at, at.metadata().ok()?)))
    {
        Some((at, data)) => {
            let at = at.display();
            let mode = data.mode() & 0o7777;
            format!(
                "this is user {user}, and {at} belongs to {}:{}, mode {mode:04o}",
                data.uid(),
                data.gid()
            )
        }
        None => format!("this is user {user}"),
    }
}

/// Returns the bytes that a line such as `VmRSS:     5312 kB` in a file of `/proc` names.
pub fn bytes_after(name: &str, text: &str) -> Option<u64> {
    let mut lines = text.lines();
    let kib = lines.find_map(|line| line.strip_prefix(name)?.strip_suffix(" kB"))?;
    Some(kib.trim().parse::<u64>().ok()?.saturating_mul(1024))
}

/// Returns whether the location of a database is a path, or the address of a cluster, and not the URL of another program,
/// such as `sqlite:pets.db` or `pets.db?mode=ro`, which would become the name of a new file, or a name that SQLite uses.
pub fn is_location(location: &Path) -> bool {
    let text = location.to_string_lossy();
    let text = text.trim_start().to_ascii_lowercase();
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '+';
    let is_url = text
        .split_once(':')
        .is_some_and(|(scheme, _)| scheme.len() != 1 && scheme.chars().all(is_part));
    let name = text.rsplit('/').next().unwrap_or_default();
    let has_query = name
        .split_once(['?', ';'])
        .is_some_and(|(_, query)| query.contains('='));
    let is_file = !text.is_empty() && !is_url && !has_query;
    is_file && !is_next_to_database(location) || is_url && text.starts_with("rqlite")
}

/// Returns whether SQLite takes a file of this name for the log, its index or the journal of the database next to it.
pub fn is_next_to_database(path: &Path) -> bool {
    let name = path.to_string_lossy();
    matches!(name.rsplit_once('-'), Some((_, "wal" | "shm" | "journal")))
}

/// Creates a file that only its owner may read, to write it.
pub fn create_private(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true).mode(0o600).open(path)
}

/// Opens a file for reading. Does not wait for a program at the other end if it is a named pipe.
pub fn open_at_once(path: &Path) -> io::Result<File> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// The folder of a file.
pub fn folder_of(path: &Path) -> &Path {
    path.parent()
        .filter(|folder| !folder.as_os_str().is_empty())
        .unwrap_or(Path::new("."))
}

/// Flushes the entries of a folder to the disk. Does nothing if that is impossible: SMB before Linux 4.17 and some FUSE
/// file systems cannot do it, and a writable folder need not be readable.
pub fn flush_folder(folder: &Path) -> io::Result<()> {
    use io::ErrorKind::{InvalidInput, IsADirectory, PermissionDenied, Unsupported};
    let cannot = [InvalidInput, IsADirectory, PermissionDenied, Unsupported];
    let flushed = File::open(folder).and_then(|folder| folder.sync_all());
    flushed.or_else(|error| {
        if cannot.contains(&error.kind()) {
            Ok(())
        } else {
            Err(error)
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;

    #[test]
    fn url_of_another_program_or_name_of_sqlite_is_no_location() {
        for url in [
            "",
            ":memory:",
            "file:pets.db",
            "sqlite:pets.db",
            "sqlite:///srv/pets.db",
            "SQLite3:p",
            "jdbc:sqlite:pets.db",
            "sqlite+pysqlite:///p",
            "postgres://h/p",
            "pets.db?mode=ro",
            "/srv/pets.db?cache=shared&mode=rwc",
            "sqlite:pets.db?mode=rwc",
            "pets.db;Mode=ReadOnly",
            "Data Source=pets.db;Mode=ReadOnly",
            "pets.db-wal",
            "/srv/pets-shm",
            "pets.db-journal",
        ] {
            assert!(!is_location(url.as_ref()), "{url}");
        }
        for location in [
            "pets.db",
            "./sqlite:pets.db",
            "/srv/a:b/pets.db",
            "pets.db-2026-11-29T02:30:00",
            "C:pets.db",
            "what?.db",
            "pets.db-wal2",
            "a-wal/pets.db",
            "rqlite://h/a-wal",
            "/srv/a?b=c/pets.db",
            "rqlite://h/?ca=f",
            "Rqlites://h/?ca=f",
            " rqlite://h",
        ] {
            assert!(is_location(location.as_ref()), "{location}");
        }
    }

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
