//! What tests within the crate share: a folder of their own, random numbers that repeat, and how long to wait.

use std::path::PathBuf;
use std::time::Duration;

/// Longer than anything in a test takes; a test that waits so long has failed.
pub const PATIENCE: Duration = Duration::from_secs(60);

/// A folder of its own for one test, removed at the end.
pub struct Folder(pub PathBuf);

impl Folder {
    pub fn new() -> Self {
        let name = format!("petstore-test-{}-{:x}", std::process::id(), getrandom::u64().unwrap());
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).unwrap();
        Self(path)
    }

    pub fn database(&self) -> PathBuf {
        self.0.join("pets.db")
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Numbers that look random and are the same in every run, so that a failure repeats: Knuth's linear
/// congruential generator.
pub struct Random(u64);

impl Random {
    pub fn new() -> Self {
        Self(1)
    }

    /// A number from 0 up to, but not including, `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) as usize % bound
    }
}
