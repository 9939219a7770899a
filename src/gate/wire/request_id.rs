//! The identifier of a request, for its response and the log, and its place in a distributed trace.

/// The longest identifier that is accepted from a client.
const MAX_LENGTH: usize = 128;

/// 1 to 128 visible ASCII characters other than quote and backslash, kept in place.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestId {
    bytes: [u8; MAX_LENGTH],
    length: u8,
}

impl RequestId {
    /// The client's identifier, if it is usable.
    pub fn from_client(value: &[u8]) -> Option<Self> {
        let is_usable = (1..=MAX_LENGTH).contains(&value.len())
            && value
                .iter()
                .all(|b| b.is_ascii_graphic() && !b"\"\\".contains(b));
        is_usable.then(|| Self::new(value))
    }

    fn new(value: &[u8]) -> Self {
        let mut bytes = [0; MAX_LENGTH];
        bytes[..value.len()].copy_from_slice(value);
        Self {
            bytes,
            length: value.len() as u8,
        }
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.length)]
    }

    pub fn as_str(&self) -> &str {
        // Always ASCII; both constructors see to it.
        std::str::from_utf8(self.as_bytes()).unwrap_or("-")
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

/// The length of `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`.
const TRACE_LENGTH: usize = 55;

/// The value of a `traceparent`, without the parts of versions after 00; `None` if it is malformed.
pub fn trace_parent(value: &[u8]) -> Option<&str> {
    let (known, rest) = value.split_at_checked(TRACE_LENGTH)?;
    let mut parts = known.split(|byte| *byte == b'-');
    let is_hex = |part: &[u8]| {
        part.iter()
            .all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
    };
    let mut part = |length| {
        parts
            .next()
            .filter(|part: &&[u8]| part.len() == length && is_hex(part))
    };
    let (version, trace, parent, _flags) = (part(2)?, part(32)?, part(16)?, part(2)?);
    let is_zero = |part: &[u8]| part.iter().all(|byte| *byte == b'0');
    // A later version may add parts after another dash.
    let ends = rest.is_empty() || version != b"00" && rest.starts_with(b"-");
    let is_valid = version != b"ff" && !is_zero(trace) && !is_zero(parent) && ends;
    str::from_utf8(known).ok().filter(|_| is_valid)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usable_identifiers_are_kept() {
        let [amazon, haproxy] = [
            "Root=1-67891233-abcdef012345678912345678",
            "7F000001:E2C4_7F000001:1F90_67@~!/(x)",
        ];
        for value in ["a", "A-z_0.9", amazon, haproxy, &"x".repeat(128)] {
            assert_eq!(
                RequestId::from_client(value.as_bytes()).unwrap().as_str(),
                value
            );
        }
        for value in [
            "",
            "a b",
            "é",
            "a\"b",
            "a\\b",
            "a\tb",
            "a\x7f",
            &"x".repeat(129),
        ] {
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

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn well_formed_value_is_kept() {
        assert_eq!(trace_parent(GOOD.as_bytes()), Some(GOOD));
        let later = GOOD.replacen("00", "cc", 1);
        assert_eq!(
            trace_parent(format!("{later}-what-comes").as_bytes()),
            Some(&*later)
        );
        assert_eq!(trace_parent(later.as_bytes()), Some(&*later));
    }

    #[test]
    fn malformed_value_is_none() {
        for value in [
            "",
            &GOOD[..54],
            &GOOD.to_uppercase(),
            &format!("{GOOD}-x"),
            &GOOD.replacen("00", "ff", 1),
            &format!("{}x", GOOD.replacen("00", "cc", 1)),
            &GOOD.replace("4bf92f3577b34da6a3ce929d0e0e4736", &"0".repeat(32)),
            &GOOD.replace("00f067aa0ba902b7", &"0".repeat(16)),
            &GOOD.replace("-00f0", "000f0"),
            &GOOD.replace("4bf9", "4bg9"),
            &"é".repeat(28),
        ] {
            assert_eq!(trace_parent(value.as_bytes()), None, "{value}");
        }
    }
}
