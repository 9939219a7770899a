//! A second parser of requests, for the fuzzers. It follows RFC 9112 and the documented limits line by line, reads a
//! whole input, and is as plain as possible.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use petstore_base::http::limits::{MAX_BODY_BYTES, MAX_HEADER_FIELDS, MAX_TARGET_BYTES};

/// The beginning of an input.
#[derive(Debug, PartialEq)]
pub enum Read {
    Request(Request),
    /// It may become a request.
    Incomplete,
    /// It breaks a rule.
    Refused,
}

/// A request, as the service behind the gate should see it.
#[derive(Debug, PartialEq)]
pub struct Request {
    pub method: Vec<u8>,
    /// In origin form, or `*`.
    pub target: Vec<u8>,
    /// Names in lower case. The authority of the request line replaces the Host, as the last field.
    pub fields: Vec<(Vec<u8>, Vec<u8>)>,
    pub body: Vec<u8>,
    /// True if the connection persists after the request.
    pub persists: bool,
    /// The bytes of its head, its extensions and its trailer fields.
    pub head: usize,
    pub dropped: usize,
    /// The bytes of all of it.
    pub length: usize,
}

/// Why reading stops.
enum Stop {
    Incomplete,
    Refused,
}
use Stop::Refused;

fn check(rule: bool) -> Result<(), Stop> {
    if rule { Ok(()) } else { Err(Refused) }
}

/// Reads the request at the start of an input.
pub fn read(input: &[u8]) -> Read {
    match request(input) {
        Ok(request) => Read::Request(request),
        Err(Stop::Incomplete) => Read::Incomplete,
        Err(Refused) => Read::Refused,
    }
}

/// Takes a line, which ends with CR LF, and has no other control character than tabs.
fn line<'a>(rest: &mut &'a [u8]) -> Result<&'a [u8], Stop> {
    let end = rest
        .windows(2)
        .position(|pair| pair == b"\r\n")
        .ok_or(Stop::Incomplete)?;
    let line = &rest[..end];
    check(
        line.iter()
            .all(|byte| *byte == b'\t' || *byte >= b' ' && *byte != 0x7f),
    )?;
    *rest = &rest[end + 2..];
    Ok(line)
}

fn request(input: &[u8]) -> Result<Request, Stop> {
    let mut rest = input;
    // Section 2.2: one empty line before a request is ignored.
    let mut first = line(&mut rest)?;
    if first.is_empty() {
        first = line(&mut rest)?;
    }
    let mut lines = Vec::new();
    loop {
        match line(&mut rest)? {
            [] => break,
            line => lines.push(line),
        }
    }
    let head = input.len() - rest.len();

    // Section 3: method SP request-target SP HTTP-version.
    let words: Vec<&[u8]> = first.split(|byte| *byte == b' ').collect();
    let [method, target, version] = words[..] else {
        return Err(Refused);
    };
    check(
        is_token(method)
            && target
                .iter()
                .all(|byte| byte.is_ascii_graphic() && *byte != b'#'),
    )?;
    check(target.len() <= MAX_TARGET_BYTES && lines.len() <= MAX_HEADER_FIELDS)?;
    let [b'H', b'T', b'T', b'P', b'/', b'1', b'.', minor] = version else {
        return Err(Refused);
    };
    check(minor.is_ascii_digit())?;
    let (target, authority) = target_forms(method, target)?;

    // Section 5: field-name ":" OWS field-value OWS, not folded.
    let mut fields = Vec::new();
    for line in lines {
        let colon = line.iter().position(|byte| *byte == b':').ok_or(Refused)?;
        check(is_token(&line[..colon]))?;
        fields.push((
            line[..colon].to_ascii_lowercase(),
            line[colon + 1..].trim_ascii().to_vec(),
        ));
    }
    let values = |name: &str| -> Vec<&[u8]> {
        fields
            .iter()
            .filter(|(n, _)| n == name.as_bytes())
            .map(|(_, value)| &value[..])
            .collect()
    };
    let is_old = *minor == b'0';
    let hosts = values("host");
    check(hosts.len() == 1 || hosts.is_empty() && is_old)?;
    check(hosts.into_iter().all(is_authority))?;
    check(
        values("expect")
            .iter()
            .all(|value| value.eq_ignore_ascii_case(b"100-continue")),
    )?;

    // Section 9.3.
    let connection = values("connection").join(&b',');
    let options: Vec<_> = connection
        .split(|byte| *byte == b',')
        .map(|option| option.trim_ascii().to_ascii_lowercase())
        .collect();
    let has = |option: &[u8]| options.iter().any(|other| other == option);
    let persists = !has(b"close") && (!is_old || has(b"keep-alive"));

    // Section 6.3.
    let (mut body, mut dropped) = (Vec::new(), 0);
    match (
        &values("content-length")[..],
        &values("transfer-encoding")[..],
    ) {
        ([], []) => {}
        ([digits], []) => {
            check(!digits.is_empty() && digits.iter().all(u8::is_ascii_digit))?;
            let length: usize = str::from_utf8(digits)
                .unwrap()
                .parse()
                .unwrap_or(usize::MAX);
            check(length <= MAX_BODY_BYTES)?;
            body = take(&mut rest, length)?.to_vec();
        }
        ([], [coding]) if !is_old && coding.eq_ignore_ascii_case(b"chunked") => {
            dropped = chunks(&mut rest, &mut body)?;
        }
        _ => return Err(Refused),
    }
    if let Some(authority) = authority {
        fields.retain(|(name, _)| name != b"host");
        fields.push((b"host".to_vec(), authority));
    }
    let length = input.len() - rest.len();
    Ok(Request {
        method: method.to_vec(),
        target,
        fields,
        body,
        persists,
        head,
        dropped,
        length,
    })
}

