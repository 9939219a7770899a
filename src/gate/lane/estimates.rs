//! How large a response will be, as far as earlier ones tell: by the path that is asked for, as that is all
//! that the gate knows of meaning.

use std::hash::{BuildHasher, RandomState};

/// Places for paths; two that share one are mistaken for each other, which only costs a good order.
const PLACES: usize = 256;
/// Over how many responses an estimate is made.
const OVER: usize = 8;

/// What earlier responses tell.
pub struct Estimates {
    /// Keyed, so that nobody can choose a path that shares the place of another.
    hasher: RandomState,
    /// Bytes of the responses to the paths.
    by_path: Box<[usize; PLACES]>,
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
        Self { hasher: RandomState::new(), by_path: Box::new([0; PLACES]) }
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

    fn place(&mut self, asked: Asked) -> &mut usize {
        &mut self.by_path[asked.path as usize % PLACES]
    }

    /// Bytes of the response that is to be expected.
    pub fn expected(&mut self, asked: Asked) -> usize {
        *self.place(asked)
    }

    /// A response had so many bytes.
    pub fn learn(&mut self, asked: Asked, bytes: usize) {
        let estimate = self.place(asked);
        // What is larger is believed at once, what is smaller bit by bit.
        *estimate = bytes.max((*estimate * (OVER - 1) + bytes) / OVER);
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
        estimates.learn(asked, 8000);
        assert_eq!(estimates.expected(asked), 8000);
        estimates.learn(asked, 0);
        assert_eq!(estimates.expected(asked), 7000);
        (0..100).for_each(|_| estimates.learn(asked, 80));
        assert!(estimates.expected(asked) < 100);
    }
}
