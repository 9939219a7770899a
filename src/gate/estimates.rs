//! Estimates how large a response will be, from earlier responses to the same target or path.

use std::hash::{BuildHasher, RandomState};
use std::ops::Range;

/// Entries for paths with large responses.
const LARGE_PLACES: usize = 256;
/// Entries for targets with small responses.
const SMALL_PLACES: usize = 4096;
/// A response is large from this many bytes on, unless others of its path are much larger.
const LARGE_BYTES: usize = 16 * 1024;
/// The number of responses over which an estimate is averaged.
const OVER: usize = 8;
/// The statuses to learn from. The size of a refusal tells nothing about the target.
pub const SUCCESSES: Range<u16> = 200..300;
/// How many collisions an entry survives for each request to its target, and the most that it can save up.
const KEPT: u8 = 8;
const MOST_KEPT: u8 = 64;

/// What earlier responses tell. The response to an unknown target is estimated to be small.
pub struct Estimates {
    /// Keyed, so that nobody can choose a path that shares the entry of another.
    hasher: RandomState,
    /// Paths with large responses.
    large: Box<[Large]>,
    /// Targets with small responses, so that a request for little does not wait with requests for much on the
    /// same path.
    small: Box<[Small]>,
}

/// A path, and the expected bytes.
#[derive(Clone, Copy, Default)]
struct Large {
    path: u64,
    bytes: usize,
}

/// A target, the expected bytes, and how many others that want its entry it outlasts.
#[derive(Clone, Copy, Default)]
struct Small {
    target: u64,
    bytes: u32,
    kept: u8,
}

/// The hashes of a request's method and target.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Asked {
    /// Of the whole target.
    target: u64,
    /// Of the path without the query.
    path: u64,
}

