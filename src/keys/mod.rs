//! The API keys: the ring of them that a database keeps, and what they are made of.

mod ring;
pub(crate) mod secret;

use std::time::{SystemTime, UNIX_EPOCH};

pub use ring::{KeyInfo, KeyRing};

/// Seconds since 1970, for the expiry of keys.
pub(crate) fn unix_time() -> i64 {
    let elapsed = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(elapsed.as_secs()).unwrap_or(i64::MAX)
}
