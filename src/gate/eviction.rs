//! The clients that are evicted when connections or memory are short.
//!
//! A search visits all connections, so each search finds more than one.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::time::Instant;

use crate::client::ClientState;
use crate::connections::{Connection, Connections};

/// The bytes below which a connection is small, and evicted last. Also the step in which connections are compared.
const SMALL_BYTES: usize = 4096;
/// The connections that an ordinary client may have. Those of addresses with more are evicted before others of their
/// rank.
const FEW_CONNECTIONS: usize = 16;
/// The number of connections to find at a time.
const CANDIDATES: usize = 64;

/// The slots to evict when memory is short; the next one is the last element. They are ordered by the bytes that the address
/// holds, then by those of the connection, then by the time that it has been in its state.
pub fn largest_holders(connections: &Connections) -> Vec<usize> {
    let mut of_address: HashMap<usize, usize> = HashMap::new();
    for (_, connection) in &connections.open {
        *of_address.entry(connection.address_index).or_default() += connection.held;
    }
    let order = |slot: &usize| {
        let connection = &connections.open[*slot];
        let steps = connection.held / SMALL_BYTES;
        (
            steps > 0,
            of_address[&connection.address_index],
            steps,
            Reverse(connection.client.since),
            *slot,
        )
    };
    let holders = connections
        .open
        .iter()
        .filter(|(_, connection)| connection.held > 0);
    let mut slots: Vec<_> = holders.map(|(slot, _)| slot).collect();
    slots.sort_by_cached_key(order);
    slots
}

/// The classes of connections, in the order in which they are evicted for a newcomer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    /// It waits for bytes of its client.
    Quiet,
    /// Its request waits, or its response is being sent.
    Busy,
    /// A body is arriving, and only one piece of it has arrived so far.
    BeginsUpload,
    /// A body is arriving.
    Uploads,
}

/// A connection's place in the order of eviction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    rank: Rank,
    /// Its address has few connections, or is shared by many clients.
    is_of_few: bool,
    /// The start of its state. `None` if it is busy: of these the oldest connection is evicted, because otherwise clients
    /// that always have a request could keep all others out.
    since: Option<Instant>,
    serial: u64,
}

impl Place {
    /// `None` if the connection is never evicted.
    fn of(connection: &Connection, connections: &Connections, now: Instant) -> Option<Self> {
        let client = &connection.client;
        let rank = match client.state() {
            ClientState::Body if client.is_uploading(now) && client.has_sent_on => Rank::Uploads,
            ClientState::Body if client.is_uploading(now) => Rank::BeginsUpload,
            ClientState::Idle | ClientState::Head | ClientState::Body | ClientState::Lingering => {
                Rank::Quiet
            }
            ClientState::Ready(_)
            | ClientState::Waiting
            | ClientState::HeldBack
            | ClientState::Responding => Rank::Busy,
            ClientState::Inside(_) | ClientState::Closed => return None,
        };
        let of_address = connections.addresses.known[connection.address_index].connections;
        Some(Self {
            rank,
            is_of_few: connection.is_exempt || of_address <= FEW_CONNECTIONS,
            since: (rank != Rank::Busy).then_some(client.since),
            serial: connection.serial,
        })
    }
}

/// The connections that are evicted next for newcomers.
#[derive(Default)]
pub struct Candidates(Vec<(Place, usize)>);

impl Candidates {
    /// The slot of the connection to evict: the one that has been idle or in the middle of a request longest, or else the
    /// oldest busy one.
    ///
    /// Uploads come last, so that a crowd cannot break them off. If they hold more than half of the connections, they come
    /// first, so that they cannot keep others out.
    pub fn next(&mut self, connections: &Connections, now: Instant) -> Option<usize> {
        self.next_unchanged(connections, now).or_else(|| {
            self.find(connections, now);
            self.next_unchanged(connections, now)
        })
    }

    /// The slot of the next candidate with an unchanged place.
    fn next_unchanged(&mut self, connections: &Connections, now: Instant) -> Option<usize> {
        while let Some((found, slot)) = self.0.pop() {
            let connection = connections.open.get(slot);
            if connection.and_then(|c| Place::of(c, connections, now)) == Some(found) {
                return Some(slot);
            }
        }
        None
    }

    /// Finds the next candidates. The first to evict is the last element.
    fn find(&mut self, connections: &Connections, now: Instant) {
        let place = |(slot, c)| Some((Place::of(c, connections, now)?, slot));
        self.0 = connections.open.iter().filter_map(place).collect();
        let uploads = self
            .0
            .iter()
            .filter(|(place, _)| place.rank >= Rank::BeginsUpload)
            .count();
        let are_too_many = uploads > connections.max / 2;
        self.0.sort_unstable_by_key(|(place, _)| {
            let comes_first = are_too_many && place.rank >= Rank::BeginsUpload;
            Reverse((!comes_first, *place))
        });
        self.0.drain(..self.0.len().saturating_sub(CANDIDATES));
    }

    /// Forgets the candidates, because others may come before them by now.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
