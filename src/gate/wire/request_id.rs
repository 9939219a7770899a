//! The identifier of a request, which stands in its response and in the log.

/// The longest identifier that is taken from a client.
const MAX_LENGTH: usize = 64;

/// 1 to 64 characters of `A-Z a-z 0-9 . _ -`, kept in place.
#[derive(Clone, Copy, PartialEq)]
pub struct RequestId {
    bytes: [u8; MAX_LENGTH],
    length: u8,
}

impl RequestId {
    /// The client's own, where it is usable.
    pub fn from_client(value: &[u8]) -> Option<Self> {
        let is_usable = (1..=MAX_LENGTH).contains(&value.len())
            && value.iter().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(b));
        is_usable.then(|| Self::new(value))
    }

    fn new(value: &[u8]) -> Self {
        let mut bytes = [0; MAX_LENGTH];
        bytes[..value.len()].copy_from_slice(value);
        Self { bytes, length: value.len() as u8 }
    }

    pub fn as_str(&self) -> &str {
        // Always ASCII; both ways to make one see to it.
        std::str::from_utf8(&self.bytes[..usize::from(self.length)]).unwrap_or("-")
    }
}

impl std::fmt::Debug for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Makes identifiers for requests that bring none: a random start and a count.
pub struct RequestIds {
    prefix: u32,
    count: u64,
}

impl Default for RequestIds {
    fn default() -> Self {
        Self::new()
    }
}

impl RequestIds {
    fn new() -> Self {
        // Without random bits two runs may share identifiers, which harms only a reader of logs.
        Self { prefix: getrandom::u32().unwrap_or(std::process::id()), count: 0 }
    }

    pub fn next(&mut self) -> RequestId {
        self.count += 1;
        let mut id = RequestId { bytes: [0; MAX_LENGTH], length: 0 };
        for half in [u64::from(self.prefix), self.count] {
            if id.length > 0 {
                id.push(b'-');
            }
            let digits = 8.max(16 - half.leading_zeros() / 4);
            for place in (0..digits).rev() {
                id.push(b"0123456789abcdef"[(half >> (4 * place)) as usize & 0xf]);
            }
        }
        id
    }
}

impl RequestId {
    fn push(&mut self, byte: u8) {
        self.bytes[usize::from(self.length)] = byte;
        self.length += 1;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usable_identifiers_are_taken() {
        for value in ["a", "A-z_0.9", &"x".repeat(64)] {
            assert_eq!(RequestId::from_client(value.as_bytes()).unwrap().as_str(), value);
        }
        for value in ["", "a b", "é", "a\"b", "a\tb", &"x".repeat(65)] {
            assert_eq!(RequestId::from_client(value.as_bytes()), None, "{value}");
        }
    }

    #[test]
    fn made_identifiers_differ_and_are_usable() {
        let mut ids = RequestIds { prefix: 0xabc, count: 0 };
        assert_eq!(ids.next().as_str(), "00000abc-00000001");
        assert_eq!(ids.next().as_str(), "00000abc-00000002");
        ids.count = u64::MAX - 1;
        let last = ids.next();
        assert_eq!(last.as_str(), "00000abc-ffffffffffffffff");
        assert_eq!(RequestId::from_client(last.as_str().as_bytes()), Some(last));
    }
}
