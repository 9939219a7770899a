//! Checks URLs in settings, which appear in header fields and on public pages.

use std::net::Ipv6Addr;

use petstore_base::http::host::without_port;

/// Reads `*`, or an origin as browsers write it: a scheme, a host and an optional port (RFC 6454, section 6.1). The
/// scheme may belong to an app or an extension; only their hosts may have capitals. The default port of a scheme is
/// dropped, because browsers omit it.
pub fn origin(text: &str) -> Option<String> {
    if text == "*" {
        return Some(text.to_owned());
    }
    let (scheme, authority) = text.split_once("://")?;
    let is_scheme_byte =
        |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"+-.".contains(&b);
    let is_scheme =
        scheme.starts_with(|c: char| c.is_ascii_lowercase()) && scheme.bytes().all(is_scheme_byte);
    let is_web = ["http", "https"].contains(&scheme);
    let has_odd_case = is_web && authority.bytes().any(|b| b.is_ascii_uppercase());
    let has_odd_port = authority
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.starts_with('0'));
    let is_origin = is_scheme && is_authority(authority) && !has_odd_case && !has_odd_port;
    let usual_port = if scheme == "http" { ":80" } else { ":443" };
    let usual = text.strip_suffix(usual_port).filter(|_| is_web);
    is_origin.then(|| usual.unwrap_or(text).to_owned())
}

/// Returns whether a text is a host with an optional port (RFC 3986, section 3.2). A user is rejected, because the text
/// appears in header fields and on public pages.
fn is_authority(text: &str) -> bool {
    let port = text
        .rsplit_once(':')
        .filter(|(host, _)| !host.starts_with('[') || host.ends_with(']'));
    let (host, port) = port.map_or((text, None), |(host, port)| (host, Some(port)));
    let is_port =
        |port: &str| port.bytes().all(|b| b.is_ascii_digit()) && port.parse::<u16>().is_ok();
    let is_name = |host: &str| {
        let is_host_byte = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
        host.bytes().all(is_host_byte) && host.bytes().any(|b| b.is_ascii_alphanumeric())
    };
    let address = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'));
    let is_host = address.map_or_else(
        || is_name(host),
        |address| address.parse::<Ipv6Addr>().is_ok(),
    );
    is_host && port.is_none_or(is_port)
}

/// The host of a URL without its port and trailing dot, in lower case.
pub fn host_of(url: &str) -> Option<String> {
    let host = without_port(url.split('/').nth(2)?);
    Some(host.trim_end_matches('.').to_ascii_lowercase())
}

/// The texts that [`contact`] accepts.
pub const CONTACT: &str = "a mailto:, https: or tel: URI";

/// Reads a contact (RFC 9116, section 2.5.3).
pub fn contact(text: &str) -> Option<String> {
    let is_text = text.bytes().all(|b| b.is_ascii_graphic());
    let is_one = ["mailto:", "https://", "tel:"].iter().any(|scheme| {
        text.strip_prefix(scheme)
            .is_some_and(|rest| !rest.is_empty())
    });
    (is_text && is_one).then(|| text.to_owned())
}

/// The texts that [`url`] accepts.
pub const URL: &str = "an http or https address whose path ends in /v1";

/// Reads an address of the interface.
pub fn url(text: &str) -> Option<String> {
    let rest = text
        .strip_prefix("https://")
        .or_else(|| text.strip_prefix("http://"))?;
    let (authority, path) = rest.split_once('/')?;
    let is_plain = path
        .bytes()
        .all(|b| b.is_ascii_alphanumeric() || b"-._~/".contains(&b));
    let is_ours = path == "v1" || path.ends_with("/v1");
    (is_authority(authority) && is_plain && is_ours).then(|| text.to_owned())
}
