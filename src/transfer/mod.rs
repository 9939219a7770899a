//! The operator's work on the animals: one changed, some deleted. In force at once
//! on a running service, whose lists are made anew when the database has changed. Knows nothing of HTTP, nor
//! of terminals and signals.

mod change;

use crate::Error;
use crate::store::StoreError;

pub use change::{delete_pets, set_status};

fn say(error: StoreError) -> Error {
    Error(match error {
        StoreError::Unavailable(..) => error.to_string(),
        StoreError::Internal(detail) => format!("the database refuses it: {detail}"),
    })
}
