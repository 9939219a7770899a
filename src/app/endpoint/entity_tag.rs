//! Entity tags of lists and single resources. A client that sends a current tag gets 304 instead of the same body again
//! (RFC 9110, sections 8.8.3 and 13.1.2).

use serde::Serialize;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::parameter::{IF_MATCH, IF_NONE_MATCH};
use super::{Call, HeaderField};
use crate::app::endpoint::{ApiError, Code};
use petstore_base::http::{Response, matches_tag, names_tag};

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

/// Returns the response, or 304 if the client already has its tag.
pub fn unless_known(response: Response, call: &Call) -> Response {
    let names_it = |tags| {
        response
            .field(ETAG.name)
            .is_some_and(|tag| names_tag(tags, tag.as_bytes()))
    };
    let is_known = call.header_values(&IF_NONE_MATCH).any(names_it);
    if is_known {
        response.not_modified()
    } else {
        response
    }
}

/// Checks the preconditions of a change: the tag of the resource must be in If-Match, and not in If-None-Match, if the
/// request has them (RFC 9110, section 13.2.2).
///
/// # Errors
/// 412, if one of them is false.
pub fn check_match(resource: &impl Serialize, call: &Call) -> Result<(), ApiError> {
    if call.header_values(&IF_MATCH).next().is_none()
        && call.header_values(&IF_NONE_MATCH).next().is_none()
    {
        return Ok(());
    }
    let current = tagged(Response::json(200, resource), None);
    let tag = current.field(ETAG.name).unwrap_or_default();
    let lines: Vec<&str> = call.header_values(&IF_MATCH).collect();
    // Several lines are one list (RFC 9110, section 5.3), in which `*` stands for nothing.
    let tags = lines.join(",");
    if lines.is_empty() || matches_tag(&tags, tag.as_bytes()) {
        return match unless_known(current, call).status {
            304 => Err(ApiError::new(Code::PreconditionFailed)),
            _ => Ok(()),
        };
    }
    // A proxy that compresses makes W/"…" or "…-gzip" of it.
    Err(if tags.contains(tag.trim_matches('"')) {
        let message = format!(
            "The pet is unchanged, but a proxy or the client has altered the ETag in If-Match. Send it as it is, with its \
             quotes: {tag}."
        );
        ApiError::with_message(Code::PreconditionFailed, message)
    } else {
        ApiError::new(Code::PreconditionFailed)
    })
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
