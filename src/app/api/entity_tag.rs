//! Entity tags of lists and pets. A client that sends a current tag gets 304 instead of the same body again (RFC
//! 9110, sections 8.8.3 and 13.1.2).

use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::Call;
use crate::app::endpoint::HeaderField;
use crate::app::endpoint::parameter::{IF_MATCH, IF_NONE_MATCH};
use crate::base::http::{ApiError, Code, Response, matches_tag, names_tag};
use crate::model::Pet;

/// The response header field with the tag.
pub const ETAG: HeaderField = HeaderField {
    name: "ETag",
    about: "Changes when the response changes. Send it in `If-None-Match` next time (RFC 9110, section 8.8.3).",
    example: "\"9f86d081884c7d659a2feaa0c55ad015\"",
};

/// Adds the tag: a hash of the body, which is the same on every instance and after every start. `is_followed` changes
/// the tag of a full page when another page follows, so a client that polls the page notices the link. Clients may
/// store the response, but must revalidate it.
pub fn tagged(response: Response, is_followed: bool) -> Response {
    let tag = quoted(xxh3_128_with_seed(response.body(), u64::from(is_followed)));
    response.header("Cache-Control", "private, no-cache").header(ETAG.name, tag)
}

/// Returns the response, or 304 if the client already has its tag.
pub fn unless_known(response: Response, call: &Call) -> Response {
    let names_it = |tags| response.field(ETAG.name).is_some_and(|tag| names_tag(tags, tag.as_bytes()));
    let is_known = call.header_values(&IF_NONE_MATCH).any(names_it);
    if is_known { response.not_modified() } else { response }
}

/// Checks that the If-Match of a request, if it has one, names the tag of a pet (RFC 9110, section 13.1.1).
///
/// # Errors
/// 412, if it does not.
pub fn check_match(pet: &Pet, call: &Call) -> Result<(), ApiError> {
    let asked: Vec<&str> = call.header_values(&IF_MATCH).collect();
    if asked.is_empty() {
        return Ok(());
    }
    let current = tagged(Response::json(200, pet), false);
    let tag = current.field(ETAG.name).unwrap_or_default().as_bytes();
    // Several lines are one list (RFC 9110, section 5.3), in which `*` stands for nothing.
    if matches_tag(&asked.join(","), tag) { Ok(()) } else { Err(ApiError::new(Code::PreconditionFailed)) }
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
        let tag = |is_followed| {
            let response = Response::json_bytes(200, b"[]".as_slice());
            tagged(response, is_followed).field(ETAG.name).unwrap().to_owned()
        };
        assert_eq!(
            [false, true].map(tag),
            ["\"39347ff402b6c53d831154110e30ac6a\"", "\"c3a9cfd173afe52d8b75697bf8cdec2f\""]
        );
    }
}
