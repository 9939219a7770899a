//! The place of a request in a distributed trace (W3C Trace Context, section 3.2).

/// The length of `00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01`.
const LENGTH: usize = 55;

/// The value of a `traceparent`, as far as version 00 defines it; `None` if it is malformed.
pub fn trace_parent(value: &[u8]) -> Option<&str> {
    let (known, rest) = value.split_at_checked(LENGTH)?;
    let mut parts = known.split(|byte| *byte == b'-');
    let is_hex = |part: &[u8]| part.iter().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let mut part = |length| parts.next().filter(|part: &&[u8]| part.len() == length && is_hex(part));
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

    const GOOD: &str = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";

    #[test]
    fn well_formed_value_is_kept() {
        assert_eq!(trace_parent(GOOD.as_bytes()), Some(GOOD));
        let later = GOOD.replacen("00", "cc", 1);
        assert_eq!(trace_parent(format!("{later}-what-comes").as_bytes()), Some(&*later));
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
