//! Why a cluster failed: what the store can tell as well, and what only a cluster has.

use std::fmt;

use crate::base::error::{Error, ErrorKind};
use crate::store::StoreError;

/// Why a read or a commit failed. The detail is for the log, never for a client.
#[derive(Clone, Debug, PartialEq)]
pub enum ClusterError {
    /// No node answers, or there is no leader.
    Unreachable(String),
    /// The user or the password is wrong.
    Denied(String),
    /// Another instance has changed what this one had read and was about to change.
    Overtaken(String),
    /// The failure of a file has the same cause.
    Store(StoreError),
}

impl ClusterError {
    /// The cause in words that follow "the database", the kind of its error, and the detail; `None` if the store has them.
    fn about(&self) -> Result<(&'static str, ErrorKind, &str), &StoreError> {
        Ok(match self {
            Self::Unreachable(detail) => {
                ("cannot be reached", ErrorKind::DatabaseUnreachable, detail)
            }
            Self::Denied(detail) => (
                "refuses the user or the password",
                ErrorKind::PasswordRefused,
                detail,
            ),
            Self::Overtaken(detail) => (
                "was changed by another instance at the same time",
                ErrorKind::Conflict,
                detail,
            ),
            Self::Store(error) => return Err(error),
        })
    }

    /// The cause in words that follow "the database", and the detail.
    ///
    /// # Errors
    /// The failure of the store that it is.
    pub fn parts(self) -> Result<(&'static str, String), StoreError> {
        match self.about() {
            Ok((words, _, detail)) => Ok((words, detail.to_owned())),
            Err(error) => Err(error.clone()),
        }
    }

    /// True if it passes without an operator.
    pub fn passes(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::Overtaken(_) => true,
            Self::Denied(_) => false,
            Self::Store(error) => error.passes(),
        }
    }

    /// True if the work may have been done.
    pub fn is_unknown(&self) -> bool {
        matches!(self, Self::Store(error) if error.is_unknown())
    }

    /// True if the caller should read and try again.
    pub fn is_overtaken(&self) -> bool {
        matches!(self, Self::Overtaken(_))
    }
}

impl fmt::Display for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.about() {
            Ok((words, _, detail)) => write!(f, "the database {words}: {detail}"),
            Err(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ClusterError {}

impl From<StoreError> for ClusterError {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<ClusterError> for Error {
    fn from(error: ClusterError) -> Self {
        match error.about() {
            Ok((_, kind, _)) => Error::new(kind, error.to_string()).caused_by(error),
            Err(of_store) => of_store.clone().into(),
        }
    }
}
