//! The request target: its path and its query (RFC 3986; RFC 9112, section 3.2).

use std::borrow::Cow;

use crate::http::percent;

/// A parsed request target.
#[derive(Debug)]
pub struct Target<'a> {
    /// The path, with percent-encoded unreserved characters decoded; `*` for the server as a whole.
    pub path: Cow<'a, str>,
    /// Everything after the question mark, as sent.
    pub query: Option<&'a str>,
}

impl<'a> Target<'a> {
    /// Splits a target in origin form at its first question mark.
    pub fn parse(target: &'a str) -> Self {
        let mut is_encoded = false;
        let end = target.bytes().position(|byte| {
            is_encoded |= byte == b'%';
            byte == b'?'
        });
        let (path, query) = match end {
            Some(end) => (&target[..end], Some(&target[end + 1..])),
            None => (target, None),
        };
        Self { path: if is_encoded { normalize(path) } else { path.into() }, query }
    }
}

/// Decodes percent-encoded unreserved characters, which is equivalent (RFC 3986, section 6.2.2.2). Everything
/// else stays encoded: `%2F` is not a slash.
fn normalize(path: &str) -> Cow<'_, str> {
    let mut normal = String::with_capacity(path.len());
    let mut rest = path;
    while let Some((before, after)) = rest.split_once('%') {
        normal.push_str(before);
        match after.as_bytes().get(..2).and_then(unreserved) {
            Some(character) => {
                normal.push(character);
                rest = &after[2..];
            }
            None => {
                normal.push('%');
                rest = after;
            }
        }
    }
    normal.push_str(rest);
    Cow::Owned(normal)
}

/// The unreserved character (RFC 3986, section 2.3) with this code, in two hexadecimal digits.
fn unreserved(digits: &[u8]) -> Option<char> {
    let character = char::from(percent::octet(digits)?);
    let is_unreserved = character.is_ascii_alphanumeric() || "-._~".contains(character);
    is_unreserved.then_some(character)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn path_and_query_part_at_the_first_question_mark() {
        let target = Target::parse("/a?b=c?d");
        assert_eq!((target.path.as_ref(), target.query), ("/a", Some("b=c?d")));
        let target = Target::parse("*");
        assert_eq!((target.path.as_ref(), target.query), ("*", None));
        assert_eq!(Target::parse("/a?").query, Some(""));
    }

    #[test]
    fn unreserved_characters_are_decoded_and_no_others() {
        assert_eq!(normalize("/v1/pets"), "/v1/pets");
        assert_eq!(normalize("/%761/p%65ts/%31%7e"), "/v1/pets/1~");
        assert_eq!(normalize("/v1%2Fpets%20%zz%4"), "/v1%2Fpets%20%zz%4");
        assert_eq!(normalize("/%25%37%30"), "/%2570", "decoded once");
    }
}
