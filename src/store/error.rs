//! Why a read or a write of the store failed: a cause for clients and operators, and the details for the log.

use std::sync::{Arc, OnceLock};

use rusqlite::ErrorCode;
use rusqlite::ffi::{
    SQLITE_IOERR_SHMLOCK, SQLITE_IOERR_SHMMAP, SQLITE_IOERR_SHMOPEN, SQLITE_IOERR_SHMSIZE,
    SQLITE_PROTOCOL,
};

use petstore_base::error::{Error, ErrorKind};

/// Why the database is unavailable.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    /// Another process holds a lock for longer than a batch waits.
    Locked,
    /// The disk, or what the process may write, is full.
    Full,
    /// The file, its folder or the file system can only be read.
    ReadOnly,
    /// The file is not a database, or its pages contradict each other.
    Damaged,
    /// The path no longer leads to the file that was opened.
    Moved,
    /// A flush of the file failed, and may have lost a part of a checkpoint. The next start repeats it.
    Unflushed,
    /// A table, a column or what a trigger needs is missing.
    SchemaChanged,
    /// The operating system fails for another reason.
    Failing,
    /// The outcome of a write is unknown, such as because the disk failed at the commit and again when it was to be
    /// undone.
    Unknown,
    /// No node of the cluster answers, or it has no leader.
    Unreachable,
    /// The user or the password of the cluster is wrong.
    Denied,
    /// Another instance on the cluster has changed what this one had read and was about to change.
    Overtaken,
}

impl Cause {
    /// The cause in words that follow "the database".
    pub const fn as_str(self) -> &'static str {
        self.about().0
    }

    /// True if it passes, so that a client may try again soon.
    pub const fn passes(self) -> bool {
        matches!(
            self,
            Self::Locked | Self::Unknown | Self::Unreachable | Self::Overtaken
        )
    }

    /// The cause in words that follow "the database", and the kind of its error.
    const fn about(self) -> (&'static str, ErrorKind) {
        match self {
            Self::Locked => ("is locked by another process", ErrorKind::DatabaseLocked),
            Self::Full => ("cannot grow: the disk is full", ErrorKind::DiskFull),
            Self::ReadOnly => ("can only be read", ErrorKind::PermissionDenied),
            Self::Damaged => ("is damaged", ErrorKind::DatabaseDamaged),
            Self::Moved => (
                "was moved, deleted or overwritten",
                ErrorKind::DatabaseMoved,
            ),
            Self::Unflushed => ("could not be flushed to the disk", ErrorKind::Io),
            Self::SchemaChanged => (
                "has a schema that another program has changed",
                ErrorKind::SchemaChanged,
            ),
            Self::Failing => (
                "cannot be used: the disk or the system fails, or a file may not grow further (ulimit -f, a quota)",
                ErrorKind::Io,
            ),
            Self::Unknown => (
                "did not confirm the request, and may or may not have carried it out",
                ErrorKind::OutcomeUnknown,
            ),
            Self::Unreachable => ("cannot be reached", ErrorKind::DatabaseUnreachable),
            Self::Denied => (
                "refuses the user or the password",
                ErrorKind::PasswordRefused,
            ),
            Self::Overtaken => (
                "was changed by another instance at the same time",
                ErrorKind::Conflict,
            ),
        }
    }
}

/// Why a read or a write failed. The detail is for the log, never for a client.
#[derive(Clone, Debug, PartialEq)]
pub enum StoreError {
    /// The database is unavailable; it may work later.
    Unavailable(Cause, String),
    /// A trigger, an index or a CHECK of another program rejects what is written. Nothing else fails.
    Rejected(String),
    /// A fault of petstore itself.
    Internal(String),
}

impl StoreError {
    /// True if it passes without an operator.
    pub fn passes(&self) -> bool {
        matches!(self, Self::Unavailable(cause, _) if cause.passes())
    }

