//! One budget for all bytes held for clients, and which connection gives way first.
//!
//! Knows slots, addresses and sizes, and nothing of sockets, requests or time. Sums and order are always up to date;
//! small connections, which are nearly all, have no place in the order. Only to make room for newcomers does it visit
//! all slots, and then picks [`Limits::picked`] connections at a time. So no client can cause a visit of all slots with
//! each request or connection.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, Ipv6Addr};

use slab::Slab;

/// The bytes below which a connection is small and never gives way. Also the step in which connections are
/// compared: of two within one step, either may count as the larger.
pub const SMALL_BYTES: usize = 4096;
/// The step in bytes in which addresses are compared. It is coarser, as their sums change more often.
const ADDRESS_STEP: usize = 64 * 1024;

/// What connections may have, all together and per address.
#[derive(Clone, Copy, Debug, Default)]
pub struct Limits {
    /// Bytes for all connections together.
    pub bytes: usize,
    /// The number of connections that an ordinary client may have. Addresses with more make room first.
    pub few_connections: usize,
    /// How many connections to pick at a time to make room.
    pub picked: usize,
}

/// The state of a connection, which decides whether it makes room for another one. The default is `Idle`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// Between requests. Closing it costs its client least.
    #[default]
    Idle,
    /// A request is arriving. Nothing has been done for it yet.
    Coming,
    /// A response is being sent, or the client does not read it.
    Taking,
    /// A request waits for a lane. Nothing has been done for it yet.
    Waiting,
    /// Anything else. It is never closed to make room.
    Busy,
}

impl Standing {
    /// The order in which connections make room; `None` if this one never does.
    fn rank(self) -> Option<u8> {
        match self {
            Standing::Idle | Standing::Coming => Some(0),
            Standing::Taking => Some(1),
            Standing::Waiting => Some(2),
            Standing::Busy => None,
        }
    }
}

/// A connection.
struct Connection {
    /// Its index in [`Budget::addresses`], so that requests need not hash an address.
    address: usize,
    /// When it joined, counted in connections.
    joined: u64,
    bytes: usize,
    /// When it got its present size, counted in changes of size.
    since: u64,
    standing: Standing,
    /// When it got its standing, counted in changes of standing. No two are equal.
    stands_since: u64,
}

/// An address with at least one connection.
struct Address {
    group: IpAddr,
    connections: usize,
    bytes: usize,
    /// Its connections that are not small: steps, since when, and slot. The last one gives way first.
    large: BTreeSet<(usize, Reverse<u64>, usize)>,
    /// Whether many clients may share it, so that the number of connections means nothing.
    is_exempt: bool,
}

impl Address {
    /// Its place among the addresses with large connections, if it has any.
    fn place(&self, id: usize) -> Option<(usize, usize)> {
        (!self.large.is_empty()).then_some((self.bytes / ADDRESS_STEP, id))
    }
}

/// A connection picked to make room.
#[derive(Clone, Copy)]
struct Picked {
    slot: usize,
    stands_since: u64,
    /// Whether it was picked because its address has many connections.
    is_of_many: bool,
    /// Its rank when it was picked.
    rank: u8,
}

/// All connections, by slot and by address. Unknown slots are ignored.
///
/// The IPv6 addresses of a /64 count as one address, because a single host has at least that many. An
/// IPv4-mapped address counts as IPv4.
#[derive(Default)]
pub struct Budget {
    limits: Limits,
    total: usize,
    /// The number of connections so far, for the order of age.
    joined: u64,
    /// The number of changes of size, for the order among equals.
    changes: u64,
    /// The number of changes of standing, for the order of making room.
    standings: u64,
    /// Slots are small integers: the length is the most connections that ever existed at once.
    slots: Vec<Option<Connection>>,
    addresses: Slab<Address>,
    ids: HashMap<IpAddr, usize>,
    /// The addresses with large connections: steps and index. The last one gives way first.
    largest: BTreeSet<(usize, usize)>,
    /// The connections that make room, the next one last.
    picked: Vec<Picked>,
}

impl Budget {
    /// A budget without connections.
    pub fn new(limits: Limits) -> Self {
        Self { limits, ..Self::default() }
    }

