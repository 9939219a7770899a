//! Why the service or an operator's task failed: what callers can tell apart, and one line for people.

use std::fmt;
use std::io;

/// What went wrong, for callers that handle some failures themselves.
///
/// ```
/// use petstore::{Config, ErrorKind, Server};
///
/// let config = Config { database: "no/such/folder/pets.db".into(), ..Config::default() };
/// match Server::start(config) {
///     Err(error) if error.kind() == ErrorKind::DatabaseMissing => println!("create the folder first"),
///     Err(error) => println!("{error}"),
///     Ok(server) => drop(server),
/// }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// A value of the configuration cannot be used.
    Config,
    /// Another process listens on the address.
    AddressInUse,
    /// The address cannot be bound for another reason, such as a privileged port.
    AddressUnavailable,
    /// The database file or its folder does not exist.
    DatabaseMissing,
    /// The file is not a petstore database.
    DatabaseForeign,
    /// The database fails SQLite's checks or lacks a part of the schema.
    DatabaseDamaged,
    /// Another process holds SQLite's lock on the database.
    DatabaseLocked,
    /// Another service has the database open.
    DatabaseInUse,
    /// The database's path no longer leads to the file that was opened.
    DatabaseMoved,
    /// A later version of petstore wrote the database.
    DatabaseNewer,
    /// The write-ahead log beside the database belongs to another database.
    LogForeign,
    /// The disk is full, or a quota is used up.
    DiskFull,
    /// The operating system denies access.
    PermissionDenied,
    /// A file that would have to be replaced exists.
    FileExists,
    /// An API key of that name exists.
    KeyExists,
    /// There is no API key of that name.
    KeyUnknown,
    /// There is no pet with that id.
    PetUnknown,
    /// The input is malformed, such as a row of an import.
    InvalidInput,
    /// The system has no more threads, descriptors or memory.
    Resources,
    /// Another failure that the operating system or SQLite reports.
    Io,
    /// A fault of petstore itself.
    Internal,
}

/// Why the service or an operator's task failed. `Display` is one plain line without a trailing period.
#[derive(Debug)]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// An error of a kind, described in one line.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), source: None }
    }

    /// Adds the error that caused this one.
    #[must_use]
    pub fn caused_by(mut self, source: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> Self {
        self.source = Some(source.into());
        self
    }

    /// What went wrong.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }

    /// A thread could not be started.
    pub fn no_thread(error: &io::Error) -> Self {
        let message = match error.kind() {
            io::ErrorKind::WouldBlock => {
                "cannot start a thread: the system allows no more (ulimit -u)".to_owned()
            }
            _ => format!("cannot start a thread: {error}"),
        };
        Self::new(ErrorKind::Resources, message)
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        self.source.as_deref().map(|source| source as _)
    }
}

/// Goes once every caller names a kind.
impl From<String> for Error {
    fn from(line: String) -> Self {
        Self::new(ErrorKind::Internal, line)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_tells_its_kind_its_line_and_its_cause() {
        let cause = io::Error::from(io::ErrorKind::StorageFull);
        let error = Error::new(ErrorKind::DiskFull, "the disk of pets.db is full").caused_by(cause);
        assert_eq!(error.kind(), ErrorKind::DiskFull);
        assert_eq!(error.to_string(), "the disk of pets.db is full");
        assert!(std::error::Error::source(&error).unwrap().is::<io::Error>());
    }
}
