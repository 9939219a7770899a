//! The API keys: the ring of them that a database keeps, what they are made of, and what a running service
//! does for them.

mod care;
mod ring;
pub(crate) mod secret;
mod uses;

use std::time::{SystemTime, UNIX_EPOCH};

pub(crate) use care::KeyCare;
pub use ring::{Expiry, KeyInfo, KeyRing, RingState};
pub(crate) use uses::KeyUses;

/// Seconds since 1970, for the expiry of keys.
pub(crate) fn unix_time() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_secs()).unwrap_or(i64::MAX)
}
