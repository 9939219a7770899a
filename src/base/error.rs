//! Errors of the service and of operators' tasks: a kind for programs, one line for people, and the cause.
//!
//! A message describes what happened. Advice, such as a command to run, belongs to the program that
//! shows the message: the command line adds it by kind.

use std::borrow::Cow;
use std::{fmt, io};

use rustix::io::Errno;

/// The kind of a failure, for callers that handle some failures themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum ErrorKind {
    /// The named field of the configuration, such as `"api_key"`, has a value that cannot be used.
    /// Occurs only when a server starts or a project is opened.
    Config(&'static str),
    /// Another process listens on the address, or on the Unix socket.
    AddressInUse,
    /// The address cannot be bound: this machine does not have it, the host name is unknown, the port is
    /// privileged, or the path of the Unix socket cannot be used.
    AddressUnavailable,
    /// The socket that was passed, as `Listen::Socket`, does not listen.
    SocketUnusable,

    /// The database does not exist or is empty. If the task would create it, its folder does not exist.
    DatabaseMissing,
    /// The file is not an SQLite database, or belongs to another application.
    DatabaseForeign,
    /// SQLite finds the database damaged, or a part of its schema is missing.
    DatabaseDamaged,
    /// Another program has changed the schema or the last assigned id. Nothing is lost. If SQL can repair it, the
    /// message contains the statements.
    SchemaChanged,
    /// Another process, such as the `sqlite3` shell, holds SQLite's lock on the database.
    DatabaseLocked,
    /// A service has the database open, and the task needs it alone.
    DatabaseInUse,
    /// The file that was opened has been moved, deleted or replaced, so the database's path no longer leads to it. Also
    /// if a read-only service finds that its database was upgraded or changed.
    DatabaseMoved,
    /// A later version of petstore wrote the database.
    DatabaseNewer,
    /// An earlier version of petstore wrote the database, and this service may not migrate it.
    DatabaseOlder,
    /// The database already has, or once had, pets, and the task needs a new one.
    DatabaseNotNew,
    /// The database is a cluster, such as `rqlite://one,two,three/`, and this build of petstore is without the
    /// feature `cluster`.
    ClusterUnsupported,
    /// The cluster is empty or has the schema of an earlier version, because no service of this version has used it
    /// yet. Also during a restore.
    ClusterOutdated,
    /// No node of the cluster accepts requests, or the cluster has no leader: a later try may succeed. Also if TLS with
    /// a host fails, or a host is not rqlite.
    DatabaseUnreachable,
    /// The task may or may not have been done: a cluster did not respond, or the disk failed at the commit and again when
    /// it was to be undone.
    OutcomeUnknown,
    /// The cluster rejects the user or the password, or the user lacks a permission that petstore needs.
    PasswordRefused,
    /// The data of a node of the cluster differs from the leader's, or the node does not respond.
    ReplicasDiffer,
    /// The cluster runs a version of rqlite that may lose acknowledged writes.
    RqliteOlder,
    /// The write-ahead log at the database's path belongs to another database, or the rollback journal there is of another
    /// program, and may.
    LogForeign,
    /// A write-ahead log or a rollback journal exists, but its database does not.
    LogOrphaned,
    /// A file is not a sound backup: a restore rejects it and changes nothing.
    BackupUnsound,

    /// There is no API key of that name, or none with that fingerprint.
    KeyUnknown,
    /// A valid API key of that name exists.
    KeyExists,
    /// The API key has expired, so its expiry cannot be kept.
    KeyExpired,
    /// The fingerprint matches more than one API key.
    KeyAmbiguous,
    /// There is no pet with that id.
    PetUnknown,
    /// An import has the id of a pet, so it may be an edited export, which would add pets twice.
    PetExists,
    /// The project does not allow the change now. [`source`](std::error::Error::source) is the refusal with its code.
    Refused,

    /// An argument cannot be used, such as the name of a key, or an input is malformed as a whole.
    InvalidInput,
    /// The same input was imported before, so its pets would be added twice.
    ImportedBefore,
    /// The database records no changes.
    ChangesNotKept,
    /// Some of the changes are not kept any more, or the id is of another database.
    ChangesGone,
    /// Rows of an import are invalid, and none was written.
    InvalidRows,
    /// An input or a folder, such as the folder for a backup, does not exist.
    FileMissing,
    /// A file exists that would have to be overwritten.
    FileExists,
    /// The operating system denies this user access.
    PermissionDenied,
    /// The file system is mounted read-only.
    FileSystemReadOnly,
    /// The disk is full, a quota is used up, or a file may not grow further.
    DiskFull,
    /// The reader of the pipe or the connection has closed it.
    OutputClosed,
    /// The process may have no more threads, open files or memory.
    Resources,
    /// Another process changed the same data. Trying again can succeed.
    Conflict,
    /// The caller stopped the task before its end.
    Interrupted,
    /// Another failure that the operating system or SQLite reports.
    Io,
    /// A fault in petstore itself.
    Internal,
}

