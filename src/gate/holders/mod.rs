//! Who holds what: one budget for all bytes held for clients, and whose connection gives way first.
//!
//! It knows slots, addresses and sizes, and nothing of sockets, requests or time. Sums are kept as bytes come and
//! go. Who gives way is found by looking at all slots, only when room is short, and is then remembered: the
//! largest until somebody overtakes it, and those who make room for newcomers [`Limits::picked`] at a time. So no
//! client can have all slots looked at for each of its requests or connections.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv6Addr};

use slab::Slab;

/// Bytes below which a connection is small: it never gives way. Also the step in which connections are
/// compared: of two within one step, either may count as the larger.
pub const SMALL_BYTES: usize = 4096;
/// The step in bytes in which addresses are compared. It is coarser, as their sums change more often.
const ADDRESS_STEP: usize = 64 * 1024;

/// What the connections may have, all together and each address.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Bytes for all connections together.
    pub budget: usize,
    /// As many connections an ordinary client may have; who has more makes room for others first.
    pub few_connections: usize,
    /// How many connections that make room are picked at a time.
    pub picked: usize,
}

/// Where a connection stands when room is made for another one. The default is `Idle`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Standing {
    /// Between requests: closing it costs its client least.
    #[default]
    Idle,
    /// A request has begun and is not whole: nothing has been done for it yet.
    Coming,
    /// A response is being taken, or is not.
    Taking,
    /// A request waits for a lane: nothing has been done for it yet.
    Waiting,
    /// Anything else: it is never closed to make room.
    Busy,
}

impl Standing {
    /// Whose place costs its client least comes first; `None` is never asked for its place.
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
    /// Its place in [`Holders::addresses`], so that no request costs the hash of an address.
    address: usize,
    /// When it came, counted in connections.
    joined: u64,
    bytes: usize,
    /// When it came to its present size, counted in changes of all sizes.
    since: u64,
    standing: Standing,
    /// When it came to its standing, counted in changes of standing. No two are the same.
    stands_since: u64,
}

/// An address with at least one connection.
struct Address {
    group: IpAddr,
    flow: u64,
    connections: usize,
    bytes: usize,
    /// How many of its connections are not small.
    large: usize,
    /// Whether many may stand behind it, so that their number says nothing.
    is_exempt: bool,
}

/// The connection that holds the most, and how much it and its address hold, in steps.
#[derive(Clone, Copy)]
struct Largest {
    slot: usize,
    address: usize,
    steps: usize,
    address_steps: usize,
}

/// A connection that was picked to make room.
#[derive(Clone, Copy)]
struct Picked {
    slot: usize,
    stands_since: u64,
    /// Whether it was picked for its address's many connections.
    is_of_many: bool,
    /// How much its place cost its client then.
    rank: u8,
}

/// All connections, by slot and by address. A slot that is not known here is passed over in silence.
///
/// The IPv6 addresses of one /64 count as one address, as a single host has at least so many; an
/// IPv4-mapped one counts as IPv4.
pub struct Holders {
    limits: Limits,
    total: usize,
    /// Counts those who came, for the order of age.
    joined: u64,
    /// Counts the changes of sizes, for the order among equals.
    changes: u64,
    /// Counts the changes of standings, for the order of those who make room.
    standings: u64,
    /// Slots are small integers: the length is the most connections there ever were at once.
    slots: Vec<Option<Connection>>,
    addresses: Slab<Address>,
    ids: HashMap<IpAddr, usize>,
    /// The outcome of the last look for the largest, while it holds.
    largest: Option<Option<Largest>>,
    /// Those who make room, the next one last.
    picked: Vec<Picked>,
}

impl Holders {
    /// Nobody yet.
    pub fn new(limits: Limits) -> Self {
        Self {
            limits,
            total: 0,
            joined: 0,
            changes: 0,
            standings: 0,
            slots: Vec::new(),
            addresses: Slab::new(),
            ids: HashMap::new(),
            largest: None,
            picked: Vec::new(),
        }
    }

