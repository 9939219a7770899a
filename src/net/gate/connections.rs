//! The connections to the clients, and their bytes.

use std::collections::VecDeque;
use std::io::{self, ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown};

use mio::event::Event;
use mio::net::TcpStream;
use mio::{Interest, Registry, Token};
use slab::Slab;

use crate::base::http::{ApiError, Code};
use crate::net::gate::addresses::Addresses;
use crate::net::gate::client::{Client, ClientState, Shared};
use crate::net::gate::lanes::ClientId;
use crate::net::gate::peer::Peer;
use crate::net::lane::LaneKind;

/// The bytes to read from a client before the others get a turn.
pub const READ_BYTES: usize = 16 * 1024;

/// A client and its socket.
pub struct Connection {
    /// A Unix socket too, as it is read, written and shut down with the same system calls.
    stream: TcpStream,
    pub client: Client,
    /// Distinguishes this client from earlier ones in the same slot.
    pub serial: u64,
    /// The address that it counts for, and its index in [`Connections::addresses`].
    address: IpAddr,
    pub address_index: usize,
    /// Whether many clients may share the address, so that the limits per address do not apply.
    pub is_exempt: bool,
    /// The bytes held for the client, as far as they count in [`Connections::held`].
    pub held: usize,
    /// Whether reading or writing may make progress: set by events, cleared when the operating system would
    /// block.
    pub readable: bool,
    writable: bool,
    /// Whether the client has shut down its side, so that even a short read is followed by the end.
    read_closed: bool,
    /// Whether it waits in [`Connections::unread`].
    is_unread: bool,
}

/// The next step of a connection whose bytes have been moved as far as possible.
#[derive(Debug, PartialEq, Eq)]
pub enum Wants {
    /// An event, or the response to its request.
    Event,
    /// Another turn: it has sent more than is read in one.
    Turn,
    /// A lane of this kind for its complete request.
    Lane(LaneKind),
    /// Its removal.
    Removal,
}

impl Connection {
    /// Counts the bytes that are held for the client now, in the sum of all clients.
    pub fn count_held(&mut self, sum: &mut usize) {
        let before = std::mem::replace(&mut self.held, self.client.held());
        *sum = *sum - before + self.held;
    }

    /// Moves the client's bytes as far as possible without blocking.
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
                            // If the client has gone, there is nothing to shut down.
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
                    // A short read: nothing is left, and later bytes cause another event.
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
    /// The bytes held for all clients together, without those in lanes, and the most that may be.
    pub held: usize,
    pub max_held: usize,
    /// The slots of the connections to drive. They may have other clients by then, or none.
    pub ready: VecDeque<usize>,
    /// The slots of the connections to drive when the others have had a turn. A crowd of these must not hold up events.
    pub unread: VecDeque<usize>,
    /// The number of the last connection.
    serial: u64,
    /// The buffer for reading from clients.
    scratch: Vec<u8>,
}

impl Connections {
    pub fn new(max: usize, max_held: usize) -> Self {
        Self { max, max_held, scratch: vec![0; READ_BYTES], ..Self::default() }
    }

    /// Whether there are as many as allowed.
    pub fn is_full(&self) -> bool {
        self.open.len() >= self.max
    }

    /// Whether an address has as many as a single one may have, so that it cannot take all.
    pub fn has_its_quota(&self, address: IpAddr) -> bool {
        self.addresses.connections_of(address) >= self.max.div_ceil(4)
    }

    /// The connection of a client, if the client has not gone.
    pub fn get_mut(&mut self, id: ClientId) -> Option<&mut Connection> {
        self.open.get_mut(id.slot).filter(|connection| connection.serial == id.serial)
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
        registry.register(&mut stream, Token(slot), Interest::READABLE | Interest::WRITABLE)?;
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

    /// Notes what has become possible for a client.
    pub fn note_event(&mut self, slot: usize, event: &Event, shared: &Shared) {
        // Events are hints: the slot may have another client by now, and only a read or write shows the
        // truth.
        let Some(connection) = self.open.get_mut(slot) else { return };
        connection.readable |= event.is_readable() || event.is_error();
        connection.writable |= event.is_writable() || event.is_error();
        connection.read_closed |= event.is_read_closed();
        // While its request waits, nothing is read or written, so only this shows that the client has gone.
        if event.is_error() || event.is_write_closed() {
            connection.client.close(shared);
        }
        self.ready.push_back(slot);
    }

    /// Moves one client's bytes as far as possible without blocking, and returns what it wants then.
    pub fn drive(&mut self, slot: usize, shared: &mut Shared) -> Wants {
        let Some(connection) = self.open.get_mut(slot) else { return Wants::Event };
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

    /// Makes a client wait until the others have had a turn.
    pub fn postpone(&mut self, slot: usize) {
        if !std::mem::replace(&mut self.open[slot].is_unread, true) {
            self.unread.push_back(slot);
        }
    }

    /// Makes the first of the clients ready that wait for another turn.
    pub fn read_on(&mut self) {
        let Some(slot) = self.unread.pop_front() else { return };
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

    /// Makes all ready. A request that has been sent has begun, even if its event has not been seen yet.
    pub fn read_all(&mut self) {
        for (slot, connection) in &mut self.open {
            connection.readable = true;
            self.ready.push_back(slot);
        }
    }

    /// Answers the clients that are so, because nobody else will any more.
    pub fn expire(&mut self, is_so: impl Fn(&Client) -> bool, shared: &mut Shared) {
        for (slot, connection) in &mut self.open {
            if is_so(&connection.client) {
                connection.client.expire(shared);
                self.ready.push_back(slot);
            }
        }
    }

    /// Rejects a client: tries to send a 503, and closes.
    pub fn reject(&mut self, mut stream: TcpStream, peer: Peer, message: &'static str, shared: &mut Shared) {
        let mut client = Client::new(peer, shared);
        // Best effort. What has arrived is read, because it says what the client must get, such as no body for HEAD, and
        // because closing with unread bytes would send a reset.
        let count = stream.read(&mut self.scratch).unwrap_or(0);
        client.receive(&self.scratch[..count], shared);
        if client.state() != ClientState::Responding {
            client.reject(ApiError::with_message(Code::Overloaded, message), shared);
        }
        send_last(&mut stream, client.output(), &mut self.scratch);
    }

    /// Evicts a client: tries to send a 503 if it has a request, and closes.
    pub fn evict(&mut self, slot: usize, shared: &mut Shared) {
        let connection = &mut self.open[slot];
        connection.client.evict(shared);
        send_last(&mut connection.stream, connection.client.output(), &mut self.scratch);
        self.remove(slot);
    }
}

/// Sends a last response as far as that is possible at once.
fn send_last(stream: &mut TcpStream, output: &[u8], scratch: &mut [u8]) {
    if !output.is_empty() {
        let _ = stream.write(output);
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read(scratch);
    }
}
