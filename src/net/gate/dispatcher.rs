//! All lanes: requests down in a fair order, and responses up, some of which are held back on purpose.

use std::cmp::Reverse;
use std::io;

use crate::base::error::{Error, ErrorKind};
use crate::base::http::Size;
use crate::base::http::response::Course;
use crate::net::gate::Gate;
use crate::net::gate::client::State;
use crate::net::gate::fair_queue::Turns;
use crate::net::gate::lanes::{ClientId, KEEP_BYTES};
use crate::net::lane::LaneKind;

impl Gate {
    /// Sends waiting requests down the lanes, as long as there is room.
    pub(super) fn dispatch(&mut self) {
        for kind in [LaneKind::Read, LaneKind::Write] {
            let waiting = &mut self.waiting[kind as usize];
            while let Some((id, _)) = waiting.peek() {
                let connection = self.connections.get_mut(id.slot).filter(|c| c.serial == id.serial);
                let connection = connection.filter(|c| c.client.state() == State::Waiting);
                let Some(connection) = connection else {
                    // The client has gone, or has its response by now.
                    waiting.pop();
                    continue;
                };
                let bytes = connection.client.request.len();
                let free = self.lanes.iter_mut().filter(|lane| lane.kind == kind && lane.has_room(bytes));
                let Some(lane) = free.min_by_key(|lane| lane.load()) else { break };
                waiting.pop();
                let client = &mut connection.client;
                lane.push(id, client.id(), &client.request);
                client.go_inside(kind, &self.shared);
                connection.count_held(&mut self.held);
            }
        }
    }

    /// Makes a client's request wait for its lanes.
    pub(super) fn join_queue(&mut self, slot: usize, kind: LaneKind) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        connection.client.enter(State::Waiting, &self.shared);
        let size = match kind {
            LaneKind::Read => (self.size)(connection.client.request.line()),
            LaneKind::Write => Size::Small,
        };
        if let Some(delay) = &mut self.delay {
            connection.client.delay = delay(connection.client.request.line());
        }
        let id = ClientId { slot, serial: connection.serial };
        // Each connection of an exempt address takes turns by itself, and has one request at a time.
        let mut own = Turns::default();
        let turns = match connection.is_exempt {
            true => &mut own,
            false => &mut self.addresses.known[connection.address_index].turns[kind as usize],
        };
        let waiting = &mut self.waiting[kind as usize];
        // Each connection has at most one request waiting, so at least half belong to clients that have gone.
        if waiting.len() >= 2 * self.max_connections {
            let connections = &self.connections;
            waiting.retain(|id| connections.get(id.slot).is_some_and(|c| c.serial == id.serial));
        }
        waiting.push(turns, size, id);
    }

    /// Delivers the responses of a lane to their clients. `is_ending` means that the lane's last bytes came
    /// together with its end.
    pub(super) fn serve_lane(&mut self, index: usize, is_ending: bool) {
        // Taken, because clients are read meanwhile.
        let mut scratch = std::mem::take(&mut self.lane_scratch);
        let served = self.serve_lane_by(index, is_ending, &mut scratch);
        self.lane_scratch = scratch;
        if let Err(error) = served {
            self.fail_lane(&error);
        }
    }

    fn serve_lane_by(&mut self, index: usize, is_ending: bool, scratch: &mut [u8]) -> io::Result<()> {
        loop {
            let (count, has_more) = self.lanes[index].receive(scratch, is_ending)?;
            let mut input = std::mem::take(&mut self.lanes[index].input);
            if input.is_empty() {
                // The usual case, complete responses in one piece, needs no copy.
                let consumed = self.deliver(index, &scratch[..count])?;
                input.extend_from_slice(&scratch[consumed..count]);
            } else {
                input.extend_from_slice(&scratch[..count]);
                let consumed = self.deliver(index, &input)?;
                input.drain(..consumed);
            }
            input.shrink_to(KEEP_BYTES);
            self.lanes[index].input = input;
            if !has_more {
                return Ok(());
            }
        }
    }

    /// Delivers the complete responses in `input`; returns how many bytes they were.
    fn deliver(&mut self, index: usize, input: &[u8]) -> io::Result<usize> {
        let mut consumed = 0;
        while consumed < input.len()
            && let Some((client, response)) = self.lanes[index].next_response(&input[consumed..])?
        {
            consumed += response.length;
            let Some(slot) = self.slot_inside(client) else { continue };
            let client = &mut self.connections[slot].client;
            match response.course {
                Course::PassOn => client.enter(State::Ready(LaneKind::Write), &self.shared),
                Course::BreakOff => client.close(&self.shared),
                Course::Send => {
                    client.answer(&response.answer, &mut self.shared);
                    self.hold_back(slot);
                }
            }
            self.drive(slot);
            self.make_room();
        }
        Ok(consumed)
    }

    /// Holds back a response that has just come, if it has a delay, with which clients test how they wait. It holds up no
    /// worker.
    pub(super) fn hold_back(&mut self, slot: usize) {
        let connection = &mut self.connections[slot];
        if !connection.client.delay.is_zero() {
            let due = self.shared.now + connection.client.delay;
            connection.client.hold_back();
            self.held_back.push(Reverse((due, ClientId { slot, serial: connection.serial })));
        }
    }

    /// Sends the responses whose time has come; at the end of the service, all.
    pub(super) fn release(&mut self) {
        while let Some(Reverse((due, id))) = self.held_back.peek().copied()
            && (due <= self.shared.now || self.shared.draining)
        {
            self.held_back.pop();
            if let Some(connection) = self.connections.get_mut(id.slot).filter(|c| c.serial == id.serial) {
                connection.client.release(&self.shared);
                self.drive(id.slot);
            }
        }
    }

    /// The slot of a client that still waits for this response.
    fn slot_inside(&self, id: ClientId) -> Option<usize> {
        let connection = self.connections.get(id.slot)?;
        (connection.serial == id.serial && matches!(connection.client.state(), State::Inside(_)))
            .then_some(id.slot)
    }

    /// Sends the requests of this round, with one write per lane.
    pub(super) fn flush_lanes(&mut self) {
        for index in 0..self.lanes.len() {
            if let Err(error) = self.lanes[index].flush(self.poll.registry()) {
                self.fail_lane(&error);
            }
        }
    }

    /// Ends the service, because a lane has broken off. Its requests are answered as those of a worker that has died.
    fn fail_lane(&self, error: &io::Error) {
        if !self.has_failed {
            self.stopper.fail(Error::new(ErrorKind::Internal, format!("a lane broke off: {error}")));
        }
    }
}
