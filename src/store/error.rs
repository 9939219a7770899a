//! Why the store could not do as asked: in words for clients and operators, and in detail for the log.

use rusqlite::ErrorCode;

use crate::error::{Error, ErrorKind};

/// What is the matter with the database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Another process holds a lock, longer than a batch waits for it.
    Locked,
    /// The disk, or what the process may write, is full.
    Full,
    /// The greatest id is given.
    NoIds,
    /// The file, its folder or the file system can only be read.
    ReadOnly,
    /// The file is no database, or its pages contradict each other.
    Damaged,
    /// The path no longer leads to the file that was opened.
    Moved,
    /// A table or a column is not there any more.
    SchemaChanged,
    /// Anything else that the operating system refuses.
    Failing,
}

impl Trouble {
    /// What is the matter, after "the database".
    pub const fn as_str(self) -> &'static str {
        match self {
            Trouble::Locked => "is locked by another process",
            Trouble::Full => "cannot grow: the disk is full",
            Trouble::NoIds => "has no further id: the greatest one is given",
            Trouble::ReadOnly => "can only be read",
            Trouble::Damaged => "is damaged",
            Trouble::Moved => "was moved or deleted",
            Trouble::SchemaChanged => "lacks a table or a column",
            Trouble::Failing => "cannot be reached: the disk or the system fails",
        }
    }

    /// Whether it goes by itself, so that a client may try again soon.
    pub const fn passes(self) -> bool {
        matches!(self, Trouble::Locked)
    }
}

/// Why the store could not do as asked. The detail is for the log, never for a client.
#[derive(Clone, Debug, PartialEq)]
pub enum StoreError {
    /// Something is the matter with the database; it may work later.
    Unavailable(Trouble, String),
    /// Anything else, which is a fault of ours.
    Internal(String),
}

impl StoreError {
    /// The file is no longer where its path leads, or no longer whole: nothing may be written any more.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Unavailable(Trouble::Moved | Trouble::Damaged, _))
    }
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::Unavailable(trouble, detail) => write!(f, "the database {}: {detail}", trouble.as_str()),
            Self::Internal(detail) => f.write_str(detail),
        }
    }
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let detail = error.to_string();
        // Every statement stands in the source and is tested. One that cannot be prepared meets another schema.
        let is_statement = matches!(error, rusqlite::Error::SqlInputError { .. });
        let trouble = match error.sqlite_error_code() {
            _ if is_statement => Trouble::SchemaChanged,
            Some(ErrorCode::SchemaChanged) => Trouble::SchemaChanged,
            Some(ErrorCode::Unknown) if detail.contains("no such ") => Trouble::SchemaChanged,
            Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Trouble::Locked,
            Some(ErrorCode::DiskFull) => Trouble::Full,
            Some(ErrorCode::ReadOnly | ErrorCode::PermissionDenied) => Trouble::ReadOnly,
            Some(ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase) => Trouble::Damaged,
            Some(
                ErrorCode::SystemIoFailure
                | ErrorCode::CannotOpen
                | ErrorCode::OutOfMemory
                | ErrorCode::FileLockingProtocolFailed,
            ) => Trouble::Failing,
            Some(ErrorCode::OperationInterrupted) => {
                let message = format!("a statement visits more rows than its operation allows ({detail})");
                return StoreError::Internal(message);
            }
            _ => return StoreError::Internal(detail),
        };
        StoreError::Unavailable(trouble, detail)
    }
}

impl std::error::Error for StoreError {}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let kind = match &error {
            StoreError::Unavailable(trouble, _) => match trouble {
                Trouble::Locked => ErrorKind::DatabaseLocked,
                Trouble::Full => ErrorKind::DiskFull,
                Trouble::NoIds => ErrorKind::IdsExhausted,
                Trouble::ReadOnly => ErrorKind::PermissionDenied,
                Trouble::Damaged | Trouble::SchemaChanged => ErrorKind::DatabaseDamaged,
                Trouble::Moved => ErrorKind::DatabaseMoved,
                Trouble::Failing => ErrorKind::Io,
            },
            StoreError::Internal(_) => ErrorKind::Internal,
        };
        Error::new(kind, error.to_string()).caused_by(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::Connection;
    use rusqlite::ffi;

    fn trouble(code: i32) -> Option<Trouble> {
        match StoreError::from(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)) {
            StoreError::Unavailable(trouble, _) => Some(trouble),
            StoreError::Internal(_) => None,
        }
    }

    #[test]
    fn codes_of_sqlite_have_names() {
        for (code, expected) in [
            (ffi::SQLITE_BUSY, Some(Trouble::Locked)),
            (ffi::SQLITE_LOCKED, Some(Trouble::Locked)),
            (ffi::SQLITE_FULL, Some(Trouble::Full)),
            (ffi::SQLITE_READONLY, Some(Trouble::ReadOnly)),
            (ffi::SQLITE_PERM, Some(Trouble::ReadOnly)),
            (ffi::SQLITE_CORRUPT, Some(Trouble::Damaged)),
            (ffi::SQLITE_NOTADB, Some(Trouble::Damaged)),
            (ffi::SQLITE_SCHEMA, Some(Trouble::SchemaChanged)),
            (ffi::SQLITE_IOERR, Some(Trouble::Failing)),
            (ffi::SQLITE_CANTOPEN, Some(Trouble::Failing)),
            (ffi::SQLITE_NOMEM, Some(Trouble::Failing)),
            (ffi::SQLITE_PROTOCOL, Some(Trouble::Failing)),
            (ffi::SQLITE_CONSTRAINT, None),
            (ffi::SQLITE_MISUSE, None),
        ] {
            assert_eq!(trouble(code), expected, "{code}");
        }
    }

    #[test]
    fn lost_table_is_another_schema() {
        let error = Connection::open_in_memory().unwrap().execute("DELETE FROM pets", []).unwrap_err();
        assert!(matches!(StoreError::from(error), StoreError::Unavailable(Trouble::SchemaChanged, _)));
    }
}
