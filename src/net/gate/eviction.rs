//! Who gives way if memory or connections are short.
//!
//! Both visit all connections, so each visit makes room for more than one client.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Instant;

use crate::net::gate::Gate;
use crate::net::gate::client::State;
use crate::net::gate::connections::Connection;

/// The bytes below which a connection is small and gives way last. Also the step in which connections are compared.
const SMALL_BYTES: usize = 4096;
/// The connections that an ordinary client may have. Those of addresses with more make room first.
const FEW_CONNECTIONS: usize = 16;
/// How many connections to pick at a time to make room.
const PICKED: usize = 64;

/// The place of a connection in the order of making room: its rank, since when, and its number.
type Place = (u8, Option<Instant>, u64);
/// The rank of a client whose request waits.
const WAITING: u8 = 2;
/// The rank of a client whose body is arriving. After its second piece, it is one more.
const UPLOADING: u8 = 3;

/// A connection that was picked to make room, and its slot.
pub struct Picked {
    slot: usize,
    place: Place,
    /// Whether it was picked because its address has many connections.
    is_of_many: bool,
}

impl Gate {
    /// If more memory is held for clients than allowed, makes the largest holders give way until a sixteenth is free:
    /// first those of the address that holds the most, of these the largest, and of equals the one that has been in
    /// its state longest.
    pub(super) fn make_room(&mut self) {
        if self.held <= self.max_held {
            return;
        }
        let mut of_address: HashMap<usize, usize> = HashMap::new();
        for (_, connection) in &self.connections {
            *of_address.entry(connection.address_index).or_default() += connection.held;
        }
        let order = |(slot, c): (usize, &Connection)| {
            let (steps, since) = (c.held / SMALL_BYTES, Reverse(c.client.since));
            (steps > 0, of_address[&c.address_index], steps, since, slot)
        };
        let mut holders: Vec<_> =
            self.connections.iter().filter(|(_, c)| c.held > 0 && !c.is_own).map(order).collect();
        holders.sort_unstable();
        while self.held > self.max_held - self.max_held / 16
            && let Some((.., slot)) = holders.pop()
        {
            self.connections[slot].client.evict(&mut self.shared);
            self.drive(slot);
        }
    }

    /// Makes room for a newcomer: closes the connection that has been idle, or whose request has been arriving,
    /// longest; or else the one that has been taking its response longest. If there is none, it is the oldest
    /// whose request waits; otherwise clients that always ask for something could keep everybody else out.
    ///
    /// Bodies that are arriving come last, so that a crowd cannot break them off; but if they hold more than half of
    /// the places, they come first, so that they cannot keep everybody else out. Among them, those that have sent a
    /// single piece come first, because a crowd has no time for a second.
    ///
    /// Addresses with more than [`FEW_CONNECTIONS`] come first, the one with the most before the others.
    pub(super) fn close_longest_idle(&mut self) {
        // A request that has just arrived does not wait if a lane has room.
        self.dispatch();
        let Some(slot) = self.next_picked().or_else(|| {
            self.pick();
            self.next_picked()
        }) else {
            return;
        };
        self.connections[slot].client.evict(&mut self.shared);
        self.drive(slot);
        // It has its response, as far as that could be sent at once.
        if let Some(connection) = self.connections.get_mut(slot) {
            connection.client.close(&self.shared);
            self.drive(slot);
        }
    }

    /// The slot of the next picked connection whose place has not changed.
    fn next_picked(&mut self) -> Option<usize> {
        while let Some(picked) = self.picked.pop() {
            if let Some(connection) = self.connections.get(picked.slot)
                && place(connection, self.shared.now) == Some(picked.place)
                && (!picked.is_of_many || self.many(connection) > 0)
            {
                return Some(picked.slot);
            }
        }
        None
    }

    /// Picks the connections that make room next; the first one is last.
    fn pick(&mut self) {
        let now = self.shared.now;
        let uploads = self.connections.iter().filter(|(_, c)| c.client.is_uploading(now)).count();
        let are_too_many = uploads > self.max_connections / 2;
        let order = |(slot, connection): (usize, &Connection)| {
            let place = place(connection, now)?;
            let turn = match place.0 {
                UPLOADING.. if are_too_many => 0,
                UPLOADING.. => 3,
                WAITING => 2,
                _ => 1,
            };
            Some((Reverse(turn), self.many(connection), Reverse(place), slot))
        };
        let mut found: Vec<_> = self.connections.iter().filter_map(order).collect();
        found.sort_unstable();
        found.drain(..found.len().saturating_sub(PICKED));
        let picked = |(_, many, Reverse(place), slot)| Picked { slot, place, is_of_many: many > 0 };
        self.picked = found.into_iter().map(picked).collect();
    }

    /// How many connections the connection's address has, if they are many. The number means nothing if many clients
    /// may share the address.
    fn many(&self, connection: &Connection) -> usize {
        let connections = self.addresses.known[connection.address_index].connections;
        if connections > FEW_CONNECTIONS && !connection.is_exempt { connections } else { 0 }
    }
}

/// `None` if the connection never makes room.
fn place(connection: &Connection, now: Instant) -> Option<Place> {
    let (client, serial) = (&connection.client, connection.serial);
    match client.state() {
        _ if connection.is_own => None,
        State::Body if client.is_uploading(now) => {
            Some((UPLOADING + u8::from(client.has_sent_on), Some(client.since), serial))
        }
        State::Idle | State::Head | State::Body | State::Lingering => Some((0, Some(client.since), serial)),
        State::Responding => Some((1, Some(client.since), serial)),
        State::Ready(_) | State::Waiting => Some((WAITING, None, serial)),
        State::Inside(_) | State::Closed => None,
    }
}
