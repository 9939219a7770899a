//! Finds the authoritative servers of the zone that a name is in.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};

use super::{Answer, Data, Inquiry, Kind, PORT, Servers, Trouble};

/// The most name servers of a zone that are looked up, and the most addresses that are asked.
const MAX_SERVERS: usize = 8;
/// The most resolvers of a system (resolv.conf(5)).
const MAX_RESOLVERS: usize = 3;

impl Inquiry<'_> {
    /// The authoritative servers of the name's zone, or the given resolver if there is one.
    ///
    /// # Errors
    /// [`Trouble`], if they cannot be found.
    pub fn authorities(self, name: &str) -> Result<Servers, Trouble> {
        let mut resolvers = self.resolvers();
        if self.dns.given.is_some() {
            return Ok(resolvers);
        }
        let mut before = None;
        let mut at = name;
        while !at.is_empty() {
            match resolvers.ask(at, Kind::NS) {
                Ok(answer) if answer.own().any(|data| data.kind() == Kind::NS) => {
                    return self.servers_of(&answer, resolvers);
                }
                Ok(_) => {}
                // The name itself may be an alias without a target. Its parents cannot be.
                Err(trouble) if at == name => before = Some(trouble),
                Err(trouble) => return Err(before.unwrap_or(trouble)),
            }
            at = at.split_once('.').map_or("", |(_, parent)| parent);
        }
        Err(before.unwrap_or_else(|| Trouble::NoServers { name: name.to_owned() }))
    }

    /// The addresses of the name servers in an answer, IPv4 first.
    fn servers_of(self, answer: &Answer, mut resolvers: Servers) -> Result<Servers, Trouble> {
        let names = answer.own().filter_map(|data| match data {
            Data::NameServer(name) => Some(name),
            _ => None,
        });
        let names: Vec<&String> = names.take(MAX_SERVERS).collect();
        let mut addresses = Vec::new();
        let mut trouble = Trouble::NoServers { name: answer.name.clone() };
        for kind in [Kind::A, Kind::AAAA] {
            for name in &names {
                // A zone that names many unknown servers must not use up the time for the known ones.
                if !addresses.is_empty() && self.since.elapsed() > self.dns.whole / 4 {
                    break;
                }
                match resolvers.ask(name, kind).and_then(|answer| Ok(answer.addresses()?.collect::<Vec<_>>()))
                {
                    Ok(found) => addresses.extend(found.iter().map(|ip| SocketAddr::new(*ip, self.dns.port))),
                    Err(error) => trouble = error,
                }
            }
        }
        addresses.truncate(MAX_SERVERS);
        if addresses.is_empty() { Err(trouble) } else { Ok(self.servers(addresses, false)) }
    }
}

/// The resolvers of this system, as they are now.
pub(super) fn resolvers_of_the_system() -> Vec<SocketAddr> {
    resolvers(&std::fs::read_to_string("/etc/resolv.conf").unwrap_or_default())
}

/// The resolvers that a resolv.conf(5) names; without any, the one on this machine.
fn resolvers(text: &str) -> Vec<SocketAddr> {
    let named = text.lines().filter_map(|line| {
        let address = line.strip_prefix("nameserver")?;
        if !address.starts_with([' ', '\t']) {
            return None;
        }
        address.split_whitespace().next()?.parse::<IpAddr>().ok()
    });
    let mut addresses: Vec<IpAddr> = named.take(MAX_RESOLVERS).collect();
    if addresses.is_empty() {
        addresses.push(Ipv4Addr::LOCALHOST.into());
    }
    addresses.into_iter().map(|ip| SocketAddr::new(ip, PORT)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resolvers_are_the_first_three_that_are_named() {
        let text = "# nameserver 192.0.2.9\nsearch example.com\nnameserver 192.0.2.1\nnameserver\t2001:db8::1 \n\
            nameserverx 192.0.2.8\nnameserver fe80::1%eth0\nnameserver nonsense\nnameserver 192.0.2.3 # x\n\
            nameserver 192.0.2.4\n";
        let addresses = resolvers(text).iter().map(SocketAddr::to_string).collect::<Vec<_>>();
        assert_eq!(addresses, ["192.0.2.1:53", "[2001:db8::1]:53", "192.0.2.3:53"]);
    }

    #[test]
    fn machine_itself_is_the_resolver_where_none_is_named() {
        assert_eq!(resolvers("search example.com\n")[0].to_string(), "127.0.0.1:53");
    }
}
