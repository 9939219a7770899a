//! The request target: its path and its query parameters (RFC 3986, RFC 9112 section 3.2).

use std::borrow::Cow;

use crate::http::{ApiError, Code};

/// Splits a target at its first question mark.
pub fn split(target: &str) -> (&str, Option<&str>) {
    match target.split_once('?') {
        Some((path, query)) => (path, Some(query)),
        None => (target, None),
    }
}

/// Puts the characters in place of percent-encoded unreserved ones, which mean the same
/// (RFC 3986, section 6.2.2.2). Whatever else is encoded stays so: `%2F` is no slash.
pub fn normalize_path(path: &str) -> Cow<'_, str> {
    if !path.contains('%') {
        return Cow::Borrowed(path);
    }
    let mut normal = String::with_capacity(path.len());
    let mut rest = path;
    while let Some(at) = rest.find('%') {
        normal.push_str(&rest[..at]);
        let unreserved = rest.as_bytes().get(at + 1..at + 3).and_then(unreserved);
        match unreserved {
            Some(character) => {
                normal.push(character);
                rest = &rest[at + 3..];
            }
            None => {
                normal.push('%');
                rest = &rest[at + 1..];
            }
        }
    }
    normal.push_str(rest);
    Cow::Owned(normal)
}

/// The unreserved character (RFC 3986, section 2.3) that two hexadecimal digits stand for.
fn unreserved(digits: &[u8]) -> Option<char> {
    let high = char::from(digits[0]).to_digit(16)?;
    let low = char::from(digits[1]).to_digit(16)?;
    let character = char::from_u32(high * 16 + low)?;
    let is_unreserved = character.is_ascii_alphanumeric() || "-._~".contains(character);
    is_unreserved.then_some(character)
}

/// The decoded value of a query parameter; `None` where it is absent.
///
/// # Errors
/// Where it is given more than once.
pub fn parameter<'a>(query: Option<&'a str>, name: &str) -> Result<Option<Cow<'a, str>>, ApiError> {
    let Some(query) = query else { return Ok(None) };
    let mut values =
        form_urlencoded::parse(query.as_bytes()).filter(|(n, _)| n == name).map(|(_, value)| value);
    let value = values.next();
    if values.next().is_some() {
        let message = format!("The query parameter '{name}' is given more than once.");
        return Err(ApiError::with_message(Code::DuplicateParameter, message));
    }
    Ok(value)
}

/// Reads decimal digits, with a minus sign before them or not, as an int64.
pub fn int64(text: &str) -> Option<i64> {
    let digits = text.strip_prefix('-').unwrap_or(text);
    // The standard library also takes a plus sign.
    (digits.bytes().all(|b| b.is_ascii_digit())).then(|| text.parse().ok()).flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unreserved_characters_are_decoded_and_no_others() {
        assert_eq!(normalize_path("/v1/pets"), "/v1/pets");
        assert_eq!(normalize_path("/%761/p%65ts/%31%7e"), "/v1/pets/1~");
        assert_eq!(normalize_path("/v1%2Fpets%20%zz%4"), "/v1%2Fpets%20%zz%4");
        assert_eq!(normalize_path("/%25%37%30"), "/%2570", "decoded once");
    }

    #[test]
    fn parameters_are_decoded() {
        let query = Some("x&limit=%31%30&st%61tus=a+b&empty=&&=");
        assert_eq!(parameter(query, "limit").unwrap().unwrap(), "10");
        assert_eq!(parameter(query, "status").unwrap().unwrap(), "a b");
        assert_eq!(parameter(query, "x").unwrap().unwrap(), "");
        assert_eq!(parameter(query, "empty").unwrap().unwrap(), "");
        assert_eq!(parameter(query, "after").unwrap(), None);
        assert_eq!(parameter(None, "after").unwrap(), None);
    }

    #[test]
    fn parameter_given_twice_is_refused() {
        assert_eq!(parameter(Some("a=1&%61=1"), "a").unwrap_err().code(), Code::DuplicateParameter);
    }

    #[test]
    fn int64_takes_plain_digits_only() {
        assert_eq!(int64("9223372036854775807"), Some(i64::MAX));
        assert_eq!(int64("-9223372036854775808"), Some(i64::MIN));
        assert_eq!(int64("007"), Some(7));
        for text in ["", "-", "+1", "--1", "1.0", "1e3", " 1", "0x1", "9223372036854775808", "١"] {
            assert_eq!(int64(text), None, "{text}");
        }
    }
}
