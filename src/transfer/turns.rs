//! Taking turns with a running service, so that its creates do not wait long while many pets are written.

use std::time::Duration;

/// How long the lock is left to others between two batches. The writer of a service, and every command, asks for it
/// each millisecond; sleeps are never exact.
pub const PAUSE: Duration = Duration::from_millis(5);

/// How long a batch should hold the lock of the database, its flush included.
const HOLD: Duration = Duration::from_millis(15);
/// The fewest pets of a batch, and of the first one.
const LEAST: usize = 256;
/// The most pets of a batch, which bounds the memory.
const MOST: usize = 32 * 1024;
/// The most bytes of names in a batch, for the same reason.
pub const MOST_BYTES: usize = 4 * 1024 * 1024;

/// How many pets the next batch should have.
pub struct Size(usize);

impl Default for Size {
    fn default() -> Self {
        Self(LEAST)
    }
}

impl Size {
    pub fn get(&self) -> usize {
        self.0
    }

    /// A batch of so many held the lock for so long. The size grows step by step, as one flush tells little.
    pub fn learn(&mut self, count: usize, hold: Duration) {
        let fits = count as f64 * HOLD.as_secs_f64() / hold.as_secs_f64().max(1e-6);
        self.0 = (fits as usize).min(2 * count).clamp(LEAST, MOST);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batch_grows_until_it_has_the_lock_for_long_enough() {
        let mut size = Size::default();
        for _ in 0..20 {
            size.learn(size.get(), Duration::from_micros(4 * size.get() as u64));
        }
        assert_eq!(size.get(), 3750, "of 4 microseconds each");
        size.learn(3750, HOLD * 2);
        assert_eq!(size.get(), 1875);
        size.learn(1, Duration::ZERO);
        assert_eq!(size.get(), LEAST);
        size.learn(MOST, Duration::ZERO);
        assert_eq!(size.get(), MOST);
    }
}
