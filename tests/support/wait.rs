//! Waiting that always ends: with the expected condition, or with a failed test that names it.

use std::time::{Duration, Instant};

/// Longer than anything takes on the slowest machine. A test that waits this long has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Checks repeatedly until `condition` holds; fails after [`PATIENCE`].
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(
            Instant::now() < deadline,
            "waited {PATIENCE:?} in vain for {what}"
        );
        std::thread::sleep(PAUSE);
    }
}
