//! What fuzz targets share.

use std::path::{Path, PathBuf};

/// Splits an input into parts, from its start. Past the end, a byte is zero and a piece is empty.
#[derive(Debug)]
pub struct Parts<'a>(pub &'a [u8]);

impl<'a> Parts<'a> {
    /// Returns the next byte.
    pub fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or(0)
    }

    /// Returns the next `count` bytes, or fewer at the end.
    /// Returns the next byte.
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

/// A fuzz target and its name.
pub type Target = (&'static str, fn(&[u8]));

/// Replays the corpora of a package's targets, in the order of their names, and checks that these are all targets of the
/// package in `tests/fuzz`.
pub fn replay(package: &str, targets: &[Target]) {
    let has_target = |path: &PathBuf| {
        let is_rust = path.extension().is_some_and(|end| end == "rs");
        is_rust
            && std::fs::read_to_string(path)
                .unwrap()
                .contains(&format!("{package}::fuzzing"))
    };
    let names = files("").into_iter().filter(has_target);
    let names: Vec<_> = names
        .map(|path| path.file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    assert_eq!(
        names,
        targets.iter().map(|(name, _)| *name).collect::<Vec<_>>()
    );
    for (name, target) in targets {
        let inputs = files(&format!("corpus/{name}"));
        assert!(!inputs.is_empty(), "{name}");
        for input in inputs {
            // The test's output is shown only if it fails.
            eprintln!("{}", input.display());
            target(&std::fs::read(input).unwrap());
        }
    }
}

/// The files in a folder of `tests/fuzz`, in the order of their names.
fn files(folder: &str) -> Vec<PathBuf> {
    let fuzz = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/fuzz");
    let mut files: Vec<_> = std::fs::read_dir(fuzz.join(folder))
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    files.sort();
    files
}
