//! API keys: operators' tasks, the secrets, and the background work of a running service.
//!
//! Knows the store, but neither HTTP nor the command line.

mod background;
mod key_store;
mod last_use;
mod ring;
pub(crate) mod secret;

pub(crate) use background::{KeyTable, KeyTasks, last_expiries};
pub(crate) use last_use::LastUses;
pub use ring::{Expiry, KeyRing, RingState, keys};
pub use secret::{fingerprint, new_key as new_api_key};
