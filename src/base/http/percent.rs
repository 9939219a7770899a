//! Percent-encoding (RFC 3986, section 2.1).

use std::borrow::Cow;

/// Decodes every percent-encoded octet. A percent sign without two hexadecimal digits after it stays.
pub fn decode(text: &str) -> Cow<'_, [u8]> {
    let bytes = text.as_bytes();
    let Some(first) = bytes.iter().position(|byte| *byte == b'%') else { return Cow::Borrowed(bytes) };
    let mut decoded = bytes[..first].to_vec();
    let mut rest = &bytes[first..];
    while let [byte, after @ ..] = rest {
        let octet = if *byte == b'%' { octet(after) } else { None };
        decoded.push(octet.unwrap_or(*byte));
        rest = if octet.is_some() { &after[2..] } else { after };
    }
    Cow::Owned(decoded)
}

/// The octet that the first two bytes stand for, if they are hexadecimal digits.
pub fn octet(digits: &[u8]) -> Option<u8> {
    let [high, low, ..] = digits else { return None };
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(*high)? * 16 + digit(*low)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn octets_are_decoded_once() {
        for (text, decoded) in [
            ("", &b""[..]),
            ("a+b", b"a+b"),
            ("%41%7e%C3%a4", "A~ä".as_bytes()),
            ("%2541%00%fF", b"%41\0\xff"),
            ("%zz%4", b"%zz%4"),
            ("%%41%", b"%A%"),
        ] {
            assert_eq!(*decode(text), *decoded, "{text}");
        }
    }
}
