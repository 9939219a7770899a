//! The near end of a lane: whole requests go down pipelined, whole responses come back in order.

mod all;

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::path::PathBuf;

use mio::net::UnixStream;
use mio::{Interest, Registry, Token};

use crate::gate::wire::answer::{LaneResponse, Malformed};
use crate::gate::wire::head::Kind;
use crate::http::TICKET;
use crate::http::response::write_decimal;

/// Which client's request it is; a client's slot may be another's by the time the answer comes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticket {
    pub slot: usize,
    pub serial: u64,
}

/// One lane, as the gate is told of it.
#[derive(Clone, Debug)]
pub struct LaneAddress {
    /// Where its server listens.
    pub path: PathBuf,
    pub kind: Kind,
    /// The most requests in it at once.
    pub window: usize,
}

/// One lane's connection, and what is on it.
pub struct Lane {
    pub address: LaneAddress,
    token: Token,
    stream: Option<UnixStream>,
    /// The requests inside, in the order sent.
    tickets: VecDeque<Ticket>,
    /// Tells this connection from those that the lane had before it broke off.
    epoch: usize,
    /// How many requests went down this connection.
    count: usize,
    /// The number of the response whose turn it is.
    expected: Vec<u8>,
    /// Bytes for the server, and how many of them it has taken.
    out: Vec<u8>,
    sent: usize,
    /// Whether the server takes no more bytes for now. Only then is the gate woken when it takes some.
    is_full: bool,
    /// Bytes from the server that are no whole answer yet.
    input: Vec<u8>,
}

/// A lane's buffers are freed above this size once they are empty.
const KEEP_BYTES: usize = 256 * 1024;

impl Lane {
    /// Opens the lane.
    ///
    /// # Errors
    /// Where its server cannot be reached.
    pub fn open(address: LaneAddress, token: Token, registry: &Registry) -> std::io::Result<Self> {
        let mut lane = Self {
            address,
            token,
            stream: None,
            tickets: VecDeque::new(),
            epoch: 0,
            count: 0,
            expected: Vec::new(),
            out: Vec::new(),
            sent: 0,
            is_full: false,
            input: Vec::new(),
        };
        lane.reopen(registry)?;
        Ok(lane)
    }

    /// Opens a failed lane anew; does nothing where it is open.
    ///
    /// # Errors
    /// Where its server cannot be reached.
    pub fn reopen(&mut self, registry: &Registry) -> std::io::Result<()> {
        if self.stream.is_none() {
            let mut stream = UnixStream::connect(&self.address.path)?;
            registry.register(&mut stream, self.token, Interest::READABLE)?;
            self.stream = Some(stream);
            self.epoch += 1;
            self.count = 0;
            self.is_full = false;
        }
        Ok(())
    }

    pub fn is_open(&self) -> bool {
        self.stream.is_some()
    }

    /// How many requests are inside; the least busy lane of a kind gets the next.
    pub fn load(&self) -> usize {
        self.tickets.len()
    }

    pub fn has_room(&self) -> bool {
        self.is_open() && self.tickets.len() < self.address.window
    }

    /// Puts a whole request on its way, with the number by which its response will be known again;
    /// [`Lane::flush`] sends it.
    pub fn push(&mut self, ticket: Ticket, id: &str, request: &[u8]) {
        let line = request.iter().position(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        self.out.extend_from_slice(&request[..line]);
        self.out.extend_from_slice(TICKET.as_bytes());
        self.out.extend_from_slice(b": ");
        write_number(&mut self.out, self.epoch, self.count);
        self.out.push(b' ');
        self.out.extend_from_slice(id.as_bytes());
        self.out.extend_from_slice(b"\r\n");
        self.out.extend_from_slice(&request[line..]);
        self.tickets.push_back(ticket);
        self.count += 1;
    }

    /// Sends what the server takes at once.
    ///
    /// # Errors
    /// Where the connection has failed.
    pub fn flush(&mut self, registry: &Registry) -> std::io::Result<()> {
        let Some(stream) = &mut self.stream else { return Ok(()) };
        let was_full = self.is_full;
        self.is_full = false;
        while self.sent < self.out.len() && !self.is_full {
            match stream.write(&self.out[self.sent..]) {
                Ok(0) => return Err(ErrorKind::WriteZero.into()),
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.is_full = true,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        if self.is_full != was_full {
            let writable = self.is_full.then_some(Interest::WRITABLE);
            let interest = writable.map_or(Interest::READABLE, |writable| Interest::READABLE | writable);
            registry.reregister(stream, self.token, interest)?;
        }
        if !self.is_full {
            self.out.clear();
            self.out.shrink_to(KEEP_BYTES);
            self.sent = 0;
        }
        Ok(())
    }

    /// Reads some of what the server has sent, and says whether there may be more. The answers are
    /// found with [`Lane::next_response`].
    ///
    /// # Errors
    /// Where the connection has failed or ended.
    pub fn receive(&mut self, scratch: &mut [u8], is_ending: bool) -> std::io::Result<bool> {
        let Some(stream) = &mut self.stream else { return Ok(false) };
        match stream.read(scratch) {
            Ok(0) => Err(ErrorKind::UnexpectedEof.into()),
            Ok(count) => {
                self.input.extend_from_slice(&scratch[..count]);
                // Less than asked for: nothing is left, and what comes later is a further event; but an
                // end that came along has had its event already.
                Ok(is_ending || count == scratch.len())
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(true),
            Err(error) => Err(error),
        }
    }

    /// Hands out the bytes received; those that [`Lane::next_response`] leaves are given back.
    pub fn take_input(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.input)
    }

    /// Takes back the input, of which `consumed` bytes were answers.
    pub fn give_back(&mut self, mut input: Vec<u8>, consumed: usize) {
        if self.is_open() {
            input.drain(..consumed);
            input.shrink_to(KEEP_BYTES);
            self.input = input;
        }
    }

    /// The whole response at the start of `input`, and whose it is; `None` where none is whole yet.
    ///
    /// # Errors
    /// Where the bytes are no response, or not that to the request whose turn it is.
    pub fn next_response<'a>(
        &mut self,
        input: &'a [u8],
    ) -> Result<Option<(Ticket, LaneResponse<'a>)>, Malformed> {
        if input.is_empty() {
            return Ok(None);
        }
        let Some(response) = LaneResponse::parse(input)? else { return Ok(None) };
        self.expected.clear();
        write_number(&mut self.expected, self.epoch, self.count - self.tickets.len());
        if response.ticket != self.expected {
            return Err(Malformed);
        }
        let ticket = self.tickets.pop_front().ok_or(Malformed)?;
        Ok(Some((ticket, response)))
    }

    /// Gives the connection up, and hands out the requests that were on it.
    pub fn fail(&mut self) -> VecDeque<Ticket> {
        // Dropping the stream also takes it out of the registry.
        self.stream = None;
        self.out = Vec::new();
        self.sent = 0;
        self.input = Vec::new();
        std::mem::take(&mut self.tickets)
    }
}

/// Writes what the ticket says of the connection and of the request's place on it.
fn write_number(out: &mut Vec<u8>, epoch: usize, place: usize) {
    write_decimal(out, epoch);
    out.push(b'.');
    write_decimal(out, place);
}

#[cfg(test)]
mod tests;
