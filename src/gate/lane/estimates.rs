//! How large a response will be, as far as earlier ones tell: by the target that is asked for, or by its path.
//! That is all that the gate knows of meaning.

use std::hash::{BuildHasher, RandomState};

/// Places for paths; two that share one are mistaken for each other, which only costs a good order.
const PLACES: usize = 256;
/// Places for targets whose responses are small.
const SMALL_PLACES: usize = 1024;
/// A response is small below so many bytes, or where others of its path are much larger.
const SMALL_BYTES: usize = 16 * 1024;
/// Over how many responses an estimate is made.
const OVER: usize = 8;

/// What earlier responses tell.
pub struct Estimates {
    /// Keyed, so that nobody can choose a path that shares the place of another.
    hasher: RandomState,
    /// Bytes of the responses to the paths.
    by_path: Box<[usize; PLACES]>,
    /// Targets whose responses are small, and their bytes: whoever asks for little does not wait with those who
    /// ask for much of the same path.
    small: Box<[(u64, usize); SMALL_PLACES]>,
}

/// What a request asks for, as numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Asked {
    /// Stands for the whole target.
    pub target: u64,
    /// Stands for the path without the query.
    path: u64,
}

impl Estimates {
    pub fn new() -> Self {
        Self {
            hasher: RandomState::new(),
            by_path: Box::new([0; PLACES]),
            small: Box::new([(0, 0); SMALL_PLACES]),
        }
    }

    /// What a request asks for; `request` begins with the request line.
    pub fn asked(&self, request: &[u8]) -> Asked {
        let target = request.split(|byte| *byte == b' ').nth(1).unwrap_or_default();
        let hash = |bytes: &[u8]| self.hasher.hash_one(bytes);
        match target.iter().position(|byte| *byte == b'?') {
            None => {
                let path = hash(target);
                Asked { target: path, path }
            }
            Some(end) => Asked { target: hash(target), path: hash(&target[..end]) },
        }
    }

    /// Bytes of the response that is to be expected.
    pub fn expected(&self, asked: Asked) -> usize {
        let (target, bytes) = self.small[asked.target as usize % SMALL_PLACES];
        if target == asked.target { bytes } else { self.by_path[asked.path as usize % PLACES] }
    }

    /// A response had so many bytes.
    pub fn learn(&mut self, asked: Asked, bytes: usize) {
        let of_path = &mut self.by_path[asked.path as usize % PLACES];
        let small = &mut self.small[asked.target as usize % SMALL_PLACES];
        if bytes < SMALL_BYTES.max(*of_path / 2) {
            *small = (asked.target, bytes);
        } else if small.0 == asked.target {
            *small = (0, 0);
        }
        // What is larger is believed at once, what is smaller bit by bit.
        *of_path = bytes.max((*of_path * (OVER - 1) + bytes) / OVER);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_told_apart_and_share_their_path() {
        let estimates = Estimates::new();
        let [plain, one, two, other] =
            ["GET /a HTTP/1.1\r\n", "GET /a?1 HTTP/1.1\r\n", "GET /a?2 HTTP/1.1\r\n", "GET /b HTTP/1.1\r\n"]
                .map(|line| estimates.asked(line.as_bytes()));
        assert!(plain.path == one.path && one.path == two.path && plain.path != other.path);
        assert!(plain.target != one.target && one.target != two.target);
        assert_eq!(estimates.asked(b"GET /a HTTP/1.1\r\n"), plain);
    }

    #[test]
    fn large_responses_are_believed_at_once_and_forgotten_bit_by_bit() {
        let mut estimates = Estimates::new();
        let asked = estimates.asked(b"GET /a HTTP/1.1\r\n");
        assert_eq!(estimates.expected(asked), 0);
        estimates.learn(asked, 80_000);
        assert_eq!(estimates.expected(asked), 80_000);
        estimates.learn(asked, 40_000);
        assert_eq!(estimates.expected(asked), 75_000);
        (0..100).for_each(|_| estimates.learn(asked, 20_000));
        assert!((20_000..21_000).contains(&estimates.expected(asked)));
    }

    #[test]
    fn who_asks_for_little_is_known_among_those_who_ask_for_much() {
        let mut estimates = Estimates::new();
        let [much, little, new] =
            ["GET /a?100 HTTP/1.1\r\n", "GET /a?1 HTTP/1.1\r\n", "GET /a?new HTTP/1.1\r\n"]
                .map(|line| estimates.asked(line.as_bytes()));
        estimates.learn(much, 1_000_000);
        estimates.learn(little, 100);
        assert_eq!(estimates.expected(little), 100);
        assert!(estimates.expected(much) > 500_000 && estimates.expected(new) > 500_000);
        estimates.learn(little, 1_000_000);
        assert_eq!(estimates.expected(little), 1_000_000, "not any more");
    }
}
