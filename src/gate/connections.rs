//! The gate's work on its clients: letting them in, moving their bytes, and making room where it is short.

use std::io::{ErrorKind, Read, Write};
use std::net::IpAddr;

use mio::Token;
use mio::net::UnixStream;

use crate::Error;
use crate::config::Listen;
use crate::gate::acceptor::{Accepted, Acceptor};
use crate::gate::client::{Client, Shared, State};
use crate::gate::holders::Standing;
use crate::gate::lanes::Asker;
use crate::gate::listening::Listening;
use crate::gate::socket_file::BACKLOG;
use crate::gate::stream::{Peer, Stream};
use crate::gate::{FIRST_LANE, Gate, LISTENER};
use crate::http::{ApiError, Code};

/// Clients let in before the others are looked after again.
pub const MAX_ACCEPTS: usize = 128;
/// Bytes read from a client before the others have their turn.
pub const READ_BYTES: usize = 16 * 1024;
/// Clients who are read on from before the others are looked after again.
const MAX_READ_ON: usize = 4;

/// A client and its socket.
pub struct Connection {
    stream: Stream,
    pub client: Client,
    /// Tells this client from others that had the slot before.
    pub serial: u64,
    /// Whom it is counted for.
    address: IpAddr,
    /// Whether reading or writing may get on: set by events, cleared by the operating system's word.
    pub readable: bool,
    writable: bool,
    /// Whether the client has ended its side, so that even a short read is followed by an end.
    read_closed: bool,
    /// Whether our side is ended.
    shut: bool,
    /// Whether it is among those who are read on from later.
    is_listed: bool,
    /// Whether it is the service's own, which makes room for nobody.
    is_own: bool,
}

impl Gate {
    /// Lets in who waits outside, but no more than so many.
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

    /// Listens anew where the file of the Unix socket was removed, as the service would be out of reach without a
    /// word. Whoever is connected goes on. Ends where that path cannot be had: a supervisor sees that.
    pub(super) fn keep_listening(&mut self) {
        let lost = self.acceptor.as_mut().and_then(|acceptor| acceptor.lost_path(self.shared.now));
        let Some(path) = lost else { return };
        let cannot = |error| Error::io("cannot watch the new socket", error);
        let anew = Listening::bind(&Listen::Unix(path.clone()))
            .and_then(|anew| Acceptor::new(anew, LISTENER, self.poll.registry()).map_err(cannot));
        match anew {
            Ok(anew) => {
                log::warn!(
                    "the file of the Unix socket {} was removed; listening there anew",
                    path.display()
                );
                self.accept_all();
                self.acceptor = Some(anew);
            }
            Err(error) => {
                self.stopper.stop_because(&error.context("the file of the Unix socket was removed"));
            }
        }
    }

    /// Lets in who is connected already, as far as its side can tell: all that the queue at the door holds, but
    /// not for ever, as others may come as fast.
    pub(super) fn accept_all(&mut self) {
        if let Some(acceptor) = &mut self.acceptor {
            acceptor.is_ready = true;
        }
        self.accept(2 * BACKLOG);
    }

    /// Lets in the service's own, past all limits: each has one request, which is there already.
    pub(super) fn let_in_own(&mut self) {
        for stream in self.stopper.take_own() {
            if let Some(slot) = self.admit(Stream::Unix(UnixStream::from_std(stream)), Peer::Unix, true) {
                self.drive(slot);
            }
        }
    }

