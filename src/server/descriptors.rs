//! Computes the number of connections that the limit of open files allows.
//!
//! Only this file has the number of descriptors that a service reserves for itself. `tests/it/overload.rs` tests that
//! it is enough.

use crate::config::Config;
use crate::store::cluster::is_cluster;
use petstore_base::error::{Error, ErrorKind};
use petstore_gate::unopened_files;

/// The descriptors of every service: standard streams, signals, a passed socket, the private folder, the gate and its
/// listener, the database and its log (16); the project's connection to the database, and a socket for each of the most
/// DNS checks at once (10). Some are open only for a moment (9): a connection that is rejected, the watchdog's check, a
/// notification, the database for the first key or for the thread that checkpoints a large log, and another socket if
/// the file of a Unix socket is lost.
const SERVICE: usize = 35;
/// The descriptors of a lane: its listener and the file of its socket, three for its connection, and the database with its log.
const LANE: usize = 7;
/// The descriptors of the admin address: its gate and its listener, and a connection that is rejected (4), two lanes, and
/// its clients.
const ADMIN: usize = 4 + 2 * LANE + ADMIN_CONNECTIONS;

/// The descriptors of a worker on a cluster: its connections to three nodes.
const NODES: usize = 3;

/// A service does not start with fewer connections than this.
const FEWEST: usize = 4;
/// The most connections of the admin address, since few programs monitor a service.
pub const ADMIN_CONNECTIONS: usize = 16;

/// Returns the number of descriptors that a service needs in addition to those of its clients.
fn reserved(config: &Config) -> usize {
    let lanes = config.workers + 1 + 2 * usize::from(config.experimental);
    let lane = if is_cluster(&config.database) {
        LANE + NODES
    } else {
        LANE
    };
    SERVICE + lane * lanes + if config.admin.is_some() { ADMIN } else { 0 }
}

/// Returns the most connections of the gate: `max_connections`, or fewer if the limit of open files does not allow that
/// many.
///
/// # Errors
/// [`ErrorKind::Resources`] if there are too few descriptors to start.
pub fn available_connections(config: &Config) -> Result<usize, Error> {
    let most = config.max_connections;
    let limit = config.open_files.unwrap_or_else(unopened_files);
    let reserved = reserved(config);
    let connections = most.min(limit.saturating_sub(reserved));
    if connections < FEWEST.min(most) {
        let needed = reserved + FEWEST.min(most);
        let line = format!(
            "the process can open too few files: {limit}, but it needs at least {needed} (ulimit -n)"
        );
        return Err(Error::new(ErrorKind::Resources, line));
    }
    if connections < most {
        log::warn!(
            "the service accepts at most {connections} connections: the process can open only {limit} files (ulimit -n)"
        );
    }
    Ok(connections)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::{Resource, getrlimit};

    fn config(open_files: Option<usize>, has_admin: bool) -> Config {
        let mut config = Config {
            open_files,
            max_connections: 1000,
            workers: 1,
            ..Config::default()
        };
        if has_admin {
            config.admin = Some(([127, 0, 0, 1], 0).into());
        }
        config
    }

    #[test]
    fn limit_is_that_of_the_process_without_its_open_files() {
        let limit = getrlimit(Resource::Nofile).current.unwrap() as usize;
        assert!((1..limit).contains(&unopened_files()));
        let mut config = config(None, true);
        config.max_connections = usize::MAX;
        let clients = available_connections(&config).unwrap();
        assert!(clients + reserved(&config) < limit, "{clients}");
    }

    #[test]
    fn known_limit_is_not_exceeded() {
        for has_admin in [false, true] {
            assert_eq!(
                available_connections(&config(Some(usize::MAX), has_admin)).unwrap(),
                1000
            );
            let reserved = reserved(&config(None, has_admin));
            for limit in reserved + FEWEST..2000 {
                let clients = available_connections(&config(Some(limit), has_admin)).unwrap();
                assert!(reserved + clients <= limit, "{limit}");
                assert!(clients >= FEWEST, "{limit}");
            }
        }
    }

    #[test]
    fn too_few_files_are_refused() {
        for has_admin in [false, true] {
            for limit in 0..reserved(&config(None, has_admin)) + FEWEST {
                let refused = available_connections(&config(Some(limit), has_admin)).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Resources, "{limit}");
            }
        }
    }

    #[test]
    fn error_names_how_many_files_are_enough() {
        let error = available_connections(&config(Some(10), false))
            .unwrap_err()
            .to_string();
        let needed = reserved(&config(None, false)) + FEWEST;
        assert_eq!(
            error,
            format!(
                "the process can open too few files: 10, but it needs at least {needed} (ulimit -n)"
            )
        );
        assert!(available_connections(&config(Some(needed), false)).is_ok());
    }
}
