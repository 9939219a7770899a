//! The API keys: the ring of them that a database keeps, and what they are made of.

mod ring;
pub(crate) mod secret;

pub use ring::{KeyInfo, KeyRing};
