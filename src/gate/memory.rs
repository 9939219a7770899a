//! Gives memory back to the operating system after a crowd has gone.
//!
//! An allocator keeps what is freed for a while, and looks at what it keeps only when it is asked for more:
//! mimalloc once in ten thousand requests that its quick path cannot serve, and it lets go of what has been
//! free for a second. A thread that has nothing to do asks for nothing, and so keeps it all. Here it asks,
//! twice. With another allocator this is a millisecond of needless work after a crowd.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// Bytes held for clients from which on it is worth looking.
const CROWD_BYTES: usize = 8 * 1024 * 1024;
/// How often the allocator is asked, and for how many bytes: more than its quick path serves.
const REQUESTS: usize = 11_000;
const REQUEST_BYTES: usize = 2048;
/// After how long it is asked again: what it has found free by then has been free for long enough.
const AGAIN: Duration = Duration::from_millis(1200);

/// Where the watch on memory stands.
#[derive(Default)]
enum Watch {
    /// Not much has been held.
    #[default]
    Calm,
    /// Much is held.
    Crowd,
    /// It has gone; the allocator is to be asked again then.
    Gone(Instant),
}

/// The watch on what is held for clients.
#[derive(Default)]
pub struct Memory(Watch);

impl Memory {
    /// Whether [`Memory::look`] is to be called although nothing happens.
    pub fn is_watched(&self) -> bool {
        !matches!(self.0, Watch::Calm)
    }

    /// Looks at how much is held; called now and then.
    pub fn look(&mut self, held: usize, now: Instant) {
        match self.0 {
            _ if held >= CROWD_BYTES => self.0 = Watch::Crowd,
            Watch::Crowd => {
                ask();
                self.0 = Watch::Gone(now + AGAIN);
            }
            Watch::Gone(at) if now >= at => {
                ask();
                self.0 = Watch::Calm;
            }
            Watch::Calm | Watch::Gone(_) => {}
        }
    }
}

fn ask() {
    for _ in 0..REQUESTS {
        drop(black_box(Vec::<u8>::with_capacity(REQUEST_BYTES)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watch_lasts_until_the_crowd_has_been_gone_for_a_while() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        memory.look(CROWD_BYTES - 1, now);
        assert!(!memory.is_watched());
        memory.look(CROWD_BYTES, now);
        memory.look(0, now);
        assert!(memory.is_watched());
        memory.look(0, now + AGAIN / 2);
        assert!(memory.is_watched());
        memory.look(0, now + AGAIN);
        assert!(!memory.is_watched());
    }

    #[test]
    fn crowd_that_comes_back_is_watched_again() {
        let (mut memory, now) = (Memory::default(), Instant::now());
        memory.look(CROWD_BYTES, now);
        memory.look(0, now);
        memory.look(CROWD_BYTES, now);
        memory.look(0, now + AGAIN);
        assert!(memory.is_watched());
    }
}
