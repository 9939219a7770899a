//! Fuzz targets. Each function takes any bytes, and panics if they make the gate break a promise.
//!
//! `tests/fuzz/` runs them with libFuzzer and keeps the inputs that matter; the test below replays those on every run.
//! Those that need the inside of the gate are in its `fuzz_tests.rs`. No released build contains fuzz targets.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod lane;

pub use crate::gate::fuzz_tests::{gate_budget, gate_client, gate_reader};
pub use lane::lane;

#[cfg(test)]
mod tests {
    use petstore_base::testing::fuzzing::{Target, replay};

    #[test]
    fn corpora_are_replayed() {
        let targets: [Target; 4] = [
            ("gate_budget", super::gate_budget),
            ("gate_client", super::gate_client),
            ("gate_reader", super::gate_reader),
            ("lane", super::lane),
        ];
        replay("petstore_gate", &targets);
    }
}
