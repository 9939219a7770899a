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
/// as wished, and no more than the descriptors allow, where their number is known.
///
/// # Errors
/// Where there are too few to start.
pub fn connections_allowed(config: &Config) -> Result<(usize, usize), Error> {
    let Some(limit) = config.open_files else {
        return Ok((config.max_connections, MAX_REFUSED));
    };
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

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server with one reading lane and a writing one needs itself.
    const OWN: usize = OWN_DESCRIPTORS + 2 * LANE_DESCRIPTORS;

    fn allowed(open_files: Option<usize>) -> Result<(usize, usize), String> {
        let config = Config { open_files, max_connections: 1000, workers: 1, ..Config::default() };
        connections_allowed(&config).map_err(|error| error.to_string())
    }

    #[test]
    fn unknown_limit_leaves_the_wish_as_it_is() {
        assert_eq!(allowed(None), Ok((1000, MAX_REFUSED)));
    }

    #[test]
    fn known_limit_is_not_exceeded() {
        assert_eq!(allowed(Some(usize::MAX)), Ok((1000, MAX_REFUSED)));
        for limit in OWN + FEWEST_CONNECTIONS..2000 {
            let (connections, refused) = allowed(Some(limit)).unwrap();
            assert!(OWN + connections + refused <= limit, "{limit}");
        }
    }

    #[test]
    fn too_few_files_are_refused() {
        for limit in 0..OWN + FEWEST_CONNECTIONS {
            let error = allowed(Some(limit)).unwrap_err();
            assert!(error.starts_with(&format!("too few files may be open: {limit}, ")), "{error}");
        }
    }

    #[test]
    fn refusal_says_how_many_files_are_enough() {
        let error = allowed(Some(10)).unwrap_err();
        assert_eq!(error, "too few files may be open: 10, and at least 48 are needed (ulimit -n)");
        assert!(allowed(Some(48)).is_ok());
    }
}
