//! The addresses of the clients: how many connections each has, and its next turns.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};

use slab::Slab;

use crate::fair_queue::Turns;

/// An address with at least one connection.
pub struct AddressUse {
    /// The representative of all that count as one.
    group: IpAddr,
    pub connections: usize,
    /// Its next turns in the queues of each kind of lane.
    pub turns: [Turns; 2],
}

/// All addresses with connections. Each has an index, which spares requests the hash of an address.
///
/// The IPv6 addresses of a /64 count as one address, because a single host has at least that many. An
/// IPv4-mapped address counts as IPv4.
#[derive(Default)]
pub struct Addresses {
    /// By the index from [`Addresses::join`].
    pub known: Slab<AddressUse>,
    indexes: HashMap<IpAddr, usize>,
}

impl Addresses {
    /// Counts one more connection, and returns the index of its address.
    pub fn join(&mut self, address: IpAddr) -> usize {
        let group = group(address);
        let known = &mut self.known;
        let new = || {
            known.insert(AddressUse {
                group,
                connections: 0,
                turns: Default::default(),
            })
        };
        let index = *self.indexes.entry(group).or_insert_with(new);
        known[index].connections += 1;
        index
    }

    /// Counts one connection less.
    pub fn leave(&mut self, index: usize) {
        let address = &mut self.known[index];
        address.connections -= 1;
        if address.connections == 0 {
            self.indexes.remove(&address.group);
            self.known.remove(index);
        }
    }

    /// The number of connections of an address.
    pub fn connections_of(&self, address: IpAddr) -> usize {
        self.indexes
            .get(&group(address))
            .map_or(0, |index| self.known[*index].connections)
    }
}

/// The representative of all addresses that count as one.
fn group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        // A host usually gets a /64 (RFC 6177), and may use any address in it.
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(
            address.to_bits() & !u128::from(u64::MAX),
        )),
        address => address,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ip(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn addresses_of_one_host_count_as_one() {
        let mut addresses = Addresses::default();
        let hosts = [
            "2001:db8:0:1::1",
            "2001:db8:0:1:ffff::2",
            "2001:db8:0:2::1",
            "::ffff:10.0.0.1",
            "10.0.0.1",
        ];
        let indexes = hosts.map(|host| addresses.join(ip(host)));
        assert_eq!((indexes[0], indexes[3]), (indexes[1], indexes[4]));
        assert!(indexes[0] != indexes[2] && indexes[2] != indexes[3]);
        assert_eq!(addresses.connections_of(ip("2001:db8:0:1:2:3:4:5")), 2);
        assert_eq!(addresses.connections_of(ip("2001:db8:0:2::")), 1);
        for index in indexes {
            addresses.leave(index);
        }
        assert!(addresses.known.is_empty() && addresses.indexes.is_empty());
    }
}
