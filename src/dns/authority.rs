//! Finds the authoritative servers of the zone that a name is in.

use std::net::SocketAddr;

use super::{Answer, Data, DnsError, Inquiry, NameServers, RecordType, with_parents};

/// The most name servers of a zone that are looked up, and the most addresses that are asked.
const MAX_SERVERS: usize = 8;

impl Inquiry<'_> {
    /// The authoritative servers of the name's zone, or the given resolver if there is one.
    pub fn authorities(self, name: &str) -> Result<NameServers, DnsError> {
        let mut resolvers = self.resolvers();
        if self.dns.is_given {
            return Ok(resolvers);
        }
        let mut before = None;
        for at in with_parents(name) {
            match resolvers.ask(at, RecordType::NS) {
                Ok(answer) if answer.own().any(|record| record.kind == RecordType::NS) => {
                    return self.servers_of(&answer, resolvers);
                }
                Ok(_) => {}
                // The name itself may be an alias without a target. Its parents cannot be.
                Err(error) if at == name => before = Some(error),
                Err(error) => return Err(before.unwrap_or(error)),
            }
        }
        Err(before.unwrap_or_else(|| DnsError::NoServers { name: name.to_owned() }))
    }

    /// The addresses of the name servers in an answer, IPv4 first.
    fn servers_of(self, answer: &Answer, mut resolvers: NameServers) -> Result<NameServers, DnsError> {
        let names = answer.own().filter_map(|record| match &record.data {
            Data::NameServer(name) => Some(name),
            _ => None,
        });
        let names: Vec<&String> = names.take(MAX_SERVERS).collect();
        let mut addresses = Vec::new();
        let mut last = DnsError::NoServers { name: answer.name.clone() };
        for kind in [RecordType::A, RecordType::AAAA] {
            for name in &names {
                // A zone that names many unknown servers must not use up the time for the known ones.
                if !addresses.is_empty() && self.since.elapsed() > self.dns.whole / 4 {
                    break;
                }
                match resolvers.ask(name, kind).and_then(|answer| Ok(answer.addresses()?.collect::<Vec<_>>()))
                {
                    Ok(found) => addresses.extend(found.iter().map(|ip| SocketAddr::new(*ip, self.dns.port))),
                    Err(error) => last = error,
                }
            }
        }
        addresses.truncate(MAX_SERVERS);
        if addresses.is_empty() { Err(last) } else { Ok(self.servers(addresses, false)) }
    }
}
