//! How many connections the open files allow.

use crate::{Config, Error};

/// Descriptors that the service itself needs, and those for each lane.
const OWN_DESCRIPTORS: usize = 24;
const LANE_DESCRIPTORS: usize = 8;
/// Clients beyond the most connections who are told so at once.
const MAX_REFUSED: usize = 256;
/// The fewest connections worth starting for.
const FEWEST_CONNECTIONS: usize = 4;

/// How many connections are served at once, and how many further ones are refused with a word: as many
/// as wished, and no more than the descriptors allow.
pub fn connections_allowed(config: &Config) -> Result<(usize, usize), Error> {
    let limit = rlimit::increase_nofile_limit(u64::MAX)
        .map_err(|error| format!("cannot tell how many files may be open: {error}"))?;
    let limit = usize::try_from(limit).unwrap_or(usize::MAX);
    let own = OWN_DESCRIPTORS + LANE_DESCRIPTORS * (config.workers + 1);
    let left = limit.saturating_sub(own);
    let max_refused = MAX_REFUSED.min(left / 8);
    let allowed = config.max_connections.min(left - max_refused);
    if allowed < FEWEST_CONNECTIONS.min(config.max_connections) {
        let needed = own + 2 * FEWEST_CONNECTIONS;
        return Err(format!(
            "too few files may be open: {limit}, and at least {needed} are needed (ulimit -n)"
        )
        .into());
    }
    if allowed < config.max_connections {
        log::warn!("at most {allowed} connections are served: only {limit} files may be open (ulimit -n)");
    }
    Ok((allowed, max_refused))
}
