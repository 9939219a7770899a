//! API keys: the operator's work on them, their secrets, and the work of a running service on them.
//!
//! Knows the store, and neither HTTP nor the command line.

mod background;
mod last_use;
mod ring;
pub(crate) mod secret;

pub(crate) use background::{KeyTasks, last_expiries};
pub(crate) use last_use::LastUses;
pub use ring::{Expiry, KeyRing, RingState, keys};
pub use secret::{fingerprint, new_key as new_api_key};
