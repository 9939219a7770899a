//! Whether the addresses of a name are those of a proxy that hides its record. Only Cloudflare's is known, because it is
//! the one that people switch on without noticing.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::config::Network;

/// Cloudflare's IPv4 ranges, as of September 2026 (`cloudflare.com/ips-v4`). A name behind its proxy always has an address
/// among them. If the list is out of date, only the advice is less exact.
const CLOUDFLARE: [&str; 15] = [
    "103.21.244.0/22",
    "103.22.200.0/22",
    "103.31.4.0/22",
    "104.16.0.0/13",
    "104.24.0.0/14",
    "108.162.192.0/18",
    "131.0.72.0/22",
    "141.101.64.0/18",
    "162.158.0.0/15",
    "172.64.0.0/13",
    "173.245.48.0/20",
    "188.114.96.0/20",
    "190.93.240.0/20",
    "197.234.240.0/22",
    "198.41.128.0/17",
];

/// Whether there are IPv4 addresses and all of them are Cloudflare's.
pub fn is_proxied(addresses: &BTreeSet<IpAddr>) -> bool {
    let ranges = CLOUDFLARE.iter().filter_map(|range| range.parse::<Network>().ok());
    let ranges: Vec<Network> = ranges.collect();
    let mut ipv4 = addresses.iter().filter(|address| address.is_ipv4()).peekable();
    ipv4.peek().is_some() && ipv4.all(|address| ranges.iter().any(|range| range.contains(*address)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_ipv4_addresses_must_be_those_of_the_proxy() {
        let is_proxied =
            |texts: &[&str]| is_proxied(&texts.iter().map(|text| text.parse().unwrap()).collect());
        assert!(CLOUDFLARE.iter().all(|range| range.parse::<Network>().is_ok()));
        assert!(is_proxied(&["104.21.1.2", "172.67.3.4", "2606:4700::1"]));
        assert!(is_proxied(&["198.41.255.255"]));
        for addresses in [&[][..], &["2606:4700::1"], &["104.28.0.0"], &["104.21.1.2", "192.0.2.1"]] {
            assert!(!is_proxied(addresses), "{addresses:?}");
        }
    }
}
