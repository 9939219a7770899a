//! Returns memory to the operating system after a crowd of clients has gone.
//!
//! An allocator keeps freed memory for a while, and reviews it only when it is asked for more: mimalloc once
//! in ten thousand requests that its fast path cannot serve, and then it returns what has been free for a
//! second. An idle thread asks for nothing, so it would keep everything. Here it asks, twice. With another
//! allocator this is a millisecond of needless work after a crowd.
//!
//! mimalloc's own options (`MIMALLOC_PURGE_DELAY`, `mi_collect`) are no substitute: they are read from the environment
//! at the start, or set by functions that are `unsafe` to call.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// The bytes held for clients from which on the effort is worthwhile.
const CROWD_BYTES: usize = 8 * 1024 * 1024;
/// How often to ask the allocator, and for how many bytes: more than its fast path serves.
const REQUESTS: usize = 11_000;
const REQUEST_BYTES: usize = 2048;
/// When to ask again: what was free the first time has then been free long enough.
const AGAIN: Duration = Duration::from_millis(1200);

/// How often to ask after a crowd.
const TIMES: u32 = 2;

/// Watches how much is held for clients.
#[derive(Default)]
pub struct Memory {
    /// How often the allocator is still to be asked, so that [`Memory::look`] must be called even if nothing happens.
    pub left: u32,
    /// When it was last asked.
    asked: Option<Instant>,
}

impl Memory {
    /// Notes how much is held. Call it now and then.
    pub fn look(&mut self, held: usize, now: Instant) {
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
        memory.look(CROWD_BYTES - 1, now);
        assert!(memory.left == 0);
        memory.look(CROWD_BYTES, now);
        memory.look(0, now);
        assert!(memory.left > 0);
        memory.look(0, now + AGAIN / 2);
        assert!(memory.left > 0);
        memory.look(0, now + AGAIN);
        assert!(memory.left == 0);
    }

    #[test]
    fn crowd_that_comes_back_is_watched_again() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        memory.look(CROWD_BYTES, now);
        memory.look(0, now);
        memory.look(CROWD_BYTES, now);
        memory.look(0, now + AGAIN);
        assert!(memory.left > 0);
    }
}
