//! Percent-encoding (RFC 3986, section 2.1).

use std::borrow::Cow;

/// Decodes every percent-encoded octet. A percent sign without two hexadecimal digits after it stays.
pub fn decode(text: &str) -> Cow<'_, [u8]> {
    decode_if(text, |_| true)
}

/// [`decode`] for the octets that are to be decoded. The others stay as they are.
pub fn decode_if(text: &str, is_decoded: impl Fn(u8) -> bool) -> Cow<'_, [u8]> {
    let bytes = text.as_bytes();
    let Some(first) = bytes.iter().position(|byte| *byte == b'%') else {
        return Cow::Borrowed(bytes);
    };
    let mut decoded = bytes[..first].to_vec();
    let mut rest = &bytes[first..];
    while let [byte, after @ ..] = rest {
        let octet = if *byte == b'%' { octet(after) } else { None }.filter(|it| is_decoded(*it));
        decoded.push(octet.unwrap_or(*byte));
        rest = if octet.is_some() { &after[2..] } else { after };
    }
    Cow::Owned(decoded)
}

/// Whether an octet is an unreserved character (RFC 3986, section 2.3).
pub fn is_unreserved(octet: u8) -> bool {
    octet.is_ascii_alphanumeric() || b"-._~".contains(&octet)
}

/// Encodes every octet that is not unreserved.
pub fn encode(text: impl AsRef<[u8]>) -> String {
    let text = text.as_ref();
    let mut encoded = String::with_capacity(text.len());
    for &byte in text {
        if is_unreserved(byte) {
            encoded.push(char::from(byte));
        } else {
            encoded += &format!("%{byte:02X}");
        }
    }
    encoded
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

    #[test]
    fn whatever_is_encoded_is_decoded_to_itself() {
        assert_eq!(encode("a-._~9"), "a-._~9");
        assert_eq!(encode("ä>\"% +&"), "%C3%A4%3E%22%25%20%2B%26");
        let all: String = (0..0x300).filter_map(char::from_u32).collect();
        assert_eq!(*decode(&encode(&all)), *all.as_bytes());
    }
}