/// Section 3.2: the target in origin form, and the authority of an absolute form.
fn target_forms(method: &[u8], target: &[u8]) -> Result<(Vec<u8>, Option<Vec<u8>>), Stop> {
    check(method != b"CONNECT")?;
    if target.starts_with(b"/") || target == b"*" && method == b"OPTIONS" {
        return Ok((target.to_vec(), None));
    }
    let colon = target
        .windows(3)
        .position(|bytes| bytes == b"://")
        .ok_or(Refused)?;
    let scheme = target[..colon].to_ascii_lowercase();
    check(scheme == b"http" || scheme == b"https")?;
    let rest = &target[colon + 3..];
    let end = rest
        .iter()
        .position(|byte| b"/?".contains(byte))
        .unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    // RFC 9110, section 4.2.1: an empty host is invalid.
    check(is_authority(authority) && !authority.is_empty() && authority[0] != b':')?;
    let path = match path {
        [] if method == b"OPTIONS" => b"*".to_vec(),
        [b'/', ..] => path.to_vec(),
        _ => [b"/", path].concat(),
    };
    Ok((path, Some(authority.to_vec())))
}

/// Section 7.1: the chunks and the trailer section. Returns the bytes that are dropped.
fn chunks(rest: &mut &[u8], body: &mut Vec<u8>) -> Result<usize, Stop> {
    let mut dropped = 0;
    loop {
        let line = line(rest)?;
        // chunk-size [ chunk-ext ], and whitespace between as old senders put it. No extension is understood.
        let digits = line
            .iter()
            .position(|byte| !byte.is_ascii_hexdigit())
            .unwrap_or(line.len());
        let (size, extension) = line.split_at(digits);
        check(matches!(extension.trim_ascii_start(), [] | [b';', ..]))?;
        let size = str::from_utf8(size).unwrap();
        check((1..=16).contains(&size.len()))?;
        let size = usize::from_str_radix(size, 16).map_err(|_| Refused)?;
        check(body.len().saturating_add(size) <= MAX_BODY_BYTES)?;
        dropped += extension.len();
        if size == 0 {
            break;
        }
        body.extend_from_slice(take(rest, size)?);
        match rest {
            [b'\r', b'\n', ..] => *rest = &rest[2..],
            [] | [b'\r'] => return Err(Stop::Incomplete),
            _ => return Err(Refused),
        }
    }
    loop {
        let line = line(rest)?;
        if line.is_empty() {
            return Ok(dropped);
        }
        let colon = line.iter().position(|byte| *byte == b':').ok_or(Refused)?;
        check(is_token(&line[..colon]))?;
        dropped += line.len();
    }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], Stop> {
    let (taken, left) = rest.split_at_checked(count).ok_or(Stop::Incomplete)?;
    *rest = left;
    Ok(taken)
}

/// RFC 9110, section 5.6.2.
fn is_token(text: &[u8]) -> bool {
    let is_token = |byte: &u8| byte.is_ascii_graphic() && !b"\"(),/:;<=>?@[\\]{}".contains(byte);
    !text.is_empty() && text.iter().all(is_token)
}

/// `uri-host [ ":" port ]` (RFC 9110, section 7.2; RFC 3986, section 3.2.2).
fn is_authority(text: &[u8]) -> bool {
    let Ok(text) = str::from_utf8(text) else {
        return false;
    };
    let is_port = |port: &str| port.bytes().all(|byte| byte.is_ascii_digit());
    let is_free = |byte: u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=".contains(&byte);
    if let Some(literal) = text.strip_prefix('[') {
        let Some((address, after)) = literal.split_once(']') else {
            return false;
        };
        // A zone may follow, as in RFC 6874.
        let (address, zone) = address.split_once('%').unwrap_or((address, ""));
        let is_zone = zone
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || b"-._~".contains(&byte));
        let is_address = address.parse::<std::net::Ipv6Addr>().is_ok() && is_zone;
        return is_address && (after.is_empty() || after.strip_prefix(':').is_some_and(is_port));
    }
    let (host, port) = text.split_once(':').unwrap_or((text, ""));
    let mut parts = host.split('%');
    let is_first = parts.next().is_some_and(|part| part.bytes().all(is_free));
    let is_coded = |part: &str| {
        let bytes = part.as_bytes();
        bytes.len() >= 2
            && bytes[..2].iter().all(u8::is_ascii_hexdigit)
            && bytes[2..].iter().all(|byte| is_free(*byte))
    };
    is_first && parts.all(is_coded) && is_port(port)
}
