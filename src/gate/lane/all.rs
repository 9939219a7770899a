//! All lanes: requests down, responses up, and what to do when one breaks off.

use std::io::{self, ErrorKind};

use crate::gate::client::State;
use crate::gate::lane::Ticket;
use crate::gate::wire::answer::Malformed;
use crate::gate::wire::head::Kind;
use crate::gate::{Gate, MAX_HELD};

impl Gate {
    /// Sends waiting requests down the lanes, as far as those have room.
    pub(in crate::gate) fn dispatch(&mut self) {
        for kind in [Kind::Read, Kind::Write] {
            // Responses that nobody takes hold up the requests that would make more of them.
            while self.held.responses <= MAX_HELD {
                let free = self.lanes.iter_mut().filter(|lane| lane.address.kind == kind && lane.has_room());
                let Some(lane) = free.min_by_key(|lane| lane.load()) else { break };
                let queue = match kind {
                    Kind::Read => &mut self.reads,
                    Kind::Write => &mut self.writes,
                };
                let Some(ticket) = queue.pop() else { break };
                let connection = self.connections.get_mut(ticket.slot).filter(|c| c.serial == ticket.serial);
                if let Some(connection) = connection
                    && connection.client.state() == State::Waiting
                {
                    lane.push(ticket, connection.client.id(), connection.client.request());
                    connection.client.go_inside(kind, &self.shared);
                    self.held.requests -= connection.held.0;
                    connection.held.0 = connection.client.held().0;
                    self.held.requests += connection.held.0;
                }
            }
        }
    }

    /// Takes the responses of a lane to their clients. `is_ending` says that the lane's last bytes came
    /// together with its end.
    pub(in crate::gate) fn serve_lane(&mut self, index: usize, is_ending: bool) {
        loop {
            let received = self.lanes[index].receive(&mut self.scratch, is_ending);
            let input = self.lanes[index].take_input();
            let delivered = self.deliver(index, &input);
            self.lanes[index].give_back(input, *delivered.as_ref().unwrap_or(&0));
            match received.and_then(|more| delivered.map(|_| more)) {
                Ok(true) => {}
                Ok(false) => return,
                Err(error) => return self.fail_lane(index, &error),
            }
        }
    }

    /// Takes the whole responses in `input` to their clients; returns how many bytes they were.
    fn deliver(&mut self, index: usize, input: &[u8]) -> io::Result<usize> {
        let mut consumed = 0;
        let kind = self.lanes[index].address.kind;
        while let Some((ticket, response)) = self.lanes[index]
            .next_response(&input[consumed..])
            .map_err(|Malformed| io::Error::from(ErrorKind::InvalidData))?
        {
            consumed += response.length;
            let Some(slot) = self.holder(ticket) else { continue };
            let client = &mut self.connections[slot].client;
            if response.passes_on && kind == Kind::Read {
                client.go_on(&self.shared);
            } else {
                client.answer(&response.answer, &mut self.shared);
            }
            self.drive(slot);
        }
        Ok(consumed)
    }

    /// The slot of the client who still waits for the response to this ticket.
    fn holder(&self, ticket: Ticket) -> Option<usize> {
        let connection = self.connections.get(ticket.slot)?;
        (connection.serial == ticket.serial && matches!(connection.client.state(), State::Inside(_)))
            .then_some(ticket.slot)
    }

    /// Sends the requests that this round has brought, those of a lane in one write.
    pub(in crate::gate) fn flush_lanes(&mut self) {
        for index in 0..self.lanes.len() {
            if let Err(error) = self.lanes[index].flush(self.poll.registry()) {
                self.fail_lane(index, &error);
            }
        }
    }

    /// Answers for a lane that broke off, and opens it anew.
    fn fail_lane(&mut self, index: usize, error: &io::Error) {
        let tickets = self.lanes[index].fail();
        log::error!("lane {index} failed with {} requests on it: {error}", tickets.len());
        for ticket in tickets {
            if let Some(slot) = self.holder(ticket) {
                self.connections[slot].client.lose(&mut self.shared);
                self.drive(slot);
            }
        }
        self.reopen_lanes();
    }

    pub(in crate::gate) fn reopen_lanes(&mut self) {
        for (index, lane) in self.lanes.iter_mut().enumerate().filter(|(_, lane)| !lane.is_open()) {
            match lane.reopen(self.poll.registry()) {
                Ok(()) => log::warn!("lane {index} is open again"),
                Err(error) => log::error!("cannot open lane {index} again: {error}"),
            }
        }
    }
}
