//! Fuzz targets. Each function takes any bytes, and panics if they make the service break a promise.
//!
//! `tests/fuzz/` runs them with libFuzzer and keeps the inputs that matter; the test below replays those on every run.
//! The target of a single room is in that room, in its `fuzz_tests.rs`; the gate has its own. No released build contains fuzz targets.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod decoders;
mod start;

pub use decoders::decoders;
pub use start::start;

#[cfg(test)]
mod tests {
    use petstore_base::testing::fuzzing::{Target, replay};

    #[test]
    fn corpora_are_replayed() {
        let targets: [Target; 2] = [("decoders", super::decoders), ("start", super::start)];
        replay("petstore", &targets);
    }
}
