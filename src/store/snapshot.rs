//! A whole database as it is at one moment.

use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};

use rusqlite::{Connection, ErrorCode, OpenFlags};

use super::file::{self, Opened};
use super::{cannot_open, connect, reading, schema};

/// Where the header says how the file is written: 1 with a rollback journal, 2 with a write-ahead log, once for
/// writers and once for readers (`sqlite.org/fileformat2.html`, section 1.3.3).
pub const MODE_AT: u64 = 18;
/// What stands there with a write-ahead log.
pub const LOG_MODE: [u8; 2] = [2, 2];

/// What is said of a file that SQLite cannot follow.
pub const DAMAGED: &str = "a page is missing, or contradicts another";

/// A connection whose read transaction lasts as long as this lives.
pub struct Snapshot {
    pub(super) connection: Connection,
    /// Closed after the connection.
    _file: Opened,
    pub(super) path: PathBuf,
    /// How the file was when it was opened. `None`: SQLite's locks keep it as it is.
    unlocked: Option<Stamp>,
}

/// What tells whether a file was written to.
#[derive(PartialEq)]
struct Stamp {
    length: u64,
    modified: (i64, i64),
    has_log: bool,
}

impl Stamp {
    fn of(path: &Path) -> io::Result<Self> {
        let file = fs::metadata(path)?;
        let modified = (file.mtime(), file.mtime_nsec());
        Ok(Self { length: file.len(), modified, has_log: file::log_of(path).exists() })
    }
}

impl Snapshot {
    /// Takes one of a database that may be in use.
    ///
    /// # Errors
    /// One plain line that names the file and says what is wrong with it.
    pub fn of_database(path: &Path) -> Result<Self, String> {
        if !path.exists() {
            return Err(format!("there is no database {}", path.display()));
        }
        let file = file::open(path)?;
        file::check_before_reading(path)?;
        let connection = connect(path, reading(path)).map_err(|error| unreadable(path, &error))?;
        schema::check(&connection, path, schema::STEPS)?;
        let snapshot = Self { connection, _file: file, path: path.to_owned(), unlocked: None };
        if snapshot.take()? == 0 {
            return Err(format!("{} is empty: no service has used it yet", path.display()));
        }
        Ok(snapshot)
    }

    /// Takes one of a file, and changes nothing: neither the file nor what is beside it.
    ///
    /// # Errors
    /// One plain line that names the file and says what is wrong with it.
    pub fn of_file(path: &Path) -> Result<Self, String> {
        let cannot = |error: io::Error| match error.kind() {
            ErrorKind::NotFound => format!("there is no file {}", path.display()),
            ErrorKind::PermissionDenied => format!("this user may not read {}", path.display()),
            _ => format!("cannot read {}: {error}", path.display()),
        };
        let real = fs::canonicalize(path).map_err(cannot)?;
        if !real.is_file() {
            return Err(format!("{} is not a file", path.display()));
        }
        let file = Opened::at(&real).map_err(cannot)?;
        // SQLite would make the log and its index anew, and whoever cannot write cannot remove them. Where no log
        // is there, nobody has the database open.
        let has_none = !file::log_of(&real).exists() && !file::journal_of(&real).exists();
        let is_at_rest = has_none && has_log_mode(&file).map_err(cannot)?;
        let unlocked = is_at_rest.then(|| Stamp::of(&real)).transpose().map_err(cannot)?;
        if unlocked.is_none() {
            file::check_before_reading(&real)?;
        }
        let read_only = OpenFlags::SQLITE_OPEN_READ_ONLY;
        let opened = match unlocked {
            Some(_) => connect(&immutable(&real), read_only | OpenFlags::SQLITE_OPEN_URI),
            None if file::journal_of(&real).exists() => connect(&real, reading(&real)),
            None => connect(&real, read_only),
        };
        let connection = opened.map_err(|error| unreadable(path, &error))?;
        let snapshot = Self { connection, _file: file, path: real, unlocked };
        snapshot.take()?;
        Ok(snapshot)
    }

    /// Takes it, and returns the version of its schema. Reading is what takes it: BEGIN alone waits for the first
    /// read.
    fn take(&self) -> Result<i64, String> {
        let read = || {
            self.connection.execute_batch("BEGIN")?;
            self.connection
                .query_row("SELECT count(*) FROM sqlite_schema", [], |row| row.get::<_, i64>(0))?;
            self.connection.pragma_query_value(None, "user_version", |row| row.get(0))
        };
        read().map_err(|error| unreadable(&self.path, &error))
    }

    /// Whether the file is as it was, where nothing kept others from writing to it.
    pub fn is_unchanged(&self) -> bool {
        self.unlocked.as_ref().is_none_or(|before| Stamp::of(&self.path).is_ok_and(|now| now == *before))
    }
}

/// Why a file cannot be read, in one plain line.
pub fn unreadable(path: &Path, error: &rusqlite::Error) -> String {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseCorrupt) => format!("{} is not sound: {DAMAGED}", path.display()),
        _ => cannot_open(path, error),
    }
}

/// Whether a file says that it is written with a write-ahead log.
fn has_log_mode(file: &File) -> io::Result<bool> {
    let mut mode = [0; 2];
    match file.read_exact_at(&mut mode, MODE_AT) {
        Ok(()) => Ok(mode == LOG_MODE),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// The address under which SQLite reads a file without locks and without files beside it
/// (`sqlite.org/uri.html`).
fn immutable(path: &Path) -> PathBuf {
    let mut address = "file:".to_owned();
    for &byte in path.as_os_str().as_bytes() {
        if byte.is_ascii_alphanumeric() || b"/.-_".contains(&byte) {
            address.push(char::from(byte));
        } else {
            address += &format!("%{byte:02X}");
        }
    }
    (address + "?immutable=1").into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn address_keeps_every_byte_of_a_path() {
        let address = immutable(Path::new("/a b/100%?#ü.db"));
        assert_eq!(address, Path::new("file:/a%20b/100%25%3F%23%C3%BC.db?immutable=1"));
    }
}
