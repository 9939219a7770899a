//! Entity tags of lists and single resources. A client that sends a current tag gets 304 instead of the same body again
//! (RFC 9110, sections 8.8.3 and 13.1.2).

use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::parameter::HeaderField;
use petstore_base::http::{Response, names_tag};

/// The response header field with the tag.
pub const ETAG: HeaderField = HeaderField {
    name: "ETag",
    about: "Changes when the response changes. Send it in `If-None-Match` next time (RFC 9110, section 8.8.3).",
    example: "\"9f86d081884c7d659a2feaa0c55ad015\"",
};

/// Adds the tag: a hash of the body, which is the same on every instance and after every start. Clients may store the
/// response, but must revalidate it.
///
/// `is_followed` changes the tag of a full page when another page follows, so a client that polls the page notices the
/// link. `None`: a single resource. A proxy that compressed it would make its tag a weak one, which If-Match does not
/// accept (RFC 9110, section 8.8.3.3), so no proxy may.
pub fn tagged(response: Response, is_followed: Option<bool>) -> Response {
    let seed = u64::from(is_followed == Some(true));
    let tag = quoted(xxh3_128_with_seed(response.body(), seed));
    let caching = match is_followed {
        Some(_) => "private, no-cache",
        None => "private, no-cache, no-transform",
    };
    response
        .header("Cache-Control", caching)
        .header(ETAG.name, tag)
}

/// Returns the response, or 304 if its tag is among those of If-None-Match.
pub fn unless_known<'t>(response: Response, mut known: impl Iterator<Item = &'t str>) -> Response {
    let names_it = |tags| {
        response
            .field(ETAG.name)
            .is_some_and(|tag| names_tag(tags, tag.as_bytes()))
    };
    if known.any(names_it) {
        response.not_modified()
    } else {
        response
    }
}

/// Formats the tag as hexadecimal digits in quotes. Without `format!`, because every response with a single pet needs
/// it.
fn quoted(tag: u128) -> [u8; 34] {
    let mut text = [b'"'; 34];
    for (digits, byte) in text[1..33].chunks_exact_mut(2).zip(tag.to_be_bytes()) {
        let digit = |number: u8| number + if number < 10 { b'0' } else { b'a' - 10 };
        digits.copy_from_slice(&[digit(byte >> 4), digit(byte & 15)]);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_is_a_quoted_number() {
        for tag in [0, 1, u128::MAX, 0x0123_4567_89ab_cdef_0011_2233_4455_6677] {
            assert_eq!(quoted(tag), format!("\"{tag:032x}\"").as_bytes());
        }
    }

    #[test]
    fn tag_is_the_same_on_every_machine() {
        let tag = |is_followed: bool| {
            let response = Response::json_bytes(200, b"[]".as_slice());
            tagged(response, Some(is_followed))
                .field(ETAG.name)
                .unwrap()
                .to_owned()
        };
        assert_eq!(
            [false, true].map(tag),
            [
                "\"39347ff402b6c53d831154110e30ac6a\"",
                "\"c3a9cfd173afe52d8b75697bf8cdec2f\""
            ]
        );
    }
}