    /// True if the failed write may have been carried out.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Unavailable(Cause::Unknown, _))
    }

    /// True if the caller should read and try again.
    pub fn is_overtaken(&self) -> bool {
        matches!(self, Self::Unavailable(Cause::Overtaken, _))
    }

    /// True if the file was moved or changed as a whole, or is not flushed, so that the service must end.
    pub fn is_lost(&self) -> bool {
        matches!(self, Self::Unavailable(Cause::Moved | Cause::Unflushed, _))
    }
}

/// The first damage that a service has met; clones share it. It costs the requests that need the page. All others are
/// served, except that nothing is written any more, which could do more harm.
#[derive(Clone, Debug, Default)]
pub struct Damage(Arc<OnceLock<StoreError>>);

impl Damage {
    /// Returns whether the error is damage. The first is noted, and logged.
    pub fn note(&self, error: &StoreError) -> bool {
        let is_damage = matches!(error, StoreError::Unavailable(Cause::Damaged, _));
        if is_damage && self.0.set(error.clone()).is_ok() {
            log::error!(
                "{error}; what can be read is served, and nothing is written until the next start"
            );
        }
        is_damage
    }

    /// Checks that there is none.
    ///
    /// # Errors
    /// The first damage.
    pub fn found(&self) -> Result<(), StoreError> {
        self.0.get().map_or(Ok(()), |error| Err(error.clone()))
    }
}

impl std::fmt::Display for StoreError {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        match self {
            Self::Unavailable(cause, detail) => {
                write!(f, "the database {}: {detail}", cause.as_str())
            }
            Self::Rejected(detail) => {
                write!(
                    f,
                    "a rule of another program in the database rejects it: {detail}"
                )
            }
            Self::Internal(detail) => f.write_str(detail),
        }
    }
}

/// Recognizes SQLite's message about a missing table or column. For some statements, rusqlite does not report that they
/// cannot be prepared.
pub fn names_what_is_missing(message: &str) -> bool {
    message.starts_with("no such ")
        || message.starts_with("table ") && message.contains(" has no column named ")
}

impl From<rusqlite::Error> for StoreError {
    fn from(error: rusqlite::Error) -> Self {
        let (failure, detail) = match error {
            // Every statement stands in the source and is tested. One that cannot be prepared meets another schema. The
            // statement itself, which may be the whole schema, is left out.
            rusqlite::Error::SqlInputError { msg, .. } => {
                return StoreError::Unavailable(Cause::SchemaChanged, msg);
            }
            // RAISE(IGNORE) of a trigger.
            rusqlite::Error::StatementChangedRows(0) => {
                return StoreError::Rejected("a trigger ignored it".to_owned());
            }
            rusqlite::Error::SqliteFailure(failure, said) => {
                // Its own words for the code would repeat the cause.
                let code = || format!("SQLite's code {}", failure.extended_code);
                (failure, said.unwrap_or_else(code))
            }
            error => return StoreError::Internal(error.to_string()),
        };
        let detail = match failure.extended_code {
            SQLITE_IOERR_SHMOPEN | SQLITE_IOERR_SHMMAP | SQLITE_IOERR_SHMLOCK | SQLITE_PROTOCOL => {
                detail + ": the file system cannot share or lock the -shm file; a local disk can"
            }
            _ => detail,
        };
        let cause = match failure.code {
            ErrorCode::SchemaChanged | ErrorCode::AuthorizationForStatementDenied => {
                Cause::SchemaChanged
            }
            // What petstore writes keeps to its own rules.
            ErrorCode::ConstraintViolation => return StoreError::Rejected(detail),
            ErrorCode::Unknown if names_what_is_missing(&detail) => Cause::SchemaChanged,
            ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked => Cause::Locked,
            ErrorCode::DiskFull => Cause::Full,
            // A full disk has no room for the index of the log (`-shm`).
            _ if failure.extended_code == SQLITE_IOERR_SHMSIZE => Cause::Full,
            ErrorCode::ReadOnly | ErrorCode::PermissionDenied => Cause::ReadOnly,
            ErrorCode::DatabaseCorrupt | ErrorCode::NotADatabase => Cause::Damaged,
            ErrorCode::SystemIoFailure
            | ErrorCode::CannotOpen
            | ErrorCode::OutOfMemory
            // A damaged file announces such a value, or a trigger makes it.
            | ErrorCode::TooBig
            | ErrorCode::FileLockingProtocolFailed => Cause::Failing,
            _ => return StoreError::Internal(detail),
        };
        StoreError::Unavailable(cause, detail)
    }
}

