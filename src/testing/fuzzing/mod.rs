//! Fuzz targets. Each function takes any bytes, and panics if they make the service break a promise.
//!
//! `tests/fuzz/` runs them with libFuzzer and keeps the inputs that matter; the test below replays those on every run.
//! The target of a single room is in that room, in its `fuzz_tests.rs`. No released build contains fuzz targets.

mod decoders;
mod lane;
mod start;

pub use crate::net::gate::fuzz_tests::{gate_budget, gate_client, gate_reader};
pub use crate::site::dns::fuzz_tests::dns;
pub use decoders::decoders;
pub use lane::lane;
pub use start::start;

/// Splits an input into parts, from its start. Past the end, a byte is zero and a piece is empty.
pub(crate) struct Parts<'a>(pub &'a [u8]);

impl<'a> Parts<'a> {
    pub fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    /// Returns the next `count` bytes, or fewer at the end.
    pub fn bytes(&mut self, count: usize) -> &'a [u8] {
        let (part, rest) = self.0.split_at(count.min(self.0.len()));
        self.0 = rest;
        part
    }

    /// Returns a piece: its length in one byte, and then its bytes.
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
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("tests/fuzz")
            .join(folder);
        let mut files: Vec<_> = std::fs::read_dir(folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        files.sort();
        files
    }

    #[test]
    fn corpora_are_replayed() {
        for (name, target) in TARGETS {
            let inputs = files(&format!("corpus/{name}"));
            assert!(!inputs.is_empty(), "{name}");
            for input in inputs {
                // The test's output is shown only if it fails.
                eprintln!("{}", input.display());
                target(&std::fs::read(input).unwrap());
            }
        }
    }

    #[test]
    fn every_target_is_replayed() {
        let is_target =
            |path: &PathBuf| path.extension().is_some_and(|extension| extension == "rs");
        let names = files("").into_iter().filter(is_target);
        let names: Vec<_> = names
            .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
            .collect();
        assert_eq!(
            names,
            TARGETS.iter().map(|(name, _)| *name).collect::<Vec<_>>()
        );
    }
}
