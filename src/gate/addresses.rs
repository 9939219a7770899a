//! Who a client is: the other end of its socket, and the proxies that may name another address.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::str::FromStr;

use petstore_base::error::Expected;

/// The peer of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Peer {
    Tcp(SocketAddr),
    /// A program on the same machine, which may open the socket's file.
    Unix,
}

impl Peer {
    /// The address for limits and the log: loopback for a Unix socket.
    pub fn ip(self) -> IpAddr {
        match self {
            Self::Tcp(address) => address.ip(),
            Self::Unix => Ipv4Addr::LOCALHOST.into(),
        }
    }
}

impl fmt::Display for Peer {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(f),
            Self::Unix => f.write_str("unix"),
        }
    }
}

/// A range of IP addresses that begin with the same bits (CIDR, RFC 4632), such as `10.0.0.0/8`.
///
/// ```
/// use petstore_gate::Network;
///
/// let network: Network = "10.0.0.0/8".parse()?;
/// assert!(network.contains([10, 1, 2, 3].into()));
/// assert!(!network.contains([11, 0, 0, 1].into()));
/// # Ok::<(), petstore_base::error::Expected>(())
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Network {
    address: IpAddr,
    bits: u8,
}

impl Network {
    /// What a text that is read must be, as the end of a sentence.
    pub const EXPECTED: &str = "an address such as 10.0.0.1 or 10.0.0.0/8";

    /// Returns whether the network contains this address. An IPv4 network contains no IPv6 address, nor an IPv6 network
    /// an IPv4 address.
    pub fn contains(&self, address: IpAddr) -> bool {
        // The network is the first bits of both kinds.
        let bits = |address| match address {
            IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
            IpAddr::V6(address) => address.to_bits(),
        };
        let same = (bits(self.address) ^ bits(address)).leading_zeros();
        self.address.is_ipv4() == address.is_ipv4() && same >= u32::from(self.bits)
    }

    fn parse(text: &str) -> Option<Self> {
        let (address, bits) = text
            .split_once('/')
            .map_or((text, None), |(address, bits)| (address, Some(bits)));
        let address: IpAddr = address.parse().ok()?;
        let most = if address.is_ipv4() { 32 } else { 128 };
        let is_number = |bits: &&str| bits.bytes().all(|byte| byte.is_ascii_digit());
        let bits = bits.map_or(Some(most), |bits| {
            Some(bits).filter(is_number)?.parse().ok()
        })?;
        (bits <= most).then_some(Self { address, bits })
    }
}

impl FromStr for Network {
    type Err = Expected;

    /// Reads an address such as `10.0.0.1` or a network such as `10.0.0.0/8`.
    ///
    /// # Errors
    /// If the text is neither.
    fn from_str(text: &str) -> Result<Self, Expected> {
        Self::parse(text).ok_or(Expected(Self::EXPECTED.into()))
    }
}

impl fmt::Display for Network {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.bits)
    }
}

/// The addresses of the machine itself, IPv4 and IPv6.
pub fn loopback() -> Vec<Network> {
    ["127.0.0.0/8", "::1"]
        .iter()
        .filter_map(|text| text.parse().ok())
        .collect()
}

/// The trusted proxies; by default the loopback addresses.
#[derive(Clone, Debug)]
pub struct TrustedProxies(pub Vec<Network>);

impl Default for TrustedProxies {
    fn default() -> Self {
        Self(loopback())
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

    fn network(text: &str) -> Network {
        text.parse().unwrap()
    }

    #[test]
    fn network_has_the_addresses_that_begin_like_it() {
        for (text, inside, outside) in [
            (
                "10.0.0.0/8",
                ["10.0.0.0", "10.255.255.255"],
                ["9.255.255.255", "11.0.0.0"],
            ),
            (
                "10.1.2.3/31",
                ["10.1.2.2", "10.1.2.3"],
                ["10.1.2.1", "10.1.2.4"],
            ),
            (
                "192.0.2.1",
                ["192.0.2.1"; 2],
                ["192.0.2.0", "::ffff:192.0.2.1"],
            ),
            ("0.0.0.0/0", ["0.0.0.0", "255.255.255.255"], ["::", "::1"]),
            (
                "2001:db8::/32",
                ["2001:db8::", "2001:db8:ffff::1"],
                ["2001:db9::", "10.0.0.1"],
            ),
            ("::1", ["::1"; 2], ["::", "::2"]),
            ("::/0", ["::", "ffff::"], ["0.0.0.0", "10.0.0.1"]),
        ] {
            let network = network(text);
            assert!(
                inside
                    .iter()
                    .all(|address| network.contains(address.parse().unwrap())),
                "{text}"
            );
            assert!(
                !outside
                    .iter()
                    .any(|address| network.contains(address.parse().unwrap())),
                "{text}"
            );
        }
    }

    #[test]
    fn network_prints_as_it_is_read() {
        for text in ["10.0.0.0/8", "192.0.2.1/32", "2001:db8::/32", "::1/128"] {
            assert_eq!(network(text).to_string(), text);
        }
    }

    #[test]
    fn malformed_network_is_refused() {
        for text in [
            "",
            "/",
            "10.0.0.1/",
            "10.0.0.0/33",
            "::/129",
            "10.0.0.0/+8",
            "10.0.0.0/-1",
            "10.0.0/8",
            "host",
        ] {
            assert!(text.parse::<Network>().is_err(), "{text}");
        }
    }

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