    /// Adds a connection, which holds nothing and is [`Standing::Idle`]. It replaces whatever had the slot.
    ///
    /// `is_exempt`: many clients may share the address, as with a proxy, so that the number of its
    /// connections means nothing.
    pub fn join(&mut self, slot: usize, address: IpAddr, is_exempt: bool) {
        self.joined += 1;
        self.join_as(slot, address, is_exempt, self.joined);
    }

    fn join_as(&mut self, slot: usize, address: IpAddr, is_exempt: bool, joined: u64) {
        self.leave(slot);
        let group = group(address);
        let id = match self.ids.get(&group) {
            Some(id) => *id,
            None => self.enter(group, is_exempt),
        };
        if self.slots.len() <= slot {
            self.slots.resize_with(slot + 1, || None);
        }
        self.standings += 1;
        self.slots[slot] = Some(Connection {
            address: id,
            joined,
            bytes: 0,
            since: 0,
            standing: Standing::Idle,
            stands_since: self.standings,
        });
        let address = &mut self.addresses[id];
        address.connections += 1;
        if address.connections == self.limits.few_connections + 1 && !address.is_exempt {
            // From now on its connections make room before the picked ones.
            self.picked.clear();
        }
    }

    /// Removes a connection and releases what it held.
    pub fn leave(&mut self, slot: usize) {
        self.hold(slot, 0);
        let Some(connection) = self.slots.get_mut(slot).and_then(Option::take) else { return };
        let address = &mut self.addresses[connection.address];
        address.connections -= 1;
        if address.connections == 0 {
            self.ids.remove(&address.group);
            self.addresses.remove(connection.address);
        }
    }

    /// Moves a connection to another address, which a proxy has named, with its bytes and its standing, as
    /// the latest of that standing. The same address again costs no hash.
    pub fn change_address(&mut self, slot: usize, address: IpAddr, is_exempt: bool) {
        let Some(Some(connection)) = self.slots.get(slot) else { return };
        if self.addresses[connection.address].group == group(address) {
            return;
        }
        let (bytes, standing, joined) = (connection.bytes, connection.standing, connection.joined);
        self.join_as(slot, address, is_exempt, joined);
        self.stand(slot, standing);
        self.hold(slot, bytes);
    }

    /// Sets the bytes that a connection holds now. This is nearly free while it is small, so it can be called after
    /// every event.
    pub fn hold(&mut self, slot: usize, bytes: usize) {
        let Some(Some(connection)) = self.slots.get_mut(slot) else { return };
        let before = std::mem::replace(&mut connection.bytes, bytes);
        if bytes == before {
            return;
        }
        self.total = self.total - before + bytes;
        let id = connection.address;
        let address = &mut self.addresses[id];
        let place = address.place(id);
        address.bytes = address.bytes - before + bytes;
        let (old, new) = (before / SMALL_BYTES, bytes / SMALL_BYTES);
        if old != new {
            address.large.remove(&(old, Reverse(connection.since), slot));
            self.changes += 1;
            connection.since = self.changes;
            if new > 0 {
                address.large.insert((new, Reverse(self.changes), slot));
            }
        }
        let new_place = address.place(id);
        if new_place != place {
            place.map(|place| self.largest.remove(&place));
            self.largest.extend(new_place);
        }
    }

    /// The bytes that all connections hold.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Whether more than the budget is held. There may be no [`Budget::largest`] then, if very many
    /// connections are small; only a limit on connections helps against that.
    pub fn excess(&self) -> bool {
        self.total > self.limits.bytes
    }

    /// Whether there is no room for this many more bytes.
    pub fn lacks(&self, bytes: usize) -> bool {
        self.total + bytes > self.limits.bytes
    }

    /// The slot that gives way: the largest connection of the address that holds the most.
    ///
    /// Addresses are compared in steps of 64 KiB, connections in steps of [`SMALL_BYTES`]. Among equals, the one
    /// that has been this large longest gives way. `None` if all are small. Addresses with only small
    /// connections are skipped.
    pub fn largest(&self) -> Option<usize> {
        let (_, id) = self.largest.last()?;
        self.addresses[*id].large.last().map(|(_, _, slot)| *slot)
    }

