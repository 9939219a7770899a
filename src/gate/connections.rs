//! The connections to the clients, their bytes, and the addresses that they come from.

use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv6Addr, Shutdown};

use mio::event::Event;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use slab::Slab;

use crate::addresses::Peer;
use crate::client::{Client, ClientState, Shared};
use crate::lane::LaneKind;
use crate::refusal::{Refusal, RefusalReason};

/// The most bytes to read from a client in one turn.
pub const READ_BYTES: usize = 16 * 1024;

/// The client of a request. Its slot may belong to another client by the time the response comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ClientId {
    pub slot: usize,
    pub serial: u64,
}

/// A client and its socket.
pub struct Connection {
    /// A Unix socket too, as it is read, written and shut down with the same system calls.
    stream: TcpStream,
    pub client: Client,
    /// Distinguishes this client from earlier ones in the same slot.
    pub serial: u64,
    /// The address of its client, and the index of that in [`Connections::addresses`].
    address: IpAddr,
    pub address_index: usize,
    /// The limits per address do not apply, because many clients may share the address.
    pub is_exempt: bool,
    /// The bytes held for the client that [`Connections::held`] includes.
    pub held: usize,
    /// Reading or writing may make progress: set by events, cleared when the operating system would block.
    pub readable: bool,
    writable: bool,
    /// The client has shut down its side, so even a short read is followed by the end.
    read_closed: bool,
    /// It is in [`Connections::unread`].
    is_unread: bool,
}

/// The next need of a connection whose socket would block.
#[derive(Debug, PartialEq, Eq)]
pub enum Wants {
    /// An event, or the response to its request.
    Event,
    /// Another turn: it has sent more than one read takes.
    Turn,
    /// A lane of this kind for its complete request.
    Lane(LaneKind),
    /// Its removal.
    Removal,
}

impl Connection {
    /// Updates the bytes held for the client, and the sum of all clients.
    pub fn count_held(&mut self, sum: &mut usize) {
        let before = std::mem::replace(&mut self.held, self.client.held());
        *sum = *sum - before + self.held;
    }

