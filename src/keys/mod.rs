//! The API keys: the ring of them that a database keeps, what they are made of, and what a running service
//! does for them.

mod care;
mod ring;
pub(crate) mod secret;
mod uses;

pub(crate) use care::KeyCare;
pub use ring::{Expiry, KeyInfo, KeyRing, RingState, keys};
pub(crate) use uses::KeyUses;
