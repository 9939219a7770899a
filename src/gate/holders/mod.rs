//! Who holds what: one budget for all bytes held for clients, and whose connection gives way first.
//!
//! It knows slots, addresses and sizes, and nothing of sockets, requests or time. No operation looks at all
//! connections: each takes constant or logarithmic time, and a connection that holds little and stays so
//! costs an addition and a subtraction.

use std::cmp::Reverse;
use std::collections::{BTreeSet, HashMap};
use std::hash::BuildHasher;
use std::net::{IpAddr, Ipv6Addr};

use slab::Slab;

/// Bytes below which a connection is small: it never gives way. Also the step in which connections are
/// compared: of two within one step, either may count as the larger.
pub const SMALL_BYTES: usize = 4096;
/// The step in bytes in which addresses are compared. It is coarser, as their sums change more often.
const ADDRESS_STEP: usize = 64 * 1024;
/// The most addresses that [`Holders::longest_idle`] looks at.
const MOST_LOOKED_AT: usize = 8;

/// As many connections an ordinary client may have; only who has more makes room for others.
/// (Fewer in tests, which are about the order.)
const FEW_CONNECTIONS: usize = if cfg!(test) { 3 } else { 16 };
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

/// An address's place in [`Holders::addresses`], so that no request costs the hash of an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct AddressId(usize);

/// A connection.
struct Connection {
    address: AddressId,
    /// When it came, counted in connections.
    joined: u64,
    bytes: usize,
    /// When it came to its present size, counted in changes of all sizes.
    since: u64,
    standing: Standing,
    /// When it came to its standing, counted in changes of standing.
    stands_since: u64,
    /// The neighbours in the lists of its standing: that of its address, and that of all.
    places: [Place; 2],
}

/// The neighbours in a list.
#[derive(Clone, Copy, Default)]
struct Place {
    before: Option<usize>,
    after: Option<usize>,
}

/// Which of a connection's two places.
const OF_ADDRESS: usize = 0;
const OF_ALL: usize = 1;

/// The slots of one standing, the one that came to it first at the head.
#[derive(Clone, Copy, Default)]
struct List {
    first: Option<usize>,
    last: Option<usize>,
}

/// An address with at least one connection.
struct Address {
    group: IpAddr,
    flow: u64,
    connections: usize,
    bytes: usize,
    /// The connections that are not small: steps of [`SMALL_BYTES`], since when, and slot.
    large: BTreeSet<(usize, Reverse<u64>, usize)>,
    /// Whether many may stand behind it, so that their number says nothing.
    is_exempt: bool,
    lists: Lists,
    /// Its connections, the oldest first: when they came, and slot.
    by_age: BTreeSet<(u64, usize)>,
}

/// A list for each standing that makes room.
#[derive(Default)]
struct Lists {
    idle: List,
    coming: List,
    taking: List,
}

impl Lists {
    fn of(&mut self, standing: Standing) -> Option<&mut List> {
        match standing {
            Standing::Idle => Some(&mut self.idle),
            Standing::Coming => Some(&mut self.coming),
            Standing::Taking => Some(&mut self.taking),
            Standing::Waiting | Standing::Busy => None,
        }
    }
}

impl Address {
    /// Its size in steps, where one of its connections could give way.
    fn steps(&self) -> Option<usize> {
        (!self.large.is_empty()).then_some(self.bytes / ADDRESS_STEP)
    }
}

/// All connections, by slot and by address. A slot that is not known here is passed over in silence.
///
/// The IPv6 addresses of one /64 count as one address, as a single host has at least so many; an
/// IPv4-mapped one counts as IPv4.
pub struct Holders {
    budget: usize,
    total: usize,
    connections: usize,
    /// Counts those who came, for the order of age.
    joined: u64,
    /// Counts the changes of sizes, for the order among equals.
    changes: u64,
    /// Counts the changes of standings, for the order of those who make room.
    standings: u64,
    /// Slots are small integers: the length is the most connections there ever were at once.
    slots: Vec<Option<Connection>>,
    addresses: Slab<Address>,
    ids: HashMap<IpAddr, AddressId>,
    /// The addresses with a connection that is not small, by [`Address::steps`].
    by_steps: BTreeSet<(usize, AddressId)>,
    /// The connections of all addresses.
    all: Lists,
    /// The same, the oldest first: when they came, and slot.
    by_age: BTreeSet<(u64, usize)>,
    /// All addresses but those that are exempt, by how many connections they have.
    by_connections: BTreeSet<(usize, AddressId)>,
}

