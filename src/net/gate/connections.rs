//! The gate's work on its clients: accepting them, moving their bytes, and making room when it is short.

use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Shutdown};
use std::os::fd::OwnedFd;

use mio::net::TcpStream;
use mio::{Interest, Token};

use crate::base::http::{ApiError, Code};
use crate::net::gate::addresses::Peer;
use crate::net::gate::client::{Client, State};
use crate::net::gate::lanes::ClientId;
use crate::net::gate::{FIRST_LANE, Gate};

/// The clients to accept before the others get a turn.
pub const MAX_ACCEPTS: usize = 128;
/// The bytes to read from a client before the others get a turn.
pub const READ_BYTES: usize = 16 * 1024;
/// The clients with more to read that are served before the others get a turn.
const MAX_READ_ON: usize = 4;

/// A client and its socket.
pub struct Connection {
    /// A Unix socket too, as it is read, written and shut down with the same system calls.
    stream: TcpStream,
    pub client: Client,
    /// Tells this client from earlier ones in the same slot.
    pub serial: u64,
    /// The address that it counts for, and its index in [`Gate::addresses`].
    address: IpAddr,
    pub address_index: usize,
    /// Whether many clients may share the address, so that the limits per address do not apply.
    pub is_exempt: bool,
    /// Whether it is the service's own, for its health check.
    pub is_own: bool,
    /// The bytes held for the client, as far as they count in [`Gate::held`].
    pub held: usize,
    /// Whether reading or writing may make progress: set by events, cleared when the operating system would
    /// block.
    pub readable: bool,
    writable: bool,
    /// Whether the client has shut down its side, so that even a short read is followed by the end.
    read_closed: bool,
    /// Whether it is on the list of clients with more to read.
    is_listed: bool,
}

impl Connection {
    /// Counts the bytes that are held for the client now, in the sum of all clients.
    pub fn count_held(&mut self, sum: &mut usize) {
        let before = std::mem::replace(&mut self.held, self.client.held());
        *sum = *sum - before + self.held;
    }
}

impl Gate {
    /// Notes that clients may be waiting.
    pub(super) fn note_newcomers(&mut self) {
        if let Some(listening) = &mut self.listening {
            listening.is_ready = true;
        }
    }

    /// Accepts waiting clients, at most this many.
    pub(super) fn accept(&mut self, most: usize) {
        for _ in 0..most {
            let Some(listening) = &mut self.listening else { return };
            match listening.accept(self.shared.now) {
                Ok(Some((stream, peer))) => self.let_in(stream, peer),
                Ok(None) => return,
                Err(_) => self.close_longest_idle(),
            }
        }
    }

    /// Accepts the service's own connections regardless of limits. They take no place from clients, and make room for
    /// none. Each has one request, which has already arrived.
    pub(super) fn let_in_own(&mut self) {
        for stream in self.stopper.take_own() {
            if let Some(slot) = self.admit(OwnedFd::from(stream).into(), Peer::Unix) {
                self.connections[slot].is_own = true;
                self.own += 1;
                self.drive(slot);
            }
        }
    }

    pub(super) fn let_in(&mut self, stream: TcpStream, peer: Peer) {
        let most = self.max_connections;
        // A single address must not take all places; a proxy stands for many clients.
        let has_its_share = self.addresses.connections_of(peer.ip()) >= most.div_ceil(4);
        if has_its_share && !self.shared.is_exempt(peer.ip()) {
            let address = peer.ip();
            self.troubles.say("", &format!(
                "{address} has a quarter of all connections, and gets no more; if it is a proxy, add it with --trusted-proxy"
            ));
            let message = "This address has too many connections; try again in a moment.";
            return self.turn_away(stream, peer, message);
        }
        if self.connections.len() >= most + self.own {
            self.close_longest_idle();
        }
        if self.connections.len() >= most + self.own {
            let message = "The service has too many connections; try again in a moment.";
            return self.turn_away(stream, peer, message);
        }
        if let Some(slot) = self.admit(stream, peer) {
            self.drive(slot);
            self.make_room();
        }
    }

    /// Gives a client a slot.
    fn admit(&mut self, mut stream: TcpStream, peer: Peer) -> Option<usize> {
        // Nagle's algorithm would delay the end of a large response. A response is one write anyway, and a Unix socket
        // does not have it.
        let _ = stream.set_nodelay(true);
        let entry = self.connections.vacant_entry();
        let slot = entry.key();
        let token = Token(FIRST_LANE + self.lanes.len() + slot);
        let interests = Interest::READABLE | Interest::WRITABLE;
        if let Err(error) = self.poll.registry().register(&mut stream, token, interests) {
            self.troubles.say("", &format!("cannot watch a connection: {error}"));
            return None;
        }
        self.serial += 1;
        entry.insert(Connection {
            stream,
            client: Client::new(peer, &self.shared),
            serial: self.serial,
            address: peer.ip(),
            address_index: self.addresses.join(peer.ip()),
            is_exempt: self.shared.is_exempt(peer.ip()),
            is_own: false,
            held: 0,
            // Its request may have arrived already; then it is not idle.
            readable: true,
            writable: true,
            read_closed: false,
            is_listed: false,
        });
        Some(slot)
    }

