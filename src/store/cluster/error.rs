//! Why a cluster failed: what the store can tell as well, and what only a cluster has.

use std::fmt;

use crate::store::StoreError;
use petstore_base::error::{Error, ErrorKind};

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
    /// The cause in words that follow "the database"; `None` if it is the store's.
    pub fn words(&self) -> Option<&'static str> {
        match self {
            Self::Unreachable(_) => Some("cannot be reached"),
            Self::Denied(_) => Some("refuses the user or the password"),
            Self::Overtaken(_) => Some("was changed by another instance at the same time"),
            Self::Store(_) => None,
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
        match self {
            Self::Unreachable(detail) | Self::Denied(detail) | Self::Overtaken(detail) => {
                let words = self.words().unwrap_or_default();
                write!(f, "the database {words}: {detail}")
            }
            Self::Store(error) => error.fmt(f),
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
        let kind = match error {
            ClusterError::Unreachable(_) => ErrorKind::DatabaseUnreachable,
            ClusterError::Denied(_) => ErrorKind::PasswordRefused,
            ClusterError::Overtaken(_) => ErrorKind::Conflict,
            ClusterError::Store(of_store) => return of_store.into(),
        };
        Error::new(kind, error.to_string()).caused_by(error)
    }
}
