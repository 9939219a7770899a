//! The gate's work on its clients: accepting them, moving their bytes, and making room when it is short.

use std::io::{ErrorKind, Read, Write};
use std::net::IpAddr;

use mio::Token;
use mio::net::UnixStream;

use crate::gate::acceptor::Accepted;
use crate::gate::budget::Standing;
use crate::gate::client::{Client, State};
use crate::gate::lanes::ClientId;
use crate::gate::socket_file::BACKLOG;
use crate::gate::stream::{Peer, Stream};
use crate::gate::{FIRST_LANE, Gate};
use crate::http::{ApiError, Code};

/// The clients to accept before the others get a turn.
pub const MAX_ACCEPTS: usize = 128;
/// The bytes to read from a client before the others get a turn.
pub const READ_BYTES: usize = 16 * 1024;
/// The clients to accept at the end: everything in the backlog, but not endlessly, because others may come as fast.
const MAX_LAST_ACCEPTS: usize = 2 * BACKLOG;
/// The clients with more to read that are served before the others get a turn.
const MAX_READ_ON: usize = 4;

/// A client and its socket.
pub struct Connection {
    stream: Stream,
    pub client: Client,
    /// Tells this client from earlier ones in the same slot.
    pub serial: u64,
    /// The address that it counts for.
    pub address: IpAddr,
    /// Whether reading or writing may make progress: set by events, cleared when the operating system would
    /// block.
    pub readable: bool,
    writable: bool,
    /// Whether the client has shut down its side, so that even a short read is followed by the end.
    read_closed: bool,
    /// Whether it is on the list of clients with more to read.
    is_listed: bool,
    /// Whether it is the service's own connection, which never makes room.
    is_own: bool,
}

impl Gate {
    /// Notes that clients may be waiting.
    pub(super) fn note_newcomers(&mut self) {
        if let Some(acceptor) = &mut self.acceptor {
            acceptor.is_ready = true;
        }
    }

    /// Accepts waiting clients, at most this many.
    pub(super) fn accept(&mut self, most: usize) {
        for _ in 0..most {
            let Some(acceptor) = &mut self.acceptor else { return };
            match acceptor.accept(self.shared.now) {
                Accepted::Client(stream, peer) => self.let_in(stream, peer),
                Accepted::Nobody => return,
                Accepted::NoResources => self.close_longest_idle(),
            }
        }
    }

    /// Accepts all clients that have connected so far.
    pub(super) fn accept_all(&mut self) {
        self.note_newcomers();
        self.accept(MAX_LAST_ACCEPTS);
    }

    /// Accepts the service's own connections regardless of limits. Each has one request, which has already
    /// arrived.
    pub(super) fn let_in_own(&mut self) {
        for stream in self.stopper.take_own() {
            if let Some(slot) = self.admit(Stream::Unix(UnixStream::from_std(stream)), Peer::Unix, true) {
                self.drive(slot);
            }
        }
    }

    pub(super) fn let_in(&mut self, stream: Stream, peer: Peer) {
        let most = self.max_connections;
        // A single address must not take all places; a proxy stands for many clients.
        let has_its_share = self.budget.connections_of(peer.ip()) >= most.div_ceil(4);
        if has_its_share && !self.shared.is_exempt(peer.ip()) {
            let address = peer.ip();
            self.say(format!(
                "{address} has a quarter of all connections, and gets no more; if it is a proxy, add it with --trusted-proxy"
            ));
            let message = "This address has too many connections; try again in a moment.";
            return self.turn_away(stream, peer, ApiError::with_message(Code::Overloaded, message));
        }
        if self.connections.len() >= most {
            self.close_longest_idle();
        }
        if self.connections.len() >= most + self.max_refused {
            return self.turn_away(stream, peer, no_room());
        }
        let Some(slot) = self.admit(stream, peer, false) else { return };
        if self.connections.len() > most {
            self.connections[slot].client.refuse(no_room(), &mut self.shared);
        }
        self.drive(slot);
        self.make_room();
    }

