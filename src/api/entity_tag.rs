//! Entity tags of lists and pets. A client that names the tag of what it has gets 304 instead of the same body
//! again (RFC 9110, sections 8.8.3 and 13.1.2).

use xxhash_rust::xxh3::xxh3_128_with_seed;

use super::Call;
use super::paging::LINK;
use crate::endpoint::HeaderField;
use crate::endpoint::parameter::HeaderParameter;
use crate::http::{Response, names_tag};

/// The tags of what the client has.
pub static IF_NONE_MATCH: HeaderParameter = HeaderParameter {
    name: "If-None-Match",
    about: "The `ETag` of the response that you have, several of them separated by commas, or `*`. If one of them is \
        current, you get a 304 without a body.",
    example: "\"9f86d081884c7d659a2feaa0c55ad015\"",
    pattern: None,
};

/// The tag of the body.
pub const ETAG: HeaderField = HeaderField {
    name: "ETag",
    about: "Changes when the response changes. Send it in `If-None-Match` next time (RFC 9110, section 8.8.3).",
    example: IF_NONE_MATCH.example,
};

/// Adds the tag of the body, which is the same on every instance and after every start. It also changes when a full
/// page gets its link to the next one, so that nobody who asks again and again misses what follows. A client may keep
/// the response, but has to ask whether it is still current.
pub fn tagged(response: Response) -> Response {
    let is_followed = response.headers().iter().any(|(name, _)| *name == LINK.name);
    let tag = xxh3_128_with_seed(response.body(), u64::from(is_followed));
    response.header("Cache-Control", "private, no-cache").header("ETag", quoted(tag))
}

/// The number in hexadecimal digits, in quotes. Each single pet pays for it.
fn quoted(tag: u128) -> String {
    let mut text = String::with_capacity(34);
    text.push('"');
    for byte in tag.to_be_bytes() {
        text.extend([byte >> 4, byte & 15].map(|digit| char::from(b"0123456789abcdef"[usize::from(digit)])));
    }
    text.push('"');
    text
}

/// The response, or 304 if the client has it.
pub fn unless_known(response: Response, call: &Call) -> Response {
    let mut known = call.header_values(IF_NONE_MATCH.name).peekable();
    if known.peek().is_none() {
        return response;
    }
    let tag = response.headers().iter().find(|(name, _)| *name == ETAG.name).map(|(_, tag)| tag.as_ref());
    if tag.is_some_and(|tag| known.any(|tags| names_tag(tags, tag))) {
        response.not_modified()
    } else {
        response
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tag_is_a_quoted_number() {
        for tag in [0, 1, u128::MAX, 0x0123_4567_89ab_cdef_0011_2233_4455_6677] {
            assert_eq!(quoted(tag), format!("\"{tag:032x}\""));
        }
    }
}
