//! Requests down the lanes in a fair order, and responses up.

use std::io;

use mio::Registry;

use crate::base::http::Size;
use crate::net::gate::client::{Shared, State};
use crate::net::gate::connections::Connections;
use crate::net::gate::fair_queue::{FairQueue, Turns};
use crate::net::gate::lanes::{ClientId, KEEP_BYTES, Lane};
use crate::net::lane::{LaneKind, LaneResponse};

/// The bytes to read from a lane at once.
const LANE_READ_BYTES: usize = 256 * 1024;

/// All lanes, and the requests that wait for them.
pub struct Dispatcher {
    pub lanes: Vec<Lane>,
    /// By [`LaneKind`].
    pub waiting: [FairQueue; 2],
    size: fn(&[u8]) -> Size,
    scratch: Vec<u8>,
}

impl Dispatcher {
    /// `size`: that of the response to a read, by its method and target with a space between.
    pub fn new(lanes: Vec<Lane>, size: fn(&[u8]) -> Size) -> Self {
        Self { lanes, waiting: Default::default(), size, scratch: vec![0; LANE_READ_BYTES] }
    }

    /// Makes a client's request wait for its lanes.
    pub fn queue(&mut self, slot: usize, kind: LaneKind, connections: &mut Connections, shared: &Shared) {
        let waiting = &mut self.waiting[kind as usize];
        // Each connection has at most one request waiting, so at least half belong to clients that have gone.
        if waiting.len() >= 2 * connections.max {
            waiting.retain(|id| connections.get_mut(id).is_some());
        }
        let Some(connection) = connections.open.get_mut(slot) else { return };
        connection.client.enter(State::Waiting, shared);
        let size = match kind {
            LaneKind::Read => (self.size)(connection.client.request.line()),
            LaneKind::Write => Size::Small,
        };
        // Each connection of an exempt address takes turns by itself, and has one request at a time.
        let mut of_connection = Turns::default();
        let turns = if connection.is_exempt {
            &mut of_connection
        } else {
            &mut connections.addresses.known[connection.address_index].turns[kind as usize]
        };
        waiting.push(turns, size, ClientId { slot, serial: connection.serial });
    }

    /// Adds waiting requests to the lanes, as long as these accept more.
    pub fn dispatch(&mut self, connections: &mut Connections, shared: &Shared) {
        for kind in [LaneKind::Read, LaneKind::Write] {
            let waiting = &mut self.waiting[kind as usize];
            while let Some(id) = waiting.peek() {
                let connection = connections.open.get_mut(id.slot).filter(|c| c.serial == id.serial);
                let Some(connection) = connection.filter(|c| c.client.state() == State::Waiting) else {
                    // The client has gone, or has its response by now.
                    waiting.pop();
                    continue;
                };
                let client = &mut connection.client;
                let bytes = client.request.len();
                let free = self.lanes.iter_mut().filter(|lane| lane.kind == kind && lane.has_room(bytes));
                let Some(lane) = free.min_by_key(|lane| lane.load()) else { break };
                waiting.pop();
                lane.push(id, client.id(), &client.request);
                client.go_inside(kind, shared);
                connection.count_held(&mut connections.held);
            }
        }
    }

    /// Sends the requests of this round, with one write per lane.
    ///
    /// # Errors
    /// If a lane has broken off.
    pub fn flush(&mut self, registry: &Registry) -> io::Result<()> {
        self.lanes.iter_mut().try_for_each(|lane| lane.flush(registry))
    }

    /// Reads once from a lane, and passes each complete response to `deliver`. Returns whether there may be more to
    /// read. `is_ending` means that the lane's last bytes came together with its end.
    ///
    /// # Errors
    /// If the lane has broken off.
    pub fn receive(
        &mut self,
        index: usize,
        is_ending: bool,
        mut deliver: impl FnMut(ClientId, &LaneResponse),
    ) -> io::Result<bool> {
        let lane = &mut self.lanes[index];
        let (count, has_more) = lane.receive(&mut self.scratch, is_ending)?;
        let received = &self.scratch[..count];
        let mut input = std::mem::take(&mut lane.input);
        if input.is_empty() {
            // The usual case, complete responses in one piece, needs no copy.
            let consumed = responses(lane, received, &mut deliver)?;
            input.extend_from_slice(&received[consumed..]);
        } else {
            input.extend_from_slice(received);
            let consumed = responses(lane, &input, &mut deliver)?;
            input.drain(..consumed);
        }
        input.shrink_to(KEEP_BYTES);
        lane.input = input;
        Ok(has_more)
    }
}

/// Passes on the complete responses in `input`; returns how many bytes they were.
fn responses(
    lane: &mut Lane,
    input: &[u8],
    deliver: &mut impl FnMut(ClientId, &LaneResponse),
) -> io::Result<usize> {
    let mut consumed = 0;
    while consumed < input.len()
        && let Some((client, response)) = lane.next_response(&input[consumed..])?
    {
        consumed += response.length;
        deliver(client, &response);
    }
    Ok(consumed)
}
