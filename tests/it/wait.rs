//! Waiting that ends: either with what was waited for, or with a failed test that says what it was.

use std::time::{Duration, Instant};

/// Longer than anything here takes on the slowest machine; a test that waits so long has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// Between two looks.
const PAUSE: Duration = Duration::from_millis(5);

/// Looks again and again until `condition` holds; fails after [`PATIENCE`].
#[track_caller]
pub fn wait_until(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + PATIENCE;
    while !condition() {
        assert!(Instant::now() < deadline, "waited {PATIENCE:?} in vain for {what}");
        std::thread::sleep(PAUSE);
    }
}