    /// Refuses a client for which there is no place: tries to send a 503, and closes.
    fn turn_away(&mut self, mut stream: TcpStream, peer: Peer, message: &'static str) {
        let mut client = Client::new(peer, &self.shared);
        // Best effort. What has arrived is read, because it says what the client must get, such as no body for HEAD, and
        // because closing with unread bytes would send a reset.
        let count = stream.read(&mut self.scratch).unwrap_or(0);
        client.receive(&self.scratch[..count], &mut self.shared);
        if client.state() != State::Responding {
            client.refuse(ApiError::with_message(Code::Overloaded, message), &mut self.shared);
        }
        let _ = stream.write(client.output());
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read(&mut self.scratch);
    }

    /// Notes what has become possible for a client, and does it.
    pub(super) fn note_event(&mut self, slot: usize, event: &mio::event::Event) {
        // Events are hints: the slot may have another client by now, and only a read or write shows the
        // truth.
        let Some(connection) = self.connections.get_mut(slot) else { return };
        connection.readable |= event.is_readable() || event.is_error();
        connection.writable |= event.is_writable() || event.is_error();
        connection.read_closed |= event.is_read_closed();
        // While its request waits, nothing is read or written, so only this shows that the client has gone.
        if event.is_error() || event.is_write_closed() {
            connection.client.close(&self.shared);
        }
        self.drive(slot);
        self.make_room();
    }

    /// The slots of the clients that are so.
    pub(super) fn slots_of(&self, is_so: impl Fn(&Client) -> bool) -> Vec<usize> {
        self.connections.iter().filter(|(_, c)| is_so(&c.client)).map(|(slot, _)| slot).collect()
    }

    /// Moves one client's bytes as far as possible without blocking.
    pub(super) fn drive(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let (client, shared) = (&mut connection.client, &mut self.shared);
        let (mut wants_lane, mut has_read) = (None, false);
        loop {
            if !client.output().is_empty() && connection.writable {
                match connection.stream.write(client.output()) {
                    Ok(0) => client.close(shared),
                    Ok(count) => {
                        client.consume_output(count, shared);
                        if client.state() == State::Lingering {
                            // If the client has gone, there is nothing to shut down.
                            let _ = connection.stream.shutdown(Shutdown::Write);
                        }
                    }
                    Err(error) if error.kind() == ErrorKind::WouldBlock => connection.writable = false,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => client.close(shared),
                }
                continue;
            }
            match client.state() {
                State::Closed => {
                    let connection = self.connections.remove(slot);
                    self.held -= connection.held;
                    self.own -= usize::from(connection.is_own);
                    self.addresses.leave(connection.address_index);
                    return;
                }
                State::Ready(kind) => {
                    wants_lane = Some(kind);
                    break;
                }
                _ => {}
            }
            if !client.wants_input() || !connection.readable {
                break;
            }
            if has_read {
                if !std::mem::replace(&mut connection.is_listed, true) {
                    self.unread.push_back(ClientId { slot, serial: connection.serial });
                }
                break;
            }
            match connection.stream.read(&mut self.scratch) {
                Ok(0) => {
                    connection.readable = false;
                    client.end(shared);
                }
                Ok(count) => {
                    // A short read: nothing is left, and later bytes cause another event.
                    connection.readable = count == READ_BYTES || connection.read_closed;
                    has_read = count == READ_BYTES;
                    client.receive(&self.scratch[..count], shared);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => connection.readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => client.close(shared),
            }
        }
        if client.address != connection.address {
            connection.address = client.address;
            connection.is_exempt = shared.is_exempt(connection.address);
            self.addresses.leave(connection.address_index);
            connection.address_index = self.addresses.join(connection.address);
        }
        connection.count_held(&mut self.held);
        if let Some(kind) = wants_lane {
            self.join_queue(slot, kind);
        }
    }

    /// Serves the clients that had sent more than was read in their turn.
    pub(super) fn read_on(&mut self) {
        for _ in 0..MAX_READ_ON {
            let Some(id) = self.unread.pop_front() else { return };
            if let Some(connection) = self.connections.get_mut(id.slot).filter(|c| c.serial == id.serial) {
                connection.is_listed = false;
                self.drive(id.slot);
                self.make_room();
            }
        }
    }
}