impl Estimates {
    pub fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            large: vec![Large::default(); LARGE_PLACES].into(),
            small: vec![Small::default(); SMALL_PLACES].into(),
        }
    }

    /// Hashes a method and a target, with a space between them.
    pub fn asked(&self, target: &[u8]) -> Asked {
        let hash = |bytes: &[u8]| self.hasher.hash_one(bytes);
        match target.iter().position(|byte| *byte == b'?') {
            None => {
                let path = hash(target);
                Asked { target: path, path }
            }
            Some(end) => Asked { target: hash(target), path: hash(&target[..end]) },
        }
    }

    /// The expected bytes of the response.
    pub fn expected(&self, asked: Asked) -> usize {
        let small = &self.small[asked.target as usize % SMALL_PLACES];
        if small.target == asked.target { small.bytes as usize } else { self.of_path(asked) }
    }

    fn of_path(&self, asked: Asked) -> usize {
        let large = &self.large[asked.path as usize % LARGE_PLACES];
        if large.path == asked.path { large.bytes } else { 0 }
    }

    /// Learns from a response with this status and size.
    pub fn learn(&mut self, asked: Asked, status: u16, bytes: usize) {
        if !SUCCESSES.contains(&status) {
            return;
        }
        let of_path = self.of_path(asked);
        let small = &mut self.small[asked.target as usize % SMALL_PLACES];
        if bytes < LARGE_BYTES.max(of_path / 2) {
            if small.target == asked.target {
                small.kept = MOST_KEPT.min(small.kept + KEPT);
            } else if small.kept > 0 {
                // A client that asks for ever new targets must not evict targets that are requested
                // repeatedly.
                small.kept -= 1;
            } else {
                small.target = asked.target;
            }
            if small.target == asked.target {
                small.bytes = u32::try_from(bytes).unwrap_or(u32::MAX);
            }
        } else if small.target == asked.target {
            *small = Small::default();
        }
        if bytes >= LARGE_BYTES || of_path > 0 {
            // A larger size counts at once, a smaller one gradually.
            let bytes = bytes.max((of_path * (OVER - 1) + bytes) / OVER);
            self.large[asked.path as usize % LARGE_PLACES] = Large { path: asked.path, bytes };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_told_apart_and_share_their_path() {
        let estimates = Estimates::new();
        let [plain, one, two, other] =
            ["GET /a", "GET /a?1", "GET /a?2", "GET /b"].map(|line| estimates.asked(line.as_bytes()));
        assert!(plain.path == one.path && one.path == two.path && plain.path != other.path);
        assert!(plain.target != one.target && one.target != two.target);
        assert_eq!(estimates.asked(b"GET /a"), plain);
    }

    #[test]
    fn large_responses_are_believed_at_once_and_forgotten_bit_by_bit() {
        let mut estimates = Estimates::new();
        let asked = estimates.asked(b"GET /a");
        assert_eq!(estimates.expected(asked), 0);
        estimates.learn(asked, 200, 80_000);
        assert_eq!(estimates.expected(asked), 80_000);
        estimates.learn(asked, 200, 40_000);
        assert_eq!(estimates.expected(asked), 75_000);
        (0..100).for_each(|_| estimates.learn(asked, 200, 20_000));
        assert!((20_000..21_000).contains(&estimates.expected(asked)));
        let other = estimates.asked(b"GET /a?other");
        (0..100).for_each(|_| estimates.learn(asked, 200, 100));
        assert!(estimates.expected(other) < 1000, "the path is no longer one of large responses");
    }

    #[test]
    fn who_asks_for_little_is_known_among_those_who_ask_for_much() {
        let mut estimates = Estimates::new();
        let [much, little, new] =
            ["GET /a?100", "GET /a?1", "GET /a?new"].map(|line| estimates.asked(line.as_bytes()));
        estimates.learn(much, 200, 1_000_000);
        estimates.learn(little, 200, 100);
        assert_eq!(estimates.expected(little), 100);
        assert!(estimates.expected(much) > 500_000 && estimates.expected(new) > 500_000);
        estimates.learn(little, 200, 1_000_000);
        assert_eq!(estimates.expected(little), 1_000_000, "not any more");
    }

    #[test]
    fn refusals_and_other_methods_say_nothing() {
        let mut estimates = Estimates::new();
        let [page, options] = ["GET /a?100", "OPTIONS /a?100"].map(|line| estimates.asked(line.as_bytes()));
        for bytes in [1_000_000, 100] {
            estimates.learn(page, 401, bytes);
            assert_eq!(estimates.expected(page), 0);
        }
        estimates.learn(page, 200, 1_000_000);
        (0..100).for_each(|_| estimates.learn(page, 304, 100));
        (0..100).for_each(|_| estimates.learn(options, 204, 100));
        assert_eq!((estimates.expected(page), estimates.expected(options)), (1_000_000, 100));
    }

    #[test]
    fn other_paths_leave_what_is_known_alone() {
        let mut estimates = Estimates::new();
        let asked = |estimates: &Estimates, n: u32| estimates.asked(format!("GET /{n}").as_bytes());
        let page = asked(&estimates, 0);
        estimates.learn(page, 200, 1_000_000);
        for n in 1..10_000 {
            let other = asked(&estimates, n);
            assert_eq!(estimates.expected(other), 0, "not taken for another, {n}");
            estimates.learn(other, 200, 100);
        }
        assert_eq!(estimates.expected(page), 1_000_000);
    }

    #[test]
    fn target_that_is_asked_for_again_and_again_outlasts_ever_new_ones() {
        let mut estimates = Estimates::new();
        let often = estimates.asked(b"GET /a");
        let new =
            |n: usize| Asked { target: often.target.wrapping_add(n as u64 * SMALL_PLACES as u64), ..often };
        estimates.learn(often, 200, 100);
        for n in 1..1000 {
            estimates.learn(often, 200, 100);
            (0..usize::from(KEPT)).for_each(|i| estimates.learn(new(n * 100 + i), 200, 5));
            assert_eq!(estimates.expected(often), 100);
        }
        let last = new(1);
        (0..=MOST_KEPT).for_each(|_| estimates.learn(last, 200, 5));
        assert_eq!((estimates.expected(last), estimates.expected(often)), (5, 0), "not for ever");
    }

    #[test]
    fn response_is_small_below_16_kib_or_half_of_the_largest_of_its_path() {
        const KIB: usize = 1024;
        for (largest, bytes, is_small) in [
            (20 * KIB, 16 * KIB - 1, true),
            (20 * KIB, 16 * KIB, false),
            (80 * KIB, 40 * KIB - 1, true),
            (80 * KIB, 40 * KIB, false),
        ] {
            let mut estimates = Estimates::new();
            let [other, target] = ["/a", "/a?1"].map(|t| estimates.asked(format!("GET {t}").as_bytes()));
            estimates.learn(other, 200, largest);
            estimates.learn(target, 200, bytes);
            assert_eq!(estimates.expected(target) == bytes, is_small, "{bytes} of {largest}");
        }
    }

    #[test]
    fn what_is_large_makes_nobody_else_forgotten() {
        let mut estimates = Estimates::new();
        let little = estimates.asked(b"GET /a?0");
        estimates.learn(little, 200, 100);
        for i in 1..10_000 {
            estimates.learn(estimates.asked(format!("GET /a?{i}").as_bytes()), 200, 1_000_000);
        }
        assert_eq!(estimates.expected(little), 100);
    }
}
