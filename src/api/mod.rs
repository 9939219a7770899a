//! What each operation takes, checks and answers: one file a resource, handlers as plain functions.
//! Knows the store's use cases, and nothing of sockets or SQL.

pub mod health;
mod list_cache;
pub mod orders;
pub mod pets;

use std::sync::Arc;

use crate::http::{ApiError, Code};
use crate::pulse::Pulse;
use crate::store::{Store, StoreError};

/// What a handler works with.
pub struct Context {
    /// The worker's own connection.
    pub store: Store,
    /// Asks the writer whether it is there.
    pub pulse: Arc<Pulse>,
    /// Lists that need not be made again.
    lists: list_cache::Lists,
}

impl Context {
    /// What a worker with this connection needs.
    pub fn new(store: Store, pulse: Arc<Pulse>) -> Self {
        Self { store, pulse, lists: list_cache::Lists::default() }
    }
}

/// The one place where a failure of the store becomes one of the interface.
impl From<StoreError> for ApiError {
    fn from(error: StoreError) -> Self {
        match error {
            StoreError::Unavailable(detail) => ApiError::new(Code::StorageUnavailable).detail(detail),
            StoreError::Internal(detail) => ApiError::new(Code::Internal).detail(detail),
        }
    }
}
