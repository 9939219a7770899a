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

/// Makes identifiers for requests without one: a random number, and those that follow it.
pub struct RequestIds(pub u64);

impl Default for RequestIds {
    fn default() -> Self {
        // Without random bits two runs may share identifiers, which harms only a reader of logs.
        Self(getrandom::u64().unwrap_or(std::process::id().into()))
    }
}

impl RequestIds {
    pub fn next(&mut self) -> RequestId {
        self.0 = self.0.wrapping_add(1);
        let digit = |place| b"0123456789abcdef"[(self.0 >> (60 - 4 * place)) as usize & 0xf];
        RequestId::new(&std::array::from_fn::<u8, 16, _>(digit))
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
        let mut ids = RequestIds(0xabc);
        assert_eq!(ids.next().as_str(), "0000000000000abd");
        assert_eq!(ids.next().as_str(), "0000000000000abe");
        ids.0 = u64::MAX - 1;
        let last = ids.next();
        assert_eq!(last.as_str(), "ffffffffffffffff");
        assert_eq!(ids.next().as_str(), "0000000000000000");
        assert_eq!(RequestId::from_client(last.as_str().as_bytes()), Some(last));
    }
}
