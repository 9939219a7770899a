//! The targets of fuzzers: each function takes any bytes, and panics if the service would break a promise with them.
//!
//! `tests/fuzz/` feeds them with libFuzzer and keeps the inputs that matter; the test below replays those on every run.
//! A promise about one room alone stands in that room, in its `fuzz_tests.rs`. No build that ships has any of it.

mod decoders;
mod lane;
mod start;

pub use crate::net::gate::fuzz_tests::{gate_budget, gate_client, gate_reader};
pub use crate::site::dns::fuzz_tests::dns;
pub use decoders::decoders;
pub use lane::lane;
pub use start::start;

/// Takes an input apart, from its start. What is not there is zero, or empty.
pub(crate) struct Parts<'a>(pub &'a [u8]);

impl<'a> Parts<'a> {
    pub fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    /// So many bytes, or what is left.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (part, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        part
    }

    /// The bytes after a byte that counts them.
    pub fn piece(&mut self) -> &'a [u8] {
        let count = self.byte();
        self.bytes(count.into())
    }
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    type Target = fn(&[u8]);

    /// Every target, in the order of their names.
    const TARGETS: &[(&str, Target)] = &[
        ("decoders", super::decoders),
        ("dns", super::dns),
        ("gate_budget", super::gate_budget),
        ("gate_client", super::gate_client),
        ("gate_reader", super::gate_reader),
        ("lane", super::lane),
        ("start", super::start),
    ];

    fn files(folder: &str) -> Vec<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz").join(folder);
        let mut files: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    #[test]
    fn corpora_are_replayed() {
        for (name, target) in TARGETS {
            let inputs = files(&format!("corpus/{name}"));
            assert!(!inputs.is_empty(), "{name}");
            for input in inputs {
                // Shown if it fails.
                eprintln!("{}", input.display());
                target(&std::fs::read(input).unwrap());
            }
        }
    }

    #[test]
    fn every_target_is_replayed() {
        let is_target = |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs");
        let names = files("").into_iter().filter(is_target);
        let names: Vec<_> =
            names.map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned()).collect();
        assert_eq!(names, TARGETS.iter().map(|(name, _)| *name).collect::<Vec<_>>());
    }
}
