//! Taking turns with a running service, so that its creates do not wait long while many animals are written.

use std::time::Duration;

/// How long a batch is to have the lock of the database, its flush included.
const HOLD: Duration = Duration::from_millis(15);
/// How many animals a batch has at least, the first one too.
const LEAST: usize = 256;
/// How many it has at most, which bounds the memory.
const MOST: usize = 32 * 1024;
/// How many bytes of names it has at most, for the same reason.
pub const MOST_BYTES: usize = 4 * 1024 * 1024;

/// How long SQLite sleeps, in milliseconds, before it asks again for a lock; the last of these again and again
/// (`sqliteDefaultBusyCallback` in SQLite's `main.c`).
const SLEEPS: [u64; 12] = [1, 2, 5, 10, 15, 20, 25, 25, 25, 50, 50, 100];

/// How many animals the next batch is to have.
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

    /// A batch of so many had the lock for so long. It grows step by step, as one flush tells little.
    pub fn learn(&mut self, count: usize, hold: Duration) {
        let fits = count as f64 * HOLD.as_secs_f64() / hold.as_secs_f64().max(1e-6);
        self.0 = (fits as usize).min(2 * count).clamp(LEAST, MOST);
    }
}

/// How long to leave the lock to others who have waited for `hold` at most: until the last of them has asked
/// for it again, and a little more, as sleeps are never exact.
pub fn pause(hold: Duration) -> Duration {
    let mut asked = Duration::ZERO;
    for sleep in SLEEPS.map(Duration::from_millis) {
        if asked + sleep > hold {
            return sleep + SLACK;
        }
        asked += sleep;
    }
    Duration::from_millis(SLEEPS[SLEEPS.len() - 1]) + SLACK
}

const SLACK: Duration = Duration::from_millis(4);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_waits_asks_again_within_the_pause() {
        for hold in 0..400 {
            let pause = pause(Duration::from_millis(hold));
            for began in 0..hold {
                // Began to wait so many milliseconds after the batch did.
                let mut asks =
                    (0..).map(|i| SLEEPS[usize::min(i, SLEEPS.len() - 1)]).scan(began, |at, sleep| {
                        *at += sleep;
                        Some(*at)
                    });
                let asked = asks.find(|at| *at > hold).unwrap();
                assert!(Duration::from_millis(asked - hold) <= pause, "{began} {hold}: {asked}");
            }
        }
    }

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