    fn connections(&self) -> impl Iterator<Item = (usize, &Connection)> {
        self.slots.iter().enumerate().filter_map(|(slot, connection)| Some((slot, connection.as_ref()?)))
    }

    /// The number of connections of an address, for a limit per address. It costs a hash, once per
    /// connection.
    pub fn connections_of(&self, address: IpAddr) -> usize {
        self.ids.get(&group(address)).map_or(0, |id| self.addresses[*id].connections)
    }

    /// The index of the connection's address. All connections of an address share it.
    pub fn address_of(&self, slot: usize) -> usize {
        self.slots.get(slot).and_then(Option::as_ref).map_or(0, |connection| connection.address)
    }

    /// Sets the standing of a connection. If it is unchanged, its time goes on.
    pub fn stand(&mut self, slot: usize, standing: Standing) {
        let Some(Some(connection)) = self.slots.get_mut(slot) else { return };
        if connection.standing != standing {
            self.standings += 1;
            connection.standing = standing;
            connection.stands_since = self.standings;
            let goes_before = |picked: &Picked| standing.rank().is_some_and(|rank| rank < picked.rank);
            if self.picked.last().is_some_and(goes_before) {
                self.picked.clear();
            }
        }
    }

    /// The slot that makes room for a newcomer: the one that has been idle, or whose request has been arriving,
    /// longest; or else the one that has been taking its response longest. If there is none, it is the oldest
    /// whose request waits; otherwise clients that always ask for something could keep everybody else out.
    ///
    /// If the address with the most connections has more than [`Limits::few_connections`], it is one of those. A
    /// newcomer that has already joined counts too. [`Limits::picked`] are found at a time; meanwhile another
    /// address may have the most.
    pub fn longest_idle(&mut self) -> Option<usize> {
        while let Some(picked) = self.picked.last() {
            if self.is_still_picked(picked) {
                return Some(picked.slot);
            }
            self.picked.pop();
        }
        self.pick();
        self.picked.last().map(|picked| picked.slot)
    }

    fn is_still_picked(&self, picked: &Picked) -> bool {
        let connection = self.slots.get(picked.slot).and_then(Option::as_ref);
        connection.is_some_and(|connection| {
            let connections = self.addresses[connection.address].connections;
            connection.stands_since == picked.stands_since
                && (!picked.is_of_many || connections > self.limits.few_connections)
        })
    }

    /// Finds the connections that make room next.
    fn pick(&mut self) {
        let most = self.limits.picked;
        // In order, at most as many as wanted.
        let mut found: Vec<(_, Picked)> = Vec::with_capacity(most + 1);
        for (slot, connection) in self.connections() {
            let Some(rank) = connection.standing.rank() else { continue };
            let is_waiting = connection.standing == Standing::Waiting;
            let since = if is_waiting { connection.joined } else { connection.stands_since };
            let address = &self.addresses[connection.address];
            let is_of_many = !address.is_exempt && address.connections > self.limits.few_connections;
            let many = if is_of_many { address.connections } else { 0 };
            let order = (is_waiting, Reverse(many), rank, since);
            if found.len() == most && found.last().is_none_or(|(last, _)| order > *last) {
                continue;
            }
            let place = found.partition_point(|(other, _)| *other < order);
            found.insert(
                place,
                (order, Picked { slot, stands_since: connection.stands_since, is_of_many, rank }),
            );
            found.truncate(most);
        }
        self.picked.extend(found.into_iter().rev().map(|(_, picked)| picked));
    }

    /// Adds an address that had no connection.
    fn enter(&mut self, group: IpAddr, is_exempt: bool) -> usize {
        let id = self.addresses.insert(Address {
            group,
            connections: 0,
            bytes: 0,
            large: BTreeSet::new(),
            is_exempt,
        });
        self.ids.insert(group, id);
        id
    }
}

/// The representative of all addresses that count as one.
fn group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        // A host usually gets a /64 (RFC 6177), and may use any address in it.
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address => address,
    }
}

#[cfg(test)]
mod tests;