    pub(super) fn let_in(&mut self, stream: Stream, peer: Peer) {
        let most = self.max_connections;
        // A single neighbour cannot take all places; behind a proxy stand many.
        let has_its_share = self.holders.connections_of(peer.ip()) >= most.div_ceil(4);
        if has_its_share && !self.is_exempt(peer.ip()) {
            let address = peer.ip();
            self.say(format!(
                "{address} has a quarter of all connections and gets no more; a proxy needs --trusted-proxy"
            ));
            let message = "This address has as many connections as one may have; try again in a moment.";
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
            // Its request may be here already; then it is no idle one that makes room.
            readable: true,
            writable: true,
            read_closed: false,
            shut: false,
            is_listed: false,
            is_own,
        });
        self.holders.join(slot, peer.ip(), self.is_exempt(peer.ip()));
        Some(slot)
    }

    fn is_exempt(&self, address: IpAddr) -> bool {
        is_exempt(address, &self.shared)
    }

    /// Whose turn a client's requests are, for a fair order: its address's, or where that is exempt its own.
    pub(super) fn flow(&self, slot: usize) -> u64 {
        match self.connections.get(slot) {
            Some(connection) if self.is_exempt(connection.address) => connection.serial,
            _ => self.holders.flow(slot).unwrap_or_default(),
        }
    }

    /// Refuses a client for whom there is not even a slot to be refused in: a word, and no further look.
    fn turn_away(&mut self, mut stream: Stream, peer: Peer, error: ApiError) {
        let mut client = Client::new(peer, &self.shared);
        client.refuse(error, &mut self.shared);
        // Best effort throughout: what is read here cannot turn the close into a reset.
        let _ = stream.write(client.output());
        stream.end();
        let _ = stream.read(&mut self.scratch);
    }

    /// Makes room for a newcomer.
    fn close_longest_idle(&mut self) {
        // A request that has just come does not wait where a lane has room.
        self.dispatch();
        if let Some(slot) = self.holders.longest_idle() {
            self.connections[slot].client.make_room(&mut self.shared);
            self.drive(slot);
            // It has had its word, as far as that could be sent at once.
            if let Some(connection) = self.connections.get_mut(slot) {
                connection.client.close(&self.shared);
                self.drive(slot);
            }
        }
    }

    /// Takes note of what has become possible for a client, and does it.
    pub(super) fn note_event(&mut self, slot: usize, event: &mio::event::Event) {
        // Events are hints: a slot may have changed hands since, and a read or write tells the truth.
        let Some(connection) = self.connections.get_mut(slot) else { return };
        connection.readable |= event.is_readable() || event.is_error();
        connection.writable |= event.is_writable() || event.is_error();
        connection.read_closed |= event.is_read_closed();
        // Whose request waits neither reads nor writes, so that nothing else would tell that it has gone.
        if event.is_error() || event.is_write_closed() {
            connection.client.close(&self.shared);
        }
        self.drive(slot);
        self.make_room();
    }

    /// Moves one client's bytes as far as they go without waiting.
    pub(super) fn drive(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let (client, shared) = (&mut connection.client, &mut self.shared);
        let (mut wants_lane, mut has_read) = (None, false);
        loop {
            if !client.output().is_empty() && connection.writable {
                match connection.stream.write(client.output()) {
                    Ok(0) => client.close(shared),
                    Ok(count) => client.take_output(count, shared),
                    Err(error) if error.kind() == ErrorKind::WouldBlock => connection.writable = false,
                    Err(error) if error.kind() == ErrorKind::Interrupted => {}
                    Err(_) => client.close(shared),
                }
                continue;
            }
            match client.state() {
                State::Closed => {
                    self.connections.remove(slot);
                    self.holders.leave(slot);
                    return;
                }
                State::Lingering if !connection.shut => {
                    connection.shut = true;
                    connection.stream.end();
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
            // Back-pressure: while room is short, the one who holds the most is not read from.
            if self.holders.lacks(READ_BYTES) && self.holders.largest() == Some(slot) {
                if !std::mem::replace(&mut connection.is_listed, true) {
                    self.paused.push(Asker { slot, serial: connection.serial });
                }
                break;
            }
            if has_read {
                if !std::mem::replace(&mut connection.is_listed, true) {
                    self.unread.push_back(Asker { slot, serial: connection.serial });
                }
                break;
            }
            match connection.stream.read(&mut self.scratch) {
                Ok(0) => {
                    connection.readable = false;
                    client.end(shared);
                }
                Ok(count) => {
                    // Less than asked for: nothing is left, and what comes later is a further event.
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
            self.holders.change_address(slot, address, is_exempt(address, &self.shared));
        }
        self.holders.hold(slot, client.held());
        let standing = if connection.is_own { Standing::Busy } else { standing(client.state()) };
        self.holders.stand(slot, standing);
        if let Some(kind) = wants_lane {
            self.join_queue(slot, kind);
        }
    }

    /// Has those give way who hold the most, for as long as more is held than the budget.
    pub(super) fn make_room(&mut self) {
        while self.holders.excess() {
            let Some(slot) = self.holders.largest() else { return };
            let before = self.holders.total();
            self.connections[slot].client.give_way(&mut self.shared);
            self.drive(slot);
            if self.holders.total() >= before {
                // Nothing here leads there; it would never end.
                return;
            }
        }
    }

    /// Reads on from those who had sent more than was read in their turn.
    pub(super) fn read_on(&mut self) {
        for _ in 0..MAX_READ_ON {
            let Some(asker) = self.unread.pop_front() else { return };
            self.drive_again(asker);
        }
    }

    /// Reads on from those who were not read from for want of room.
    pub(super) fn resume_paused(&mut self) {
        for asker in std::mem::take(&mut self.paused) {
            self.drive_again(asker);
        }
    }

    fn drive_again(&mut self, asker: Asker) {
        if let Some(connection) = self.connections.get_mut(asker.slot).filter(|c| c.serial == asker.serial) {
            connection.is_listed = false;
            self.drive(asker.slot);
            self.make_room();
        }
    }
}

/// Whether the limits for a single address do not hold for this one: many may stand behind it.
fn is_exempt(address: IpAddr, shared: &Shared) -> bool {
    address.to_canonical().is_loopback() || shared.intake.trusted.contains(address)
}

/// Where a client stands when room is made for another.
fn standing(state: State) -> Standing {
    match state {
        State::Idle | State::Lingering => Standing::Idle,
        State::Head | State::Body => Standing::Coming,
        State::Responding => Standing::Taking,
        State::Ready(_) | State::Waiting => Standing::Waiting,
        State::Inside(_) | State::Closed => Standing::Busy,
    }
}

/// The answer to one connection too many.
fn no_room() -> ApiError {
    let message = "The service has as many connections as it takes; try again in a moment.";
    ApiError::with_message(Code::Overloaded, message)
}
