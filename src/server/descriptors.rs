//! How many connections the limit of open files allows.

use crate::config::Config;
use crate::error::{Error, ErrorKind};

/// Descriptors that the service itself needs, and those that each lane needs.
const OWN_DESCRIPTORS: usize = 24;
const LANE_DESCRIPTORS: usize = 8;
/// Clients beyond the maximum that can be refused with a response at once.
const MAX_REFUSED: usize = 256;
/// The fewest connections worth starting for.
const FEWEST_CONNECTIONS: usize = 4;

/// How many connections are served at once, and how many more can be refused with a response at once: as many as the
/// configuration asks for, but no more than the descriptors allow if their number is known.
///
/// # Errors
/// [`ErrorKind::Resources`] if there are too few descriptors to start.
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
        let line = format!(
            "the process may open too few files: {limit}, and at least {needed} are needed (ulimit -n)"
        );
        return Err(Error::new(ErrorKind::Resources, line));
    }
    if allowed < config.max_connections {
        log::warn!(
            "the service accepts at most {allowed} connections: the process may open only {limit} files (ulimit -n)"
        );
    }
    Ok((allowed, max_refused))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What a server with one lane for reads and one for writes needs itself.
    const OWN: usize = OWN_DESCRIPTORS + 2 * LANE_DESCRIPTORS;

    fn allowed(open_files: Option<usize>) -> Result<(usize, usize), Error> {
        let config = Config { open_files, max_connections: 1000, workers: 1, ..Config::default() };
        connections_allowed(&config)
    }

    #[test]
    fn unknown_limit_leaves_the_setting_as_it_is() {
        assert_eq!(allowed(None).unwrap(), (1000, MAX_REFUSED));
    }

    #[test]
    fn known_limit_is_not_exceeded() {
        assert_eq!(allowed(Some(usize::MAX)).unwrap(), (1000, MAX_REFUSED));
        for limit in OWN + FEWEST_CONNECTIONS..2000 {
            let (connections, refused) = allowed(Some(limit)).unwrap();
            assert!(OWN + connections + refused <= limit, "{limit}");
        }
    }

    #[test]
    fn too_few_files_are_refused() {
        for limit in 0..OWN + FEWEST_CONNECTIONS {
            assert_eq!(allowed(Some(limit)).unwrap_err().kind(), ErrorKind::Resources, "{limit}");
        }
    }

    #[test]
    fn error_names_how_many_files_are_enough() {
        let error = allowed(Some(10)).unwrap_err().to_string();
        assert_eq!(error, "the process may open too few files: 10, and at least 48 are needed (ulimit -n)");
        assert!(allowed(Some(48)).is_ok());
    }
}
