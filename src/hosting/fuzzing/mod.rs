//! The fuzz target of the DNS client. `tests/fuzz/` runs it with libFuzzer and keeps the inputs that matter; the test below
//! replays those on every run. No released build contains it.

pub use crate::project::dns::fuzz_tests::dns;

#[cfg(test)]
mod tests {
    use petstore_base::testing::fuzzing::{Target, replay};

    #[test]
    fn corpora_are_replayed() {
        let targets: [Target; 1] = [("dns", super::dns)];
        replay("petstore_hosting", &targets);
    }
}
