//! The proxies whose X-Forwarded-For counts.

use std::net::IpAddr;

use crate::network::Network;

/// The trusted proxies; by default the loopback addresses.
#[derive(Clone, Debug)]
pub struct TrustedProxies(pub Vec<Network>);

impl Default for TrustedProxies {
    fn default() -> Self {
        Self(crate::network::loopback())
    }
}

impl TrustedProxies {
    /// Returns whether this is the address of a trusted proxy.
    pub fn contains(&self, address: IpAddr) -> bool {
        let address = address.to_canonical();
        self.0.iter().any(|network| network.contains(address))
    }

    /// The client's address in the value of an X-Forwarded-For: the rightmost one that is not trusted. Anything
    /// further left may be forged by the client. If all are trusted, it is the address found in the earlier
    /// fields (`before`), which are the left part of the same list. `None` if the element is not an address.
    pub fn client_of(&self, value: &[u8], before: Option<IpAddr>) -> Option<IpAddr> {
        let text = std::str::from_utf8(value).ok()?;
        for word in text
            .rsplit(',')
            .map(str::trim)
            .filter(|word| !word.is_empty())
        {
            let address = address(word)?.to_canonical();
            if !self.contains(address) {
                return Some(address);
            }
        }
        before
    }
}

/// Reads an address, with or without a port, as proxies write it.
fn address(word: &str) -> Option<IpAddr> {
    let bare = word
        .strip_prefix('[')
        .and_then(|rest| rest.split(']').next())
        .unwrap_or(word);
    bare.parse().ok().or_else(|| {
        word.parse::<std::net::SocketAddr>()
            .ok()
            .map(|address| address.ip())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn client(trusted: &TrustedProxies, value: &str) -> Option<String> {
        trusted
            .client_of(value.as_bytes(), None)
            .map(|address| address.to_string())
    }

    #[test]
    fn loopback_is_trusted_by_default_and_nobody_else() {
        let trusted = TrustedProxies::default();
        for address in ["127.0.0.1", "127.255.0.9", "::1", "::ffff:127.0.0.1"] {
            assert!(trusted.contains(address.parse().unwrap()), "{address}");
        }
        for address in ["10.0.0.1", "128.0.0.1", "::2", "fe80::1"] {
            assert!(!trusted.contains(address.parse().unwrap()), "{address}");
        }
    }

    #[test]
    fn client_is_read_however_it_is_written() {
        let trusted = TrustedProxies(vec!["10.0.0.0/8".parse().unwrap()]);
        for (value, expected) in [
            ("1.2.3.4", Some("1.2.3.4")),
            ("1.2.3.4:5678", Some("1.2.3.4")),
            ("2001:db8::1", Some("2001:db8::1")),
            ("[2001:db8::1]", Some("2001:db8::1")),
            ("[2001:db8::1]:80", Some("2001:db8::1")),
            ("::ffff:1.2.3.4", Some("1.2.3.4")),
            ("6.6.6.6, 1.2.3.4, 10.0.0.1 , 10.9.9.9", Some("1.2.3.4")),
            ("10.0.0.1", None),
            ("1.2.3.4, unknown, 10.0.0.1", None),
            ("1.2.3.4, unknown", None),
            ("1.2.3.4,", Some("1.2.3.4")),
            (" , 6.6.6.6,, 1.2.3.4 ,\t, 10.0.0.1,", Some("1.2.3.4")),
            (",", None),
            ("", None),
        ] {
            assert_eq!(client(&trusted, value).as_deref(), expected, "{value}");
        }
    }

    #[test]
    fn fields_are_one_list() {
        let trusted = TrustedProxies::default();
        let before = Some(IpAddr::from([6, 6, 6, 6]));
        for (value, expected) in [
            ("127.0.0.1", before),
            ("1.2.3.4", Some([1, 2, 3, 4].into())),
            ("unknown", None),
            ("", before),
        ] {
            assert_eq!(
                trusted.client_of(value.as_bytes(), before),
                expected,
                "{value}"
            );
        }
    }
}
