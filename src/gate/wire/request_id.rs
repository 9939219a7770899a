//! The identifier of a request, for its response and the log.

/// The longest identifier that is accepted from a client.
const MAX_LENGTH: usize = 64;

/// 1 to 64 characters of `A-Z a-z 0-9 . _ -`, kept in place.
#[derive(Clone, Copy, PartialEq)]
pub struct RequestId {
    bytes: [u8; MAX_LENGTH],
    length: u8,
}

impl RequestId {
    /// The client's identifier, if it is usable.
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

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    pub fn as_str(&self) -> &str {
        // Always ASCII; both constructors see to it.
        std::str::from_utf8(self.as_bytes()).unwrap_or("-")
    }
}

impl std::fmt::Debug for RequestId {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Makes identifiers for requests without one: a random start and a counter.
pub struct RequestIds {
    /// The start, and the hyphen after it.
    start: RequestId,
    count: u64,
}

impl Default for RequestIds {
    fn default() -> Self {
        // Without random bits two runs may share identifiers, which harms only a reader of logs.
        Self::new(getrandom::u32().unwrap_or(std::process::id()))
    }
}

impl RequestIds {
    pub fn new(start: u32) -> Self {
        let mut id = RequestId::new(b"");
        id.push_hex(u64::from(start));
        id.push(b'-');
        Self { start: id, count: 0 }
    }

    pub fn next(&mut self) -> RequestId {
        self.count += 1;
        let mut id = self.start;
        id.push_hex(self.count);
        id
    }
}

impl RequestId {
    fn push(&mut self, byte: u8) {
        self.bytes[usize::from(self.length)] = byte;
        self.length += 1;
    }

    /// Adds at least eight digits.
    fn push_hex(&mut self, number: u64) {
        let digits = 8.max(16 - number.leading_zeros() / 4);
        for place in (0..digits).rev() {
            self.push(b"0123456789abcdef"[(number >> (4 * place)) as usize & 0xf]);
        }
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
        let mut ids = RequestIds::new(0xabc);
        assert_eq!(ids.next().as_str(), "00000abc-00000001");
        assert_eq!(ids.next().as_str(), "00000abc-00000002");
        ids.count = u64::MAX - 1;
        let last = ids.next();
        assert_eq!(last.as_str(), "00000abc-ffffffffffffffff");
        assert_eq!(RequestId::from_client(last.as_str().as_bytes()), Some(last));
    }
}
