//! A range of IP addresses, such as that of trusted proxies.

use std::fmt;
use std::net::IpAddr;
use std::str::FromStr;

use petstore_base::error::Expected;

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
}