    /// A connection came: it holds nothing and is [`Standing::Idle`]. Whoever had the slot is forgotten.
    ///
    /// `is_exempt`: many clients may stand behind the address, as behind a proxy, so that the number of its
    /// connections says nothing.
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
            // From now on it makes room before those who were picked.
            self.picked.clear();
        }
    }

    /// A connection has gone: all that it held is released.
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

    /// The connection turned out to serve another address, as a proxy says: it goes there with its bytes
    /// and standing, as the latest of that standing. The same address again costs no hash.
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

    /// The connection holds so many bytes now, all in all. This is nearly free, so it may be said after every event.
    pub fn hold(&mut self, slot: usize, bytes: usize) {
        let Some(Some(connection)) = self.slots.get_mut(slot) else { return };
        let before = std::mem::replace(&mut connection.bytes, bytes);
        if bytes == before {
            return;
        }
        self.total = self.total - before + bytes;
        let id = connection.address;
        let address = &mut self.addresses[id];
        address.bytes = address.bytes - before + bytes;
        let (old, new) = (before / SMALL_BYTES, bytes / SMALL_BYTES);
        if old != new {
            self.changes += 1;
            connection.since = self.changes;
            address.large = address.large + usize::from(new > 0) - usize::from(old > 0);
        }
        let address_steps = address.bytes / ADDRESS_STEP;
        let holds = match &mut self.largest {
            None => false,
            Some(None) => address.large == 0,
            Some(Some(largest)) if largest.address == id => {
                let is_overtaken =
                    if largest.slot == slot { new != largest.steps } else { new > largest.steps };
                let has_shrunk = address_steps < largest.address_steps;
                largest.address_steps = address_steps;
                !is_overtaken && !has_shrunk
            }
            Some(Some(largest)) => address_steps <= largest.address_steps || address.large == 0,
        };
        if !holds {
            self.largest = None;
        }
    }

    /// The exact bytes of all connections.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Whether more is held than the budget. It may be so without a [`Holders::largest`], if very many
    /// connections are small: only a limit on connections helps there.
    pub fn excess(&self) -> bool {
        self.total > self.limits.budget
    }

    /// Whether there is no room for so many bytes more.
    pub fn lacks(&self, bytes: usize) -> bool {
        self.total + bytes > self.limits.budget
    }

    /// The slot that gives way: of the address that holds the most, the connection that holds the most.
    ///
    /// Addresses are compared in steps of 64 KiB, connections in steps of [`SMALL_BYTES`], and of equals the
    /// one that has been so large the longest gives way. `None` if all are small. An address that has only small
    /// ones is passed over: they never pay.
    pub fn largest(&mut self) -> Option<usize> {
        if self.largest.is_none() {
            self.largest = Some(self.find_largest());
        }
        self.largest.flatten().map(|largest| largest.slot)
    }

    fn find_largest(&self) -> Option<Largest> {
        let addresses = self.addresses.iter().filter(|(_, address)| address.large > 0);
        let (id, address) = addresses.max_by_key(|(_, address)| address.bytes / ADDRESS_STEP)?;
        let mut largest: Option<(usize, &Connection)> = None;
        for (slot, connection) in self.connections() {
            if connection.address == id
                && largest.is_none_or(|(_, most)| {
                    let (steps, most_steps) = (connection.bytes / SMALL_BYTES, most.bytes / SMALL_BYTES);
                    steps > most_steps || (steps == most_steps && connection.since < most.since)
                })
            {
                largest = Some((slot, connection));
            }
        }
        let (slot, connection) = largest?;
        let (steps, address_steps) = (connection.bytes / SMALL_BYTES, address.bytes / ADDRESS_STEP);
        Some(Largest { slot, address: id, steps, address_steps })
    }

    fn connections(&self) -> impl Iterator<Item = (usize, &Connection)> {
        self.slots.iter().enumerate().filter_map(|(slot, connection)| Some((slot, connection.as_ref()?)))
    }

    /// How many connections the address has, for a limit per address. It costs a hash, once a connection.
    pub fn connections_of(&self, address: IpAddr) -> usize {
        self.ids.get(&group(address)).map_or(0, |id| self.addresses[*id].connections)
    }

    /// A number that stands for the connection's address in a fair queue: the same for all connections of
    /// an address, and the same again when it comes back, so that coming back forgives nothing.
    pub fn flow(&self, slot: usize) -> Option<u64> {
        let connection = self.slots.get(slot)?.as_ref()?;
        Some(self.addresses[connection.address].flow)
    }

    /// The connection stands so now. The same standing again changes nothing: its time runs on.
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

    /// The slot that makes room for a newcomer: the one that has been idle, or whose request has been coming,
    /// for the longest; else the one that has been taking its response the longest. If there is none, it is
    /// the oldest whose request waits: they might ask for something always, and nobody else would ever come in.
    ///
    /// It is one of the address with the most connections, if that has more than [`Limits::few_connections`], and
    /// else one of all. A newcomer that has joined already counts too. [`Limits::picked`] are found at a time; in
    /// between, the address with the most may have become another.
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

    /// Finds those who make room next.
    fn pick(&mut self) {
        let most = self.limits.picked;
        // In their order, as many as are wanted at most.
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

    /// Makes an entry for an address that had no connection.
    fn enter(&mut self, group: IpAddr, is_exempt: bool) -> usize {
        // The map's own keyed hash: nobody outside can choose addresses that collide.
        let flow = self.ids.hasher().hash_one(group);
        let id =
            self.addresses.insert(Address { group, flow, connections: 0, bytes: 0, large: 0, is_exempt });
        self.ids.insert(group, id);
        id
    }
}

/// The address that stands for all those that count as one with it.
fn group(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        // A host gets a /64 as a rule (RFC 6177), and may use any address in it.
        IpAddr::V6(address) => IpAddr::V6(Ipv6Addr::from_bits(address.to_bits() & !u128::from(u64::MAX))),
        address => address,
    }
}

#[cfg(test)]
mod tests;
