//! API keys: the operator's work on them, what they are made of, and what a running service does for them.
//!
//! Knows the store, and neither HTTP nor the command line.

mod care;
mod ring;
pub(crate) mod secret;
mod uses;

pub(crate) use care::{KeyCare, last_expiries};
pub use ring::{Expiry, KeyRing, RingState, keys};
pub use secret::{fingerprint, new_key as new_api_key};
pub(crate) use uses::KeyUses;