impl Holders {
    /// Nobody yet. `budget` is in bytes, for all connections together; there is no default.
    pub fn new(budget: usize) -> Self {
        Self {
            budget,
            total: 0,
            connections: 0,
            joined: 0,
            changes: 0,
            standings: 0,
            slots: Vec::new(),
            addresses: Slab::new(),
            ids: HashMap::new(),
            by_steps: BTreeSet::new(),
            all: Lists::default(),
            by_age: BTreeSet::new(),
            by_connections: BTreeSet::new(),
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
        let standing = Standing::Idle;
        self.standings += 1;
        self.slots[slot] = Some(Connection {
            address: id,
            joined,
            bytes: 0,
            since: 0,
            standing,
            stands_since: self.standings,
            places: Default::default(),
        });
        self.connections += 1;
        self.by_age.insert((joined, slot));
        self.addresses[id.0].by_age.insert((joined, slot));
        self.count(id, self.addresses[id.0].connections + 1);
        self.link(slot);
    }

    /// A connection has gone: all that it held is released.
    pub fn leave(&mut self, slot: usize) {
        self.hold(slot, 0);
        self.stand(slot, Standing::Busy);
        if let Some(connection) = self.slots.get_mut(slot).and_then(Option::take) {
            self.connections -= 1;
            self.by_age.remove(&(connection.joined, slot));
            self.addresses[connection.address.0].by_age.remove(&(connection.joined, slot));
            self.count(connection.address, self.addresses[connection.address.0].connections - 1);
        }
    }

    /// The connection turned out to serve another address, as a proxy says: it goes there with its bytes
    /// and standing, as the latest of that standing. The same address again costs no hash.
    pub fn change_address(&mut self, slot: usize, address: IpAddr, is_exempt: bool) {
        let Some(Some(connection)) = self.slots.get(slot) else { return };
        if self.addresses[connection.address.0].group == group(address) {
            return;
        }
        let (bytes, standing, joined) = (connection.bytes, connection.standing, connection.joined);
        self.join_as(slot, address, is_exempt, joined);
        self.stand(slot, standing);
        self.hold(slot, bytes);
    }

    /// The connection holds so many bytes now, all in all. Within one step of [`SMALL_BYTES`] this is
    /// nearly free, so it may be said after every event.
    pub fn hold(&mut self, slot: usize, bytes: usize) {
        let Some(Some(connection)) = self.slots.get_mut(slot) else { return };
        let before = std::mem::replace(&mut connection.bytes, bytes);
        if bytes == before {
            return;
        }
        self.total = self.total - before + bytes;
        let id = connection.address;
        let address = &mut self.addresses[id.0];
        let old_steps = address.steps();
        address.bytes = address.bytes - before + bytes;
        let (old, new) = (before / SMALL_BYTES, bytes / SMALL_BYTES);
        if old != new {
            self.changes += 1;
            address.large.remove(&(old, Reverse(connection.since), slot));
            connection.since = self.changes;
            if new > 0 {
                address.large.insert((new, Reverse(connection.since), slot));
            }
        }
        let new_steps = address.steps();
        if old_steps != new_steps {
            if let Some(steps) = old_steps {
                self.by_steps.remove(&(steps, id));
            }
            if let Some(steps) = new_steps {
                self.by_steps.insert((steps, id));
            }
        }
    }

    /// The exact bytes of all connections.
    pub fn total(&self) -> usize {
        self.total
    }

    /// Whether more is held than the budget. It may be so without a [`Holders::largest`], where the small
    /// ones are very many: only a limit on connections helps there.
    pub fn excess(&self) -> bool {
        self.total > self.budget
    }

    /// Whether there is no room for so many bytes more.
    pub fn lacks(&self, bytes: usize) -> bool {
        self.total + bytes > self.budget
    }

    /// The slot that gives way: of the address that holds the most, the connection that holds the most.
    ///
    /// Addresses are compared in steps of 64 KiB, connections in steps of [`SMALL_BYTES`], and of equals the
    /// one that has been so large the longest gives way. `None` where all are small. An address that has only small ones is passed over: they never pay.
    pub fn largest(&self) -> Option<usize> {
        let (_, id) = self.by_steps.last()?;
        let (_, _, slot) = self.addresses[id.0].large.last()?;
        Some(*slot)
    }

    /// How many connections there are.
    #[cfg(test)]
    pub fn connections(&self) -> usize {
        self.connections
    }

    /// How many connections the address has, for a limit per address. It costs a hash, once a connection.
    pub fn connections_of(&self, address: IpAddr) -> usize {
        self.ids.get(&group(address)).map_or(0, |id| self.addresses[id.0].connections)
    }

    /// A number that stands for the connection's address in a fair queue: the same for all connections of
    /// an address, and the same again when it comes back, so that coming back forgives nothing.
    pub fn flow(&self, slot: usize) -> Option<u64> {
        let connection = self.slots.get(slot)?.as_ref()?;
        Some(self.addresses[connection.address.0].flow)
    }

    /// The connection stands so now. The same standing again changes nothing: its time runs on.
    pub fn stand(&mut self, slot: usize, standing: Standing) {
        let Some(Some(connection)) = self.slots.get(slot) else { return };
        if connection.standing == standing {
            return;
        }
        self.unlink(slot);
        self.standings += 1;
        if let Some(Some(connection)) = self.slots.get_mut(slot) {
            connection.standing = standing;
            connection.stands_since = self.standings;
        }
        self.link(slot);
    }

    /// The slot that makes room for a newcomer: the one that has been idle, or whose request has been coming,
    /// for the longest; else the one that has been taking its response the longest. Where there is none, it is
    /// the oldest whose request waits: they might ask for something always, and nobody else would ever come in.
    ///
    /// It is one of the address with the most connections, where that has more than a client needs, and else
    /// one of all. An address without such connections is passed over, but no more than 8 addresses are looked
    /// at. A newcomer that has joined already counts too.
    pub fn longest_idle(&self) -> Option<usize> {
        let idle =
            self.many().find_map(|address| self.first(&address.lists)).or_else(|| self.first(&self.all));
        let oldest = || self.many().find_map(|address| self.oldest(&address.by_age));
        idle.or_else(oldest).or_else(|| self.oldest(&self.by_age))
    }

    /// The oldest whose request waits. Those that are passed over are in the lanes, which take no more than
    /// some hundreds.
    fn oldest(&self, by_age: &BTreeSet<(u64, usize)>) -> Option<usize> {
        let waits =
            |slot: &usize| self.standing(*slot).is_some_and(|(standing, _)| standing == Standing::Waiting);
        by_age.iter().map(|(_, slot)| *slot).find(waits)
    }

    /// The addresses with more connections than a client needs, as far as they are looked at.
    fn many(&self) -> impl Iterator<Item = &Address> {
        let busiest = self.by_connections.iter().rev().take(MOST_LOOKED_AT);
        let many = busiest.take_while(|(connections, _)| *connections > FEW_CONNECTIONS);
        many.map(|(_, id)| &self.addresses[id.0])
    }

    /// Who of these lists makes room first.
    fn first(&self, lists: &Lists) -> Option<usize> {
        let since = |slot: &usize| self.slots.get(*slot)?.as_ref().map(|c| c.stands_since);
        let waiting = [lists.idle.first, lists.coming.first].into_iter().flatten();
        waiting.min_by_key(since).or(lists.taking.first)
    }

    /// Makes an entry for an address that had no connection.
    fn enter(&mut self, group: IpAddr, is_exempt: bool) -> AddressId {
        // The map's own keyed hash: nobody outside can choose addresses that collide.
        let flow = self.ids.hasher().hash_one(group);
        let address = Address {
            group,
            flow,
            connections: 0,
            bytes: 0,
            large: BTreeSet::new(),
            is_exempt,
            lists: Lists::default(),
            by_age: BTreeSet::new(),
        };
        let id = AddressId(self.addresses.insert(address));
        self.ids.insert(group, id);
        id
    }

    /// Sets how many connections an address has; without any it is forgotten.
    fn count(&mut self, id: AddressId, connections: usize) {
        let address = &mut self.addresses[id.0];
        self.by_connections.remove(&(address.connections, id));
        address.connections = connections;
        if connections > 0 {
            if !address.is_exempt {
                self.by_connections.insert((connections, id));
            }
        } else {
            self.ids.remove(&address.group);
            self.addresses.remove(id.0);
        }
    }

    /// Puts a slot at the end of the lists of its standing.
    fn link(&mut self, slot: usize) {
        for which in [OF_ADDRESS, OF_ALL] {
            let Some((standing, address)) = self.standing(slot) else { return };
            let Some(list) = self.list(which, address, standing) else { return };
            let before = list.last.replace(slot);
            if before.is_none() {
                list.first = Some(slot);
            }
            self.place(Some(slot), which, |place| *place = Place { before, after: None });
            self.place(before, which, |place| place.after = Some(slot));
        }
    }

    /// Takes a slot out of the lists of its standing.
    fn unlink(&mut self, slot: usize) {
        for which in [OF_ADDRESS, OF_ALL] {
            let Some((standing, address)) = self.standing(slot) else { return };
            let mut own = Place::default();
            self.place(Some(slot), which, |place| own = *place);
            let Some(list) = self.list(which, address, standing) else { return };
            if own.before.is_none() {
                list.first = own.after;
            }
            if own.after.is_none() {
                list.last = own.before;
            }
            self.place(own.before, which, |place| place.after = own.after);
            self.place(own.after, which, |place| place.before = own.before);
        }
    }

    fn standing(&self, slot: usize) -> Option<(Standing, AddressId)> {
        let connection = self.slots.get(slot)?.as_ref()?;
        Some((connection.standing, connection.address))
    }

    fn list(&mut self, which: usize, address: AddressId, standing: Standing) -> Option<&mut List> {
        let lists = if which == OF_ALL { &mut self.all } else { &mut self.addresses[address.0].lists };
        lists.of(standing)
    }

    /// Changes a place of a slot, where there is one.
    fn place(&mut self, slot: Option<usize>, which: usize, change: impl FnOnce(&mut Place)) {
        if let Some(Some(connection)) = slot.and_then(|slot| self.slots.get_mut(slot)) {
            change(&mut connection.places[which]);
        }
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