    /// Gives a client a slot.
    fn admit(&mut self, mut stream: Stream, peer: Peer, is_own: bool) -> Option<usize> {
        stream.send_at_once();
        let entry = self.connections.vacant_entry();
        let slot = entry.key();
        let token = Token(FIRST_LANE + self.lanes.len() + slot);
        if let Err(error) = stream.register(self.poll.registry(), token) {
            self.say(format!("cannot watch a connection: {error}"));
            return None;
        }
        self.serial += 1;
        entry.insert(Connection {
            stream,
            client: Client::new(peer, &self.shared),
            serial: self.serial,
            address: peer.ip(),
            // Its request may have arrived already; then it is not idle.
            readable: true,
            writable: true,
            read_closed: false,
            is_listed: false,
            is_own,
        });
        self.budget.join(slot, peer.ip(), self.shared.is_exempt(peer.ip()));
        Some(slot)
    }

    /// Refuses a client for which there is not even a slot: tries to send a 503, and closes.
    fn turn_away(&mut self, mut stream: Stream, peer: Peer, error: ApiError) {
        let mut client = Client::new(peer, &self.shared);
        client.refuse(error, &mut self.shared);
        // Best effort. What has arrived is read, because closing with unread bytes would send a reset.
        let _ = stream.write(client.output());
        stream.end();
        let _ = stream.read(&mut self.scratch);
    }

    /// Makes room for a newcomer.
    fn close_longest_idle(&mut self) {
        // A request that has just arrived does not wait if a lane has room.
        self.dispatch();
        if let Some(slot) = self.budget.longest_idle() {
            self.connections[slot].client.make_room(&mut self.shared);
            self.drive(slot);
            // It has its response, as far as that could be sent at once.
            if let Some(connection) = self.connections.get_mut(slot) {
                connection.client.close(&self.shared);
                self.drive(slot);
            }
        }
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
                        client.take_output(count, shared);
                        if client.state() == State::Lingering {
                            connection.stream.end();
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
                    self.connections.remove(slot);
                    self.budget.leave(slot);
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
            // Back-pressure: while room is short, nothing is read from the largest holder.
            let lacks_room = self.budget.lacks(READ_BYTES) && self.budget.largest() == Some(slot);
            if lacks_room || has_read {
                if !std::mem::replace(&mut connection.is_listed, true) {
                    let id = ClientId { slot, serial: connection.serial };
                    if lacks_room { self.paused.push(id) } else { self.unread.push_back(id) }
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
        if client.address() != connection.address {
            connection.address = client.address();
            let address = connection.address;
            self.budget.change_address(slot, address, self.shared.is_exempt(address));
        }
        self.budget.hold(slot, client.held());
        let standing = if connection.is_own { Standing::Busy } else { standing(client.state()) };
        self.budget.stand(slot, standing);
        if let Some(kind) = wants_lane {
            self.join_queue(slot, kind);
        }
    }

    /// Makes the largest budget give way until the budget is met.
    pub(super) fn make_room(&mut self) {
        while self.budget.excess() {
            let Some(slot) = self.budget.largest() else { return };
            let before = self.budget.total();
            self.connections[slot].client.give_way(&mut self.shared);
            self.drive(slot);
            if self.budget.total() >= before {
                // Cannot happen, but would loop forever.
                return;
            }
        }
    }

    /// Serves the clients that had sent more than was read in their turn.
    pub(super) fn read_on(&mut self) {
        for _ in 0..MAX_READ_ON {
            let Some(id) = self.unread.pop_front() else { return };
            self.drive_again(id);
        }
    }

    /// Serves the clients that were paused because room was short.
    pub(super) fn resume_paused(&mut self) {
        for id in std::mem::take(&mut self.paused) {
            self.drive_again(id);
        }
    }

    fn drive_again(&mut self, id: ClientId) {
        if let Some(connection) = self.connections.get_mut(id.slot).filter(|c| c.serial == id.serial) {
            connection.is_listed = false;
            self.drive(id.slot);
            self.make_room();
        }
    }
}

/// The standing of a client in this state.
fn standing(state: State) -> Standing {
    match state {
        State::Idle | State::Lingering => Standing::Idle,
        State::Head | State::Body => Standing::Coming,
        State::Responding => Standing::Taking,
        State::Ready(_) | State::Waiting => Standing::Waiting,
        State::Inside(_) | State::Closed => Standing::Busy,
    }
}

/// The response to one connection too many.
fn no_room() -> ApiError {
    let message = "The service has too many connections; try again in a moment.";
    ApiError::with_message(Code::Overloaded, message)
}
