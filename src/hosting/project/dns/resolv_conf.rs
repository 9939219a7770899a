//! The resolvers of the system (resolv.conf(5)).

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::error::PORT;

/// The most resolvers that are used (resolv.conf(5)).
const MAX_RESOLVERS: usize = 3;

/// The resolvers of this system, as they are now.
pub(super) fn resolvers_of_the_system() -> Vec<SocketAddr> {
    resolvers(&std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default())
}

/// Returns the resolvers in a resolv.conf(5); if it has none, the one on this machine.
fn resolvers(text: &str) -> Vec<SocketAddr> {
    let named = text.lines().filter_map(|line| {
        let address = line.strip_prefix("nameserver")?.strip_prefix([' ', '\t'])?;
        address.split_whitespace().next()?.parse::<IpAddr>().ok()
    });
    let mut addresses: Vec<IpAddr> = named.take(MAX_RESOLVERS).collect();
    if addresses.is_empty() {
        addresses.push(Ipv4Addr::LOCALHOST.into());
    }
    addresses
        .into_iter()
        .map(|ip| SocketAddr::new(ip, PORT))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolvers_are_the_first_three_that_are_named() {
        let text = "# nameserver 192.0.2.9\nsearch example.com\nnameserver 192.0.2.1\nnameserver\t2001:db8::1 \n\
            nameserverx 192.0.2.8\nnameserver fe80::1%eth0\nnameserver nonsense\nnameserver 192.0.2.3 # x\n\
            nameserver 192.0.2.4\n";
        let addresses = resolvers(text)
            .iter()
            .map(SocketAddr::to_string)
            .collect::<Vec<_>>();
        assert_eq!(
            addresses,
            ["192.0.2.1:53", "[2001:db8::1]:53", "192.0.2.3:53"]
        );
    }

    #[test]
    fn machine_itself_is_the_resolver_if_none_is_named() {
        assert_eq!(
            resolvers("search example.com\n")[0].to_string(),
            "127.0.0.1:53"
        );
        assert!((1..=MAX_RESOLVERS).contains(&resolvers_of_the_system().len()));
    }
}