    /// Reads and writes until the socket would block.
    fn drive(&mut self, scratch: &mut [u8], shared: &mut Shared) -> Wants {
        let client = &mut self.client;
        let mut has_read = false;
        loop {
            if !client.output().is_empty() && self.writable {
                match self.stream.write(client.output()) {
                    Ok(0) => client.close(shared),
                    Ok(count) => {
                        client.consume_output(count, shared);
                        if client.state() == ClientState::Lingering {
                            // It fails if the client has closed the connection.
                            let _ = self.stream.shutdown(Shutdown::Write);
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => self.writable = false,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => client.close(shared),
                }
                continue;
            }
            match client.state() {
                ClientState::Closed => return Wants::Removal,
                ClientState::Ready(kind) => return Wants::Lane(kind),
                _ => {}
            }
            if !client.wants_input() || !self.readable {
                return Wants::Event;
            }
            if has_read {
                return Wants::Turn;
            }
            match self.stream.read(scratch) {
                Ok(0) => {
                    self.readable = false;
                    client.end(shared);
                }
                Ok(count) => {
                    // After a short read nothing is left, and later bytes cause another event.
                    self.readable = count == READ_BYTES || self.read_closed;
                    has_read = count == READ_BYTES;
                    client.receive(&scratch[..count], shared);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => client.close(shared),
            }
        }
    }
}

/// All connections.
#[derive(Default)]
pub struct Connections {
    /// By slot.
    pub open: Slab<Connection>,
    pub max: usize,
    pub addresses: Addresses,
    /// The bytes held for all clients together, without those in lanes, and their bound.
    pub held: usize,
    pub max_held: usize,
    /// The slots of the connections to drive. By then they may have other clients or none.
    pub ready: VecDeque<usize>,
    /// The slots of the connections to read on from after the events of a round.
    pub unread: VecDeque<usize>,
    /// The number of the last connection.
    serial: u64,
    /// The buffer for reading from clients.
    scratch: Vec<u8>,
}

impl Connections {
    pub fn new(max: usize, max_held: usize) -> Self {
        Self {
            max,
            max_held,
            scratch: vec![0; READ_BYTES],
            ..Self::default()
        }
    }

    /// Returns whether there are as many connections as allowed.
    pub fn is_full(&self) -> bool {
        self.open.len() >= self.max
    }

    /// Returns whether an address has used up its quota, a quarter of all connections.
    pub fn has_its_quota(&self, address: IpAddr) -> bool {
        self.addresses.connections_of(address) >= self.max.div_ceil(4)
    }

    /// The connection of a client, if it is still open.
    pub fn get_mut(&mut self, id: ClientId) -> Option<&mut Connection> {
        self.open
            .get_mut(id.slot)
            .filter(|connection| connection.serial == id.serial)
    }

    /// Adds a client, and makes it ready, because its request may have arrived already.
    ///
    /// # Errors
    /// If the system cannot watch its socket.
    pub fn add(
        &mut self,
        mut stream: TcpStream,
        peer: Peer,
        registry: &Registry,
        shared: &Shared,
    ) -> io::Result<()> {
        // Nagle's algorithm would delay the end of a large response. A response is one write anyway, and a Unix socket
        // does not have it.
        let _ = stream.set_nodelay(true);
        let entry = self.open.vacant_entry();
        let slot = entry.key();
        registry.register(
            &mut stream,
            Token(slot),
            Interest::READABLE | Interest::WRITABLE,
        )?;
        self.serial += 1;
        entry.insert(Connection {
            stream,
            client: Client::new(peer, shared),
            serial: self.serial,
            address: peer.ip(),
            address_index: self.addresses.join(peer.ip()),
            is_exempt: shared.is_exempt(peer.ip()),
            held: 0,
            readable: true,
            writable: true,
            read_closed: false,
            is_unread: false,
        });
        self.ready.push_back(slot);
        Ok(())
    }

    /// Notes that reading or writing may make progress.
    pub fn note_event(&mut self, slot: usize, event: &Event, shared: &Shared) {
        // Events are hints: the slot may have another client by now.
        let Some(connection) = self.open.get_mut(slot) else {
            return;
        };
        connection.readable |= event.is_readable() || event.is_error();
        connection.writable |= event.is_writable() || event.is_error();
        connection.read_closed |= event.is_read_closed();
        // Nothing is read or written while its request waits, so a reset is seen only here.
        if event.is_error() || event.is_write_closed() {
            connection.client.close(shared);
        }
        self.ready.push_back(slot);
    }

    /// Reads from and writes to one client until its socket would block, and returns its next need.
    pub fn drive(&mut self, slot: usize, shared: &mut Shared) -> Wants {
        let Some(connection) = self.open.get_mut(slot) else {
            return Wants::Event;
        };
        let wants = connection.drive(&mut self.scratch, shared);
        if connection.client.address != connection.address {
            connection.address = connection.client.address;
            connection.is_exempt = shared.is_exempt(connection.address);
            self.addresses.leave(connection.address_index);
            connection.address_index = self.addresses.join(connection.address);
        }
        connection.count_held(&mut self.held);
        wants
    }

    /// Makes a client wait until the other clients have had a turn.
    pub fn postpone(&mut self, slot: usize) {
        if !std::mem::replace(&mut self.open[slot].is_unread, true) {
            self.unread.push_back(slot);
        }
    }

    /// Makes the first waiting client ready for another turn.
    pub fn read_on(&mut self) {
        let Some(slot) = self.unread.pop_front() else {
            return;
        };
        if let Some(connection) = self.open.get_mut(slot) {
            connection.is_unread = false;
            self.ready.push_back(slot);
        }
    }

    pub fn remove(&mut self, slot: usize) {
        let connection = self.open.remove(slot);
        self.held -= connection.held;
        self.addresses.leave(connection.address_index);
    }

    /// Makes all connections ready. A request that has been sent has begun, even before its event.
    pub fn read_all(&mut self) {
        for (slot, connection) in &mut self.open {
            connection.readable = true;
            self.ready.push_back(slot);
        }
    }

    /// Expires the clients that match.
    pub fn expire(&mut self, matches: impl Fn(&Client) -> bool, shared: &mut Shared) {
        for (slot, connection) in &mut self.open {
            if matches(&connection.client) {
                connection.client.expire(shared);
                self.ready.push_back(slot);
            }
        }
    }

    /// Rejects a client: tries to send a 503, and closes.
    pub fn reject(
        &mut self,
        mut stream: TcpStream,
        peer: Peer,
        message: &'static str,
        shared: &mut Shared,
    ) {
        let mut client = Client::new(peer, shared);
        // Best effort. The bytes that have arrived are read, because the response depends on them (HEAD gets no body), and
        // because closing with unread bytes would send a reset.
        let count = stream.read(&mut self.scratch).unwrap_or(0);
        client.receive(&self.scratch[..count], shared);
        if client.state() != ClientState::Responding {
            client.reject(Refusal::because(RefusalReason::Overloaded, message), shared);
        }
        send_last(&mut stream, client.output(), &mut self.scratch);
    }

    /// Evicts a client: tries to send a 503 if it has a request, and closes.
    pub fn evict(&mut self, slot: usize, shared: &mut Shared) {
        let connection = &mut self.open[slot];
        connection.client.evict(shared);
        send_last(
            &mut connection.stream,
            connection.client.output(),
            &mut self.scratch,
        );
        self.remove(slot);
    }
}

/// Sends as much of a last response as the socket accepts at once.
fn send_last(stream: &mut TcpStream, output: &[u8], scratch: &mut [u8]) {
    if !output.is_empty() {
        let _ = stream.write(output);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read(scratch);
    }
}

/// The next turns of an address that takes turns with the others, by `Size`.
pub type Turns = [u64; 4];

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
