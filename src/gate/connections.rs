//! The gate's work on its clients: letting them in, and moving their bytes.

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr};

use mio::net::TcpStream;
use mio::{Interest, Token};

use crate::gate::client::{Client, State};
use crate::gate::lane::Ticket;
use crate::gate::listener::Accepted;
use crate::gate::wire::head::Kind;
use crate::gate::{FIRST_LANE, Gate, MAX_HELD};
use crate::http::{ApiError, Code};

/// Clients let in before the others are looked after again.
const MAX_ACCEPTS: usize = 512;
/// Bytes read from a client at once.
const READ_BYTES: usize = 16 * 1024;

/// A client and its socket.
pub struct Connection {
    stream: TcpStream,
    pub client: Client,
    /// Tells this client from others that had the slot before.
    pub serial: u64,
    /// Whether reading or writing may get on: set by events, cleared by the operating system's word.
    pub readable: bool,
    writable: bool,
    /// Whether the client has ended its side, so that even a short read is followed by an end.
    read_closed: bool,
    /// Whether our side is ended.
    shut: bool,
    /// What is counted in [`Held`] for it.
    pub held: (usize, usize),
}

/// Bytes held for all clients.
#[derive(Default)]
pub struct Held {
    pub requests: usize,
    pub responses: usize,
}

impl Gate {
    /// Lets in who waits outside.
    pub(super) fn accept(&mut self) {
        for _ in 0..MAX_ACCEPTS {
            let Some(listener) = &mut self.listener else { return };
            match listener.accept(self.shared.now) {
                Accepted::Client(stream, peer) => self.let_in(stream, peer),
                Accepted::Nobody => return,
                Accepted::NoResources => self.close_longest_idle(),
            }
        }
    }

    fn let_in(&mut self, mut stream: TcpStream, peer: SocketAddr) {
        if self.connections.len() >= self.max_connections + self.max_refused {
            return self.turn_away(stream, peer);
        }
        // A response is one write; Nagle's algorithm would hold back the end of a large one.
        let _ = stream.set_nodelay(true);
        let entry = self.connections.vacant_entry();
        let slot = entry.key();
        let token = Token(FIRST_LANE + self.lanes.len() + slot);
        if let Err(error) =
            self.poll.registry().register(&mut stream, token, Interest::READABLE | Interest::WRITABLE)
        {
            log::error!("cannot watch a connection: {error}");
            return;
        }
        self.serial += 1;
        entry.insert(Connection {
            stream,
            client: Client::new(peer, &self.shared),
            serial: self.serial,
            readable: false,
            writable: true,
            read_closed: false,
            shut: false,
            held: (0, 0),
        });
        if self.connections.len() > self.max_connections {
            self.connections[slot].client.refuse(no_room(), &mut self.shared);
            self.drive(slot);
        }
    }

    /// Refuses a client for whom there is not even a slot to be refused in: a word, and no further look.
    fn turn_away(&mut self, mut stream: TcpStream, peer: SocketAddr) {
        let mut client = Client::new(peer, &self.shared);
        client.refuse(no_room(), &mut self.shared);
        // Best effort throughout: what is read here cannot turn the close into a reset.
        let _ = stream.write(client.output());
        let _ = stream.shutdown(Shutdown::Write);
        let _ = stream.read(&mut self.scratch);
    }

    fn close_longest_idle(&mut self) {
        let idle = self.connections.iter().filter(|(_, c)| c.client.state() == State::Idle);
        if let Some(slot) = idle.min_by_key(|(_, c)| c.client.deadline()).map(|(slot, _)| slot) {
            self.connections[slot].client.close(&self.shared);
            self.drive(slot);
        }
    }

    /// Takes note of what has become possible for a client, and does it.
    pub(super) fn note_event(&mut self, slot: usize, event: &mio::event::Event) {
        // Events are hints: a slot may have changed hands since, and a read or write tells the truth.
        let Some(connection) = self.connections.get_mut(slot) else { return };
        connection.readable |= event.is_readable() || event.is_error();
        connection.writable |= event.is_writable() || event.is_error();
        connection.read_closed |= event.is_read_closed();
        self.drive(slot);
    }

    /// Moves one client's bytes as far as they go without waiting.
    pub(super) fn drive(&mut self, slot: usize) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let (client, shared) = (&mut connection.client, &mut self.shared);
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
                    let connection = self.connections.remove(slot);
                    self.held.requests -= connection.held.0;
                    self.held.responses -= connection.held.1;
                    return;
                }
                State::Lingering if !connection.shut => {
                    connection.shut = true;
                    let _ = connection.stream.shutdown(Shutdown::Write);
                }
                State::Ready(kind) => {
                    let queue = match kind {
                        Kind::Read => &mut self.reads,
                        Kind::Write => &mut self.writes,
                    };
                    client.queue(shared);
                    if !queue.push(Ticket { slot, serial: connection.serial }) {
                        client.refuse(ApiError::new(Code::Overloaded), shared);
                    }
                    continue;
                }
                _ => {}
            }
            if !client.wants_input() || !connection.readable {
                break;
            }
            match connection.stream.read(&mut self.scratch[..READ_BYTES]) {
                Ok(0) => {
                    connection.readable = false;
                    client.end(shared);
                }
                Ok(count) => {
                    // Less than asked for: nothing is left, and what comes later is a further event.
                    connection.readable = count == READ_BYTES || connection.read_closed;
                    client.receive(&self.scratch[..count], shared);
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => connection.readable = false,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(_) => client.close(shared),
            }
        }
        let (before, after) = (connection.held, client.held());
        connection.held = after;
        self.held.requests = self.held.requests - before.0 + after.0;
        self.held.responses = self.held.responses - before.1 + after.1;
        if self.held.requests > MAX_HELD {
            self.refuse_largest();
        }
    }

    /// Makes room: of the requests that are still coming, the one that holds the most is refused.
    fn refuse_largest(&mut self) {
        let coming =
            self.connections.iter().filter(|(_, c)| matches!(c.client.state(), State::Head | State::Body));
        if let Some(slot) = coming.max_by_key(|(_, c)| c.held.0).map(|(slot, _)| slot) {
            self.connections[slot].client.refuse(ApiError::new(Code::Overloaded), &mut self.shared);
            self.drive(slot);
        }
    }
}

/// The answer to one connection too many.
fn no_room() -> ApiError {
    let message = "The service has as many connections as it takes; try again in a moment.";
    ApiError::with_message(Code::Overloaded, message)
}