impl std::error::Error for StoreError {}

impl From<StoreError> for Error {
    fn from(error: StoreError) -> Self {
        let kind = match &error {
            StoreError::Unavailable(cause, _) => cause.about().1,
            StoreError::Rejected(_) => ErrorKind::InvalidInput,
            StoreError::Internal(_) => ErrorKind::Internal,
        };
        Error::new(kind, error.to_string()).caused_by(error)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rusqlite::{Connection, ffi};

    fn cause(code: i32) -> Option<Cause> {
        match StoreError::from(rusqlite::Error::SqliteFailure(ffi::Error::new(code), None)) {
            StoreError::Unavailable(cause, _) => Some(cause),
            StoreError::Rejected(_) | StoreError::Internal(_) => None,
        }
    }

    #[test]
    fn codes_of_sqlite_have_names() {
        for (code, expected) in [
            (ffi::SQLITE_BUSY, Some(Cause::Locked)),
            (ffi::SQLITE_LOCKED, Some(Cause::Locked)),
            (ffi::SQLITE_FULL, Some(Cause::Full)),
            (ffi::SQLITE_IOERR_SHMSIZE, Some(Cause::Full)),
            (ffi::SQLITE_READONLY, Some(Cause::ReadOnly)),
            (ffi::SQLITE_PERM, Some(Cause::ReadOnly)),
            (ffi::SQLITE_CORRUPT, Some(Cause::Damaged)),
            (ffi::SQLITE_NOTADB, Some(Cause::Damaged)),
            (ffi::SQLITE_SCHEMA, Some(Cause::SchemaChanged)),
            (ffi::SQLITE_IOERR, Some(Cause::Failing)),
            (ffi::SQLITE_CANTOPEN, Some(Cause::Failing)),
            (ffi::SQLITE_NOMEM, Some(Cause::Failing)),
            (ffi::SQLITE_PROTOCOL, Some(Cause::Failing)),
            (ffi::SQLITE_ERROR, None),
            (ffi::SQLITE_CONSTRAINT, None),
            (ffi::SQLITE_MISUSE, None),
        ] {
            assert_eq!(cause(code), expected, "{code}");
        }
    }

    #[test]
    fn lost_table_is_another_schema() {
        let error = Connection::open_in_memory()
            .unwrap()
            .execute("DELETE FROM pets", [])
            .unwrap_err();
        assert!(matches!(
            StoreError::from(error),
            StoreError::Unavailable(Cause::SchemaChanged, _)
        ));
        for (sql, expected) in [
            (
                "INSERT INTO pets (name) VALUES ('Rex')",
                Cause::SchemaChanged,
            ),
            ("SELECT id FROM pets, pets AS others", Cause::SchemaChanged),
        ] {
            let connection = Connection::open_in_memory().unwrap();
            connection
                .execute_batch("CREATE TABLE pets (id INTEGER)")
                .unwrap();
            let error = StoreError::from(connection.prepare(sql).unwrap_err());
            assert!(
                matches!(error, StoreError::Unavailable(cause, _) if cause == expected),
                "{error}"
            );
        }
    }

    #[test]
    fn what_passes_is_tried_again_and_only_a_lost_file_ends_the_service() {
        use Cause::*;
        for cause in [
            Locked,
            Full,
            ReadOnly,
            Damaged,
            Moved,
            Unflushed,
            SchemaChanged,
            Failing,
            Unknown,
        ] {
            let error = StoreError::Unavailable(cause, String::new());
            assert_eq!(error.passes(), matches!(cause, Locked | Unknown), "{error}");
            assert_eq!(error.is_unknown(), cause == Unknown, "{error}");
            assert_eq!(
                error.is_lost(),
                matches!(cause, Moved | Unflushed),
                "{error}"
            );
        }
        let internal = StoreError::Internal(String::new());
        assert!(!internal.passes() && !internal.is_lost());
    }
}
