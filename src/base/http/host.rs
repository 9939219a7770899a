//! The host of a URL or of a Host header field (RFC 3986, section 3.2).

use std::net::IpAddr;

/// A host without its port.
pub fn without_port(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        Some((host, port)) if port.bytes().all(|b| b.is_ascii_digit()) => host,
        _ => authority,
    }
}

/// Returns whether a host is an IP address or `localhost` (RFC 6761, section 6.3).
pub fn is_address(host: &str) -> bool {
    let bare = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
        .unwrap_or(host);
    bare.parse::<IpAddr>().is_ok() || host.eq_ignore_ascii_case("localhost")
}
