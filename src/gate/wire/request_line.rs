//! The request line (RFC 9112, section 3): a method, a target in one of its four forms, a version.

use std::net::Ipv6Addr;
use std::ops::Range;

use crate::refusal::{Refusal, RefusalReason};
use petstore_base::http::limits::MAX_TARGET_BYTES;
use petstore_base::http::percent;

/// A valid request line: the positions of its parts in the head.
#[derive(Clone, Debug, PartialEq)]
pub struct RequestLine {
    pub method: Range<usize>,
    /// Path and query, or `*`. Of an absolute form, the part after the authority, possibly empty.
    pub target: Range<usize>,
    /// Host and port of an absolute form, which count instead of the Host field (RFC 9112, section 3.2.2).
    pub authority: Option<Range<usize>>,
    /// The `x` of HTTP/1.x.
    pub minor_version: u8,
}

impl RequestLine {
    /// Reads the line at `at` within the head, without its line end.
    ///
    /// # Errors
    /// 400, 414, 501 (for a tunnel) or 505.
    pub fn parse(head: &[u8], at: Range<usize>) -> Result<Self, Refusal> {
        let line = &head[at.clone()];
        // This check comes first, since it applies to an incomplete line too.
        if is_target_too_long(line) {
            return Err(Refusal::new(RefusalReason::UriTooLong));
        }
        let mut words = line.split(|b| *b == b' ');
        let (Some(method), Some(target), Some(version), None) =
            (words.next(), words.next(), words.next(), words.next())
        else {
            return Err(bad_request(
                "The request line must be a method, a target and a version, separated by single spaces.",
            ));
        };
        if method.is_empty() || !method.iter().all(|b| is_token_byte(*b)) {
            return Err(bad_request("The request method must be a token."));
        }
        let minor_version = minor_version(version)?;
        let authority = authority(method, target)?;
        let method = at.start..at.start + method.len();
        let start = method.end + 1;
        let path = authority.as_ref().map_or(0, |authority| authority.end);
        Ok(Self {
            target: start + path..start + target.len(),
            authority: authority.map(|authority| start + authority.start..start + authority.end),
            method,
            minor_version,
        })
    }
}

/// Returns whether a line, possibly incomplete, has a target beyond [`MAX_TARGET_BYTES`].
pub fn is_target_too_long(line: &[u8]) -> bool {
    line.len() > MAX_TARGET_BYTES
        && line
            .split(|b| *b == b' ')
            .nth(1)
            .is_some_and(|target| target.len() > MAX_TARGET_BYTES)
}

/// A 400 that names the broken rule.
pub fn bad_request(message: &'static str) -> Refusal {
    Refusal::because(RefusalReason::BadRequest, message)
}

/// RFC 9110, section 5.6.2.
pub fn is_token_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

fn minor_version(version: &[u8]) -> Result<u8, Refusal> {
    match version.strip_prefix(b"HTTP/") {
        Some([b'1', b'.', minor @ b'0'..=b'9']) => Ok(minor - b'0'),
        Some([b'0'..=b'9', b'.', b'0'..=b'9']) => Err(Refusal::new(RefusalReason::HttpVersion)),
        _ => Err(bad_request(
            "The request line must end with a version such as HTTP/1.1.",
        )),
    }
}

/// The position of host and port in a target; only an absolute form has them (RFC 9112, section 3.2).
fn authority(method: &[u8], target: &[u8]) -> Result<Option<Range<usize>>, Refusal> {
    if target
        .iter()
        .any(|b| !(0x21..=0x7e).contains(b) || *b == b'#')
    {
        return Err(bad_request(
            "The request target must be printable ASCII without spaces or '#'; percent-encode all others.",
        ));
    }
    if method == b"CONNECT" {
        return Err(Refusal::new(RefusalReason::NotImplemented));
    }
    if target.starts_with(b"/") || (target == b"*" && method == b"OPTIONS") {
        return Ok(None);
    }
    for scheme in ["http://", "https://"] {
        let Some((start, rest)) = target.split_at_checked(scheme.len()) else {
            continue;
        };
        if !start.eq_ignore_ascii_case(scheme.as_bytes()) {
            continue;
        }
        let length = rest
            .iter()
            .position(|b| *b == b'/' || *b == b'?')
            .unwrap_or(rest.len());
        // An empty host is valid in a Host field alone (RFC 9110, section 4.2.1).
        if length == 0 || rest[0] == b':' || !is_authority(&rest[..length]) {
            break;
        }
        return Ok(Some(scheme.len()..scheme.len() + length));
    }
    Err(bad_request(
        "The request target must begin with '/', or be an http address.",
    ))
}

/// Returns whether a text is a host, possibly empty, with an optional port (RFC 3986, sections 3.2.2 and 3.2.3).
pub fn is_authority(text: &[u8]) -> bool {
    let port = match text {
        [b'[', rest @ ..] => {
            let end = rest.iter().position(|b| *b == b']').unwrap_or(0);
            if !is_ipv6(&rest[..end]) {
                return false;
            }
            &rest[end + 1..]
        }
        _ => {
            let end = text.iter().position(|b| *b == b':').unwrap_or(text.len());
            if !is_name(&text[..end]) {
                return false;
            }
            &text[end..]
        }
    };
    matches!(port, [] | [b':', ..]) && port.iter().skip(1).all(u8::is_ascii_digit)
}

