//! Returns memory to the operating system after a crowd of clients has gone.
//!
//! mimalloc returns memory that has been free for a second, but checks for it only once in ten thousand allocations that
//! its fast path cannot serve. An idle thread allocates nothing, so it would keep everything. Here it allocates, twice.
//! With another allocator this is a millisecond of needless work after a crowd.
//!
//! mimalloc's own options (`MIMALLOC_PURGE_DELAY`, `mi_collect`) are no substitute: they are read from the environment
//! at the start, or set by functions that are `unsafe` to call.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// The bytes held for clients that make a crowd.
const CROWD_BYTES: usize = 8 * 1024 * 1024;
/// The number of allocations, and their size, which is more than the fast path serves.
const REQUESTS: usize = 11_000;
const REQUEST_BYTES: usize = 2048;
/// The time after which memory that was free at the first check is returned.
const AGAIN: Duration = Duration::from_millis(1200);

/// The number of checks after a crowd.
const TIMES: u32 = 2;

/// Watches how much is held for clients.
#[derive(Default)]
pub struct Memory {
    /// The number of checks left. While there are any, [`Memory::note`] must be called even without events.
    pub left: u32,
    /// The time of the last check.
    asked: Option<Instant>,
}

impl Memory {
    /// Notes the bytes held now, and makes a check that is due.
    pub fn note(&mut self, held: usize, now: Instant) {
        if held >= CROWD_BYTES {
            *self = Self { left: TIMES, asked: None };
        } else if self.left > 0 && self.asked.is_none_or(|at| now >= at + AGAIN) {
            *self = Self { left: self.left - 1, asked: Some(now) };
            (0..REQUESTS).for_each(|_| drop(black_box(Vec::<u8>::with_capacity(REQUEST_BYTES))));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watch_lasts_until_the_crowd_has_been_gone_for_a_while() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        memory.note(CROWD_BYTES - 1, now);
        assert!(memory.left == 0);
        memory.note(CROWD_BYTES, now);
        memory.note(0, now);
        assert!(memory.left > 0);
        memory.note(0, now + AGAIN / 2);
        assert!(memory.left > 0);
        memory.note(0, now + AGAIN);
        assert!(memory.left == 0);
    }

    #[test]
    fn crowd_that_comes_back_is_watched_again() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        memory.note(CROWD_BYTES, now);
        memory.note(0, now);
        memory.note(CROWD_BYTES, now);
        memory.note(0, now + AGAIN);
        assert!(memory.left > 0);
    }
}
