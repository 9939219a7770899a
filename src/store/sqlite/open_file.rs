//! The files of a database: their names, their identity, and handles that stay open alongside SQLite's.

use std::fs::{self, File, Metadata};
use std::io::{self, ErrorKind};
use std::ops::Deref;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::SystemTime;

use petstore_base::error::{Error, ErrorKind as Kind};
use petstore_base::files::open_at_once;
use petstore_base::http::percent;
use petstore_base::threads::lock;

/// The offset of the header's two format versions, for writers and for readers: 1 means a rollback journal, 2 a
/// write-ahead log (`sqlite.org/fileformat2.html`, section 1.3.3).
pub const MODE_AT: u64 = 18;
/// The format versions with a write-ahead log.
const LOG_MODE: [u8; 2] = [2, 2];

/// The path of a database's write-ahead log. SQLite puts it next to the file itself, not next to a link.
pub fn log_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

/// The path of the log's index, which is there as long as a service has the database.
pub fn index_of(path: &Path) -> PathBuf {
    beside(path, "-shm")
}

/// The path of the rollback journal, for a database that is changed without a log
/// (`sqlite.org/lockingv3.html#rollback`).
pub fn journal_of(path: &Path) -> PathBuf {
    beside(path, "-journal")
}

fn beside(path: &Path, suffix: &str) -> PathBuf {
    let mut name = fs::canonicalize(path)
        .unwrap_or_else(|_| path.to_owned())
        .into_os_string();
    name.push(suffix);
    name.into()
}

/// The URI with which SQLite reads a file without locks and without other files (`sqlite.org/uri.html`).
pub fn immutable(path: &Path) -> PathBuf {
    let name = percent::encode(path.as_os_str().as_bytes());
    format!("file:{name}?immutable=1").into()
}

/// Identifies a file, whatever its names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileId {
    device: u64,
    inode: u64,
}

