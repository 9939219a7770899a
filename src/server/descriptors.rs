//! How many connections the limit of open files allows.
//!
//! The one place that counts what a service opens for itself, by its configuration. `tests/it/overload.rs` shows
//! that the count is enough.

use crate::config::Config;
use crate::error::{Error, ErrorKind};
use crate::log_line::log_line;

/// What every service has open: standard streams, signals, a passed socket, the private folder, the gate and its
/// listener, the database and its log (16). And for a moment: a connection that is turned away, the watchdog's check,
/// a notification, the connection to the database of the first key, or of the thread that moves a large log, another
/// socket if the file of a Unix socket is lost (9).
const OWN: usize = 25;
/// What a lane has open: its listener, three for its connection, and the database with its log.
const LANE: usize = 6;
/// What the admin address has open: its gate and its listener, and a connection that is turned away (4), two lanes,
/// and its fewest clients with as many that are refused.
const ADMIN: usize = 4 + 2 * LANE + 2 * FEWEST_ADMIN;
/// The project's connection to the database.
const PROJECT: usize = 2;
/// The most looks at DNS at once, with a socket each.
const LOOKS: usize = 8;

/// Clients beyond the maximum that can be refused with a response at once.
const MAX_REFUSED: usize = 256;
/// The fewest connections worth starting for.
const FEWEST: usize = 4;
/// The most and the fewest connections of the admin address, and as many can be refused. Few programs monitor a
/// service.
const MAX_ADMIN: usize = 32;
const FEWEST_ADMIN: usize = 2;

/// How many connections a gate serves at once, and how many more it can refuse with a response.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Places {
    pub connections: usize,
    pub refused: usize,
}

/// The descriptors that a service needs besides those of its clients.
fn own(config: &Config) -> usize {
    let has_platform = config.hosting.platform_host.is_some();
    let count = |is_there: bool, descriptors: usize| if is_there { descriptors } else { 0 };
    OWN + LANE * (config.workers + 1)
        + count(config.admin.is_some(), ADMIN)
        + count(config.admin.is_some() || has_platform, PROJECT)
        + count(has_platform, LOOKS)
}

/// The places of the gate and of the admin address: as many as the configuration asks for, but no more than the
/// descriptors allow if their number is known.
///
/// # Errors
/// [`ErrorKind::Resources`] if there are too few descriptors to start.
pub fn places(config: &Config) -> Result<(Places, Places), Error> {
    let most = config.max_connections;
    let Some(limit) = config.open_files else {
        let admin = Places { connections: MAX_ADMIN, refused: MAX_ADMIN };
        return Ok((Places { connections: most, refused: MAX_REFUSED }, admin));
    };
    let own = own(config);
    let left = limit.saturating_sub(own);
    let refused = MAX_REFUSED.min(left / 8);
    let for_admin = if config.admin.is_some() { (MAX_ADMIN - FEWEST_ADMIN).min(left / 16) } else { 0 };
    let connections = most.min(left - refused - for_admin);
    if connections < FEWEST.min(most) {
        let needed = own + 2 * FEWEST;
        let line = format!(
            "the process can open too few files: {limit}, but it needs at least {needed} (ulimit -n)"
        );
        return Err(Error::new(ErrorKind::Resources, line));
    }
    if connections < most {
        log_line!(
            warn,
            "the service accepts at most {connections} connections: the process can open only {limit} files (ulimit -n)"
        );
    }
    let admin = Places { connections: FEWEST_ADMIN + for_admin, refused: FEWEST_ADMIN };
    Ok((Places { connections, refused }, admin))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(open_files: Option<usize>, has_all: bool) -> Config {
        let mut config = Config { open_files, max_connections: 1000, workers: 1, ..Config::default() };
        if has_all {
            config.admin = Some(([127, 0, 0, 1], 0).into());
            config.hosting.platform_host = Some("sites.test".to_owned());
        }
        config
    }

    #[test]
    fn unknown_limit_leaves_the_setting_as_it_is() {
        let (clients, admin) = places(&config(None, true)).unwrap();
        assert_eq!(clients, Places { connections: 1000, refused: MAX_REFUSED });
        assert_eq!(admin.connections, MAX_ADMIN);
    }

    #[test]
    fn known_limit_is_not_exceeded() {
        for has_all in [false, true] {
            let (clients, _) = places(&config(Some(usize::MAX), has_all)).unwrap();
            assert_eq!(clients, Places { connections: 1000, refused: MAX_REFUSED });
            let own = own(&config(None, has_all));
            for limit in own + FEWEST..2000 {
                let (clients, admin) = places(&config(Some(limit), has_all)).unwrap();
                let for_admin = if has_all { admin.connections - FEWEST_ADMIN } else { 0 };
                assert!(own + clients.connections + clients.refused + for_admin <= limit, "{limit}");
                assert!(clients.connections >= FEWEST, "{limit}");
            }
        }
    }

    #[test]
    fn too_few_files_are_refused() {
        for has_all in [false, true] {
            for limit in 0..own(&config(None, has_all)) + FEWEST {
                let refused = places(&config(Some(limit), has_all)).unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Resources, "{limit}");
            }
        }
    }

    #[test]
    fn error_names_how_many_files_are_enough() {
        let error = places(&config(Some(10), false)).unwrap_err().to_string();
        let needed = own(&config(None, false)) + 2 * FEWEST;
        assert_eq!(
            error,
            format!("the process can open too few files: 10, but it needs at least {needed} (ulimit -n)")
        );
        assert!(places(&config(Some(needed), false)).is_ok());
    }

    #[test]
    fn each_part_that_is_turned_on_has_its_descriptors() {
        let own = |workers, has_admin: bool, has_platform: bool| {
            let mut config = Config { workers, ..config(None, true) };
            config.admin = config.admin.filter(|_| has_admin);
            config.hosting.platform_host = config.hosting.platform_host.filter(|_| has_platform);
            own(&config) - OWN
        };
        // Six for each lane: those of the workers that read, and that of the writer.
        assert_eq!([own(1, false, false), own(3, false, false)], [12, 24]);
        // The admin address: 4, two lanes, and two clients with one more each that is turned away; the project: 2.
        assert_eq!(own(1, true, false), 12 + 4 + 12 + 4 + 2);
        assert_eq!(own(1, false, true), 12 + 2 + 8);
        assert_eq!(own(1, true, true), 12 + 4 + 12 + 4 + 2 + 8);
        let (_, admin) = places(&config(Some(usize::MAX), true)).unwrap();
        assert_eq!(admin, Places { connections: MAX_ADMIN, refused: FEWEST_ADMIN });
    }
}