impl ErrorKind {
    /// The kind of a failed system call.
    pub fn of_io(error: &io::Error) -> Self {
        use io::ErrorKind as Os;
        match error.kind() {
            Os::NotFound | Os::NotADirectory => Self::FileMissing,
            Os::AlreadyExists => Self::FileExists,
            // EPERM: no other user would be allowed to either.
            Os::PermissionDenied if error.raw_os_error() == Some(Errno::PERM.raw_os_error()) => {
                Self::Io
            }
            Os::PermissionDenied => Self::PermissionDenied,
            Os::ReadOnlyFilesystem => Self::FileSystemReadOnly,
            Os::StorageFull | Os::QuotaExceeded | Os::FileTooLarge => Self::DiskFull,
            Os::AddrInUse => Self::AddressInUse,
            Os::AddrNotAvailable => Self::AddressUnavailable,
            Os::BrokenPipe => Self::OutputClosed,
            Os::OutOfMemory => Self::Resources,
            Os::InvalidFilename | Os::IsADirectory => Self::InvalidInput,
            _ => Self::Io,
        }
    }
}

/// A text is not a valid value. `Display` prints the valid ones, such as `a number from 1 to 64` or `'free', 'pro' or
/// 'enterprise'`, as the end of a sentence such as `--workers must be`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Expected(pub Cow<'static, str>);

impl fmt::Display for Expected {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Expected {}

/// A failure of the service or of an operator's task.
///
/// `Display` prints one line without a trailing period. It includes the cause, so a caller need not print
/// [`source`](std::error::Error::source) as well.
#[derive(Debug)]
#[must_use]
pub struct Error {
    kind: ErrorKind,
    message: String,
    source: Option<Box<dyn std::error::Error + Send + Sync>>,
}

impl Error {
    /// Creates an error of a kind from a one-line description.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self {
            kind,
            message: message.into(),
            source: None,
        }
    }

    /// Adds the error that caused this one. The message stays as it is.
    pub fn caused_by(
        mut self,
        source: impl Into<Box<dyn std::error::Error + Send + Sync>>,
    ) -> Self {
        self.source = Some(source.into());
        self
    }

    /// Puts `what` and a colon before the message. The kind and the cause stay.
    pub fn context(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{what}: {}", self.message);
        self
    }

    /// Puts a semicolon and `what` after the message. The kind and the cause stay.
    pub fn followed_by(mut self, what: impl fmt::Display) -> Self {
        self.message = format!("{}; {what}", self.message);
        self
    }

    /// Replaces the kind, for a caller that knows more about the failure.
    pub fn with_kind(self, kind: ErrorKind) -> Self {
        Self { kind, ..self }
    }

    /// Creates an error for a failed system call: `what`, a colon and the system's message. The kind follows from
    /// the system's error.
    pub fn io(what: impl fmt::Display, error: io::Error) -> Self {
        Self::new(
            ErrorKind::of_io(&error),
            format!("{what}: {}", meaning(&error)),
        )
        .caused_by(error)
    }

    /// The kind of the failure.
    pub fn kind(&self) -> ErrorKind {
        self.kind
    }
}

/// Returns the system's message for a failed call, and an explanation if the message alone is not clear.
pub(crate) fn meaning(error: &io::Error) -> String {
    let means = match error.raw_os_error().map(Errno::from_raw_os_error) {
        Some(Errno::NOSYS) => {
            "the kernel or the container lacks this call; Linux 3.2 or later has it"
        }
        Some(Errno::PERM) => "whoever asks: look at lsattr, the file system and the container",
        Some(Errno::XDEV) => "the two names are on different file systems or mounts",
        Some(Errno::NOLCK | Errno::OPNOTSUPP) => "the file system lacks this; a local disk has it",
        _ => return error.to_string(),
    };
    format!("{error}: {means}")
}

/// Fails with a kind and a one-line description.
pub fn fail<T>(kind: ErrorKind, message: impl Into<String>) -> Result<T, Error> {
    Err(Error::new(kind, message))
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_has_a_kind_a_line_and_a_cause() {
        let cause = io::Error::from(io::ErrorKind::StorageFull);
        let error = Error::io("cannot write pets.db", cause).context("no key was created");
        assert_eq!(error.kind(), ErrorKind::DiskFull);
        assert_eq!(
            error.to_string(),
            "no key was created: cannot write pets.db: no storage space"
        );
        assert!(std::error::Error::source(&error).unwrap().is::<io::Error>());
    }

    #[test]
    fn kind_follows_from_the_failed_call() {
        for (number, kind) in [
            (Errno::NOENT, ErrorKind::FileMissing),
            (Errno::NOTDIR, ErrorKind::FileMissing),
            (Errno::EXIST, ErrorKind::FileExists),
            (Errno::ACCESS, ErrorKind::PermissionDenied),
            (Errno::PERM, ErrorKind::Io),
            (Errno::ROFS, ErrorKind::FileSystemReadOnly),
            (Errno::NOSPC, ErrorKind::DiskFull),
            (Errno::DQUOT, ErrorKind::DiskFull),
            (Errno::FBIG, ErrorKind::DiskFull),
            (Errno::ADDRINUSE, ErrorKind::AddressInUse),
            (Errno::ADDRNOTAVAIL, ErrorKind::AddressUnavailable),
            (Errno::PIPE, ErrorKind::OutputClosed),
            (Errno::NOMEM, ErrorKind::Resources),
            (Errno::NAMETOOLONG, ErrorKind::InvalidInput),
            (Errno::IO, ErrorKind::Io),
        ] {
            assert_eq!(ErrorKind::of_io(&number.into()), kind, "{number}");
        }
    }
}