impl FileId {
    /// Asks only for the inode. `fs::metadata` also asks for the times, and since Linux 6.13 a file whose times
    /// were asked for gets a fine-grained time at its next write, which makes the flush two fifths more expensive
    /// (`docs.kernel.org/filesystems/multigrain-ts.html`).
    #[cfg(target_os = "linux")]
    pub fn from_path(path: &Path) -> io::Result<Self> {
        use rustix::fs::{AtFlags, CWD, StatxFlags, makedev, statx};
        use rustix::io::Errno;
        match statx(CWD, path, AtFlags::empty(), StatxFlags::INO) {
            Ok(file) => Ok(Self {
                device: makedev(file.stx_dev_major, file.stx_dev_minor),
                inode: file.stx_ino,
            }),
            // Before Linux 4.11 there is no such call, and old containers refuse it. They have no such times.
            Err(Errno::NOSYS | Errno::PERM) => {
                fs::metadata(path).map(|file| Self::from_metadata(&file))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// The identity of the file at a path.
    #[cfg(not(target_os = "linux"))]
    pub fn from_path(path: &Path) -> io::Result<Self> {
        fs::metadata(path).map(|file| Self::from_metadata(&file))
    }

    fn from_metadata(file: &Metadata) -> Self {
        Self {
            device: file.dev(),
            inode: file.ino(),
        }
    }
}

/// When a file was last written to. Ask this only of a file that no service writes: see [`FileId::from_path`].
pub fn modified(path: &Path) -> Option<SystemTime> {
    fs::metadata(path).and_then(|file| file.modified()).ok()
}

/// A failure to open a database's file.
pub fn cannot_open(path: &Path, error: io::Error) -> Error {
    failed(
        &format!("cannot open the database {}", path.display()),
        path,
        error,
    )
}

/// A failure to open or create a database's file.
pub fn failed(what: &str, path: &Path, error: io::Error) -> Error {
    let error = Error::of_file(what, path, error);
    if error.kind() == Kind::FileMissing {
        error.with_kind(Kind::DatabaseMissing)
    } else {
        error
    }
}

/// Files that both SQLite and this process itself have open. Closing such a file cancels the locks that SQLite
/// holds on it in this process (`sqlite.org/howtocorrupt.html`, section 2.2). So each is opened once, and closed
/// after the last connection.
static OPEN: Mutex<Vec<(FileId, Arc<File>)>> = Mutex::new(Vec::new());

/// A handle of a file that stays open while any such handle exists in this process.
#[derive(Debug)]
pub struct OpenFile {
    /// The identity of the file.
    pub id: FileId,
    /// `None` only while it is dropped.
    file: Option<Arc<File>>,
}

impl OpenFile {
    /// Opens a file for reading. Each connection has such a handle from before it opens until after it
    /// closes.
    pub fn at(path: &Path) -> io::Result<Self> {
        let mut open = lock(&OPEN);
        let id = FileId::from_path(path)?;
        if let Some((_, file)) = open.iter().find(|(known, _)| *known == id) {
            return Ok(Self {
                id,
                file: Some(Arc::clone(file)),
            });
        }
        let file = Arc::new(open_at_once(path)?);
        // The file that just came to this path may be open already; then this handle must not be closed
        // first.
        let metadata = file.metadata()?;
        if !metadata.is_file() && !metadata.is_dir() {
            return Err(io::Error::new(
                ErrorKind::InvalidFilename,
                "it is not a regular file",
            ));
        }
        let id = FileId::from_metadata(&metadata);
        open.push((id, Arc::clone(&file)));
        Ok(Self {
            id,
            file: Some(file),
        })
    }

    /// Returns true if its header announces a write-ahead log. That of an empty file announces nothing.
    pub fn has_log_mode(&self) -> io::Result<bool> {
        let mut mode = [0; LOG_MODE.len()];
        match self.read_exact_at(&mut mode, MODE_AT) {
            Ok(()) => Ok(mode == LOG_MODE),
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Deref for OpenFile {
    type Target = File;

    fn deref(&self) -> &File {
        match &self.file {
            Some(file) => file,
            None => unreachable!("it is empty only at the end"),
        }
    }
}

impl Drop for OpenFile {
    fn drop(&mut self) {
        let mut open = lock(&OPEN);
        self.file = None;
        // The last handle closes the file, before anybody opens it again.
        let is_used = |id| {
            open.iter()
                .any(|(other, file)| *other == id && Arc::strong_count(file) > 1)
        };
        if !is_used(self.id) {
            open.retain(|(id, _)| *id != self.id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use petstore_base::testing::Folder;

    #[test]
    fn address_keeps_every_byte_of_a_path() {
        let address = immutable(Path::new("/a b/100%?#ü.db"));
        assert_eq!(
            address,
            Path::new("file:%2Fa%20b%2F100%25%3F%23%C3%BC.db?immutable=1")
        );
    }

    #[test]
    fn file_is_open_once_until_its_last_handle_is_dropped() {
        let (folder, other) = (Folder::new(), Folder::new());
        std::fs::write(folder.database(), "one").unwrap();
        std::fs::write(other.database(), "two").unwrap();
        let open = |id| lock(&OPEN).iter().filter(|(known, _)| *known == id).count();
        let (first, second) = (
            OpenFile::at(&folder.database()).unwrap(),
            OpenFile::at(&folder.database()).unwrap(),
        );
        let neighbour = OpenFile::at(&other.database()).unwrap();
        assert_eq!((open(first.id), open(neighbour.id)), (1, 1));
        let id = first.id;
        drop(first);
        assert_eq!(open(id), 1, "a handle is left");
        drop(second);
        assert_eq!((open(id), open(neighbour.id)), (0, 1));
    }

    #[test]
    fn log_mode_is_that_of_the_header() {
        let folder = Folder::new();
        let mut connection = rusqlite::Connection::open(folder.database()).unwrap();
        let has_log = || {
            OpenFile::at(&folder.database())
                .unwrap()
                .has_log_mode()
                .unwrap()
        };
        assert!(!has_log(), "an empty file says nothing");
        connection.execute_batch("CREATE TABLE t(a)").unwrap();
        assert!(!has_log());
        connection
            .pragma_update(None, "journal_mode", "WAL")
            .unwrap();
        assert!(has_log());
        connection = rusqlite::Connection::open_in_memory().unwrap();
        drop(connection);
        std::fs::remove_file(folder.database()).unwrap();
        std::fs::create_dir(folder.database()).unwrap();
        let not_a_file = OpenFile::at(&folder.database()).unwrap().has_log_mode();
        assert_eq!(not_a_file.unwrap_err().kind(), ErrorKind::IsADirectory);
    }

    #[test]
    fn failures_of_the_system_have_their_kind_and_say_what_to_look_at() {
        let folder = Folder::new();
        let (there, missing) = (folder.0.clone(), folder.database());
        let folder = folder.0.display();
        for (path, error, kind, words) in [
            (
                &missing,
                ErrorKind::NotFound,
                Kind::DatabaseMissing,
                format!("the folder {folder} does not exist"),
            ),
            (
                &missing,
                ErrorKind::PermissionDenied,
                Kind::PermissionDenied,
                format!("cannot create files in {folder}"),
            ),
            (
                &there,
                ErrorKind::PermissionDenied,
                Kind::PermissionDenied,
                "cannot read and write it".to_owned(),
            ),
            (
                &there,
                ErrorKind::ReadOnlyFilesystem,
                Kind::FileSystemReadOnly,
                "read-only filesystem".to_owned(),
            ),
            (
                &there,
                ErrorKind::StorageFull,
                Kind::DiskFull,
                "no storage space".to_owned(),
            ),
            (
                &there,
                ErrorKind::QuotaExceeded,
                Kind::DiskFull,
                "quota".to_owned(),
            ),
            (
                &missing,
                ErrorKind::NotADirectory,
                Kind::DatabaseMissing,
                format!("{folder} does not exist, or is not a folder"),
            ),
            (
                &there,
                ErrorKind::InvalidFilename,
                Kind::InvalidInput,
                String::new(),
            ),
            (
                &there,
                ErrorKind::TimedOut,
                Kind::Io,
                "timed out".to_owned(),
            ),
        ] {
            let failure = failed("cannot open it", path, error.into());
            assert_eq!(failure.kind(), kind, "{failure}");
            assert!(failure.to_string().contains(&words), "{failure}");
        }
    }
}