fn is_name(mut text: &[u8]) -> bool {
    while let [byte, rest @ ..] = text {
        text = match byte {
            b'%' if percent::octet(rest).is_some() => &rest[2..],
            byte if byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(byte) => rest,
            _ => return false,
        };
    }
    true
}

/// Returns whether a text is an IPv6 address, possibly with a zone, which some clients send (RFC 6874, section 2).
fn is_ipv6(text: &[u8]) -> bool {
    let (address, zone) = text.split_at(text.iter().position(|b| *b == b'%').unwrap_or(text.len()));
    let is_zone = |b: &u8| b.is_ascii_alphanumeric() || b"-._~".contains(b);
    str::from_utf8(address).is_ok_and(|address| address.parse::<Ipv6Addr>().is_ok())
        && zone.iter().skip(1).all(is_zone)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parts(line: &str) -> Result<(&str, &str, u8), RefusalReason> {
        let parsed =
            RequestLine::parse(line.as_bytes(), 0..line.len()).map_err(|error| error.reason)?;
        Ok((
            &line[parsed.method],
            &line[parsed.target],
            parsed.minor_version,
        ))
    }

    #[test]
    fn four_forms_of_targets_are_distinguished() {
        assert_eq!(
            parts("GET /v1/pets?limit=1 HTTP/1.1"),
            Ok(("GET", "/v1/pets?limit=1", 1))
        );
        assert_eq!(parts("OPTIONS * HTTP/1.0"), Ok(("OPTIONS", "*", 0)));
        assert_eq!(
            parts("GET HTTP://a.b:80/v1 HTTP/1.1"),
            Ok(("GET", "/v1", 1))
        );
        assert_eq!(parts("GET https://[::1] HTTP/1.1"), Ok(("GET", "", 1)));
        assert_eq!(parts("GET http://a?x HTTP/1.9"), Ok(("GET", "?x", 9)));
        assert_eq!(
            parts("CONNECT a.b:443 HTTP/1.1"),
            Err(RefusalReason::NotImplemented)
        );
    }

    #[test]
    fn broken_lines_are_rejected() {
        for line in [
            "",
            "GET",
            "GET /",
            "GET  / HTTP/1.1",
            "GET / HTTP/1.1 ",
            " GET / HTTP/1.1",
            "GET\t/ HTTP/1.1",
            "GET / HTTP/1.1 x",
            "G(T / HTTP/1.1",
            "GET / http/1.1",
            "GET / HTTP/1",
            "GET / HTTP/1.10",
            "GET / HTTP/a.1",
            "GET x HTTP/1.1",
            "GET * HTTP/1.1",
            "GET /\u{e9} HTTP/1.1",
            "GET /#x HTTP/1.1",
            "GET http:///x HTTP/1.1",
            "GET http://u@h/ HTTP/1.1",
            "GET http://:80/ HTTP/1.1",
            "GET http://h:x/ HTTP/1.1",
            "GET ftp://h/ HTTP/1.1",
        ] {
            assert_eq!(parts(line), Err(RefusalReason::BadRequest), "{line:?}");
        }
    }

    #[test]
    fn authority_is_a_host_and_a_port() {
        for text in [
            "",
            "h",
            "a.b:80",
            ":80",
            "h:",
            "a_b!%41",
            "192.0.2.1:8",
            "[::1]",
            "[2001:db8::7]:80",
        ] {
            assert!(is_authority(text.as_bytes()), "{text}");
        }
        for zone in ["[fe80::1%25eth0]:80", "[fe80::1%eth0]"] {
            assert!(is_authority(zone.as_bytes()), "{zone}");
        }
        for text in [
            "a b", "a/b", "u@h", "h:x", "a:1:2", "::1", "%zz", "%4", "[", "[]", "[::1", "[h]",
            "[::1]8", "a]",
        ] {
            assert!(!is_authority(text.as_bytes()), "{text}");
        }
    }

    #[test]
    fn other_major_versions_are_505() {
        for line in ["GET / HTTP/2.0", "PRI * HTTP/2.0", "GET / HTTP/0.9"] {
            assert_eq!(parts(line), Err(RefusalReason::HttpVersion), "{line:?}");
        }
    }

    #[test]
    fn long_targets_are_414() {
        let at_bound = format!("GET /{} HTTP/1.1", "x".repeat(MAX_TARGET_BYTES - 1));
        assert!(parts(&at_bound).is_ok());
        let beyond = format!("GET /{} HTTP/1.1", "x".repeat(MAX_TARGET_BYTES));
        for line in [
            beyond.clone(),
            format!("G:{}", &beyond[3..]),
            format!("{beyond} x"),
        ] {
            assert_eq!(parts(&line), Err(RefusalReason::UriTooLong));
        }
        assert!(is_target_too_long(
            &beyond.as_bytes()[..MAX_TARGET_BYTES + 5]
        ));
        assert!(!is_target_too_long(
            &beyond.as_bytes()[..MAX_TARGET_BYTES + 4]
        ));
    }
}
