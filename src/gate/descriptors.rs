//! The files that the process may still open, each of which may be a client.

use rustix::process::{Resource, getrlimit};

/// What tiny_http opens for a lane once it accepts the connection of the gate.
const LANE: usize = 3;
/// For what is open for a moment, such as a client that is rejected.
const SPARE: usize = 4;

/// The files that the process can still open. Where `/proc` is missing, none counts as open.
pub fn unopened_files() -> usize {
    let limit = getrlimit(Resource::Nofile)
        .current
        .and_then(|limit| usize::try_from(limit).ok());
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    limit.unwrap_or(usize::MAX).saturating_sub(open)
}

/// The most clients that leave enough files for this number of lanes, which have not been accepted yet; at least one.
pub fn most_connections(lanes: usize) -> usize {
    let needed = LANE * lanes + SPARE;
    unopened_files().saturating_sub(needed).max(1)
}
