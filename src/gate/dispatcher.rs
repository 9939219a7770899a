//! All lanes: requests down, responses up, and what to do when one breaks off.

use std::io::{self, ErrorKind};
use std::time::{Duration, Instant};

use crate::gate::Gate;
use crate::gate::client::State;
use crate::gate::holders::Standing;
use crate::gate::lanes::{Asker, Lane, Sent};
use crate::http::response::Course;
use crate::http::{ApiError, Code};
use crate::lane::{LaneKind, LaneResponse, Malformed};

/// How long a lane may stay closed before the service ends, so that a supervisor restarts it.
pub const MAX_SHUT: Duration = Duration::from_secs(5);
/// The fixed cost of a request in the fair queue, in bytes: the time of the smallest request is enough to
/// make this many bytes of a response.
const REQUEST_COST: usize = 8 * 1024;

impl Gate {
    /// Sends waiting requests down the lanes, as long as there is room.
    pub(super) fn dispatch(&mut self) {
        for kind in [LaneKind::Read, LaneKind::Write] {
            while let Some((asker, said)) =
                self.waiting[kind as usize].peek().map(|(asker, said)| (*asker, said))
            {
                let flow = self.flow(asker.slot);
                let queue = &mut self.waiting[kind as usize];
                let connection = self.connections.get_mut(asker.slot).filter(|c| c.serial == asker.serial);
                let connection = connection.filter(|c| c.client.state() == State::Waiting);
                let Some(connection) = connection else {
                    // The client has gone, or has its response by now.
                    queue.take();
                    continue;
                };
                let bytes = connection.client.expected_bytes(kind, &self.estimates);
                // Similar requests may have shown its real cost meanwhile.
                if cost(bytes) / 2 > said {
                    queue.take();
                    self.enqueue(asker.slot, kind);
                    continue;
                }
                let free =
                    self.lanes.iter_mut().filter(|lane| lane.address.kind == kind && lane.has_room(bytes));
                let Some(lane) = free.min_by_key(|lane| lane.load()) else { break };
                queue.pop();
                let client = &connection.client;
                let sent = Sent { asker: Some(asker), asked: client.asked(), flow, bytes };
                lane.push(sent, client.id(), client.request());
                connection.client.go_inside(kind, &self.shared);
                self.holders.hold(asker.slot, connection.client.held());
                self.holders.stand(asker.slot, Standing::Busy);
            }
        }
    }

    /// Makes a client's request wait for its lanes.
    pub(super) fn join_queue(&mut self, slot: usize, kind: LaneKind) {
        let Some(connection) = self.connections.get_mut(slot) else { return };
        let asked = self.estimates.asked(connection.client.request().asked());
        connection.client.queue(asked, &self.shared);
        self.enqueue(slot, kind);
    }

    /// Puts a request into the queue, at the cost that is known by now.
    fn enqueue(&mut self, slot: usize, kind: LaneKind) {
        let flow = self.flow(slot);
        let Some(connection) = self.connections.get(slot) else { return };
        let asker = Asker { slot, serial: connection.serial };
        let cost = cost(connection.client.expected_bytes(kind, &self.estimates));
        let queue = &mut self.waiting[kind as usize];
        if queue.push(flow, cost, asker).is_err() {
            // There are more places than connections, so at least half belong to clients that have gone.
            let connections = &self.connections;
            queue.retain(|t| connections.get(t.slot).is_some_and(|c| c.serial == t.serial));
            if queue.push(flow, cost, asker).is_err() {
                let client = &mut self.connections[slot].client;
                client.refuse(ApiError::new(Code::Overloaded), &mut self.shared);
            }
        }
    }

    /// Delivers the responses of a lane to their clients. `is_ending` means that the lane's last bytes came
    /// together with its end.
    pub(super) fn serve_lane(&mut self, index: usize, is_ending: bool) {
        // Taken, because clients are read meanwhile.
        let mut scratch = std::mem::take(&mut self.lane_scratch);
        let served = self.serve_lane_by(index, is_ending, &mut scratch);
        self.lane_scratch = scratch;
        if let Err(error) = served {
            self.fail_lane(index, &error);
        }
    }

    fn serve_lane_by(&mut self, index: usize, is_ending: bool, scratch: &mut [u8]) -> io::Result<()> {
        loop {
            let (count, has_more) = self.lanes[index].receive(scratch, is_ending)?;
            let mut input = self.lanes[index].take_input();
            if input.is_empty() {
                // The usual case, complete responses in one piece, needs no copy.
                let consumed = self.deliver(index, &scratch[..count])?;
                input.extend_from_slice(&scratch[consumed..count]);
            } else {
                input.extend_from_slice(&scratch[..count]);
                let consumed = self.deliver(index, &input)?;
                input.drain(..consumed);
            }
            self.lanes[index].keep_input(input);
            if !has_more {
                return Ok(());
            }
        }
    }

    /// Delivers the complete responses in `input`; returns how many bytes they were.
    fn deliver(&mut self, index: usize, input: &[u8]) -> io::Result<usize> {
        let mut consumed = 0;
        let kind = self.lanes[index].address.kind;
        while let Some((sent, response)) = self.lanes[index]
            .next_response(&input[consumed..])
            .map_err(|Malformed| io::Error::from(ErrorKind::InvalidData))?
        {
            consumed += response.length;
            if kind == LaneKind::Read && response.course == Course::Send {
                self.learn(&sent, &response);
            }
            let Some(slot) = sent.asker.and_then(|asker| self.holder(asker)) else { continue };
            let client = &mut self.connections[slot].client;
            match response.course {
                Course::PassOn => client.go_on(&self.shared),
                Course::BreakOff => client.close(&self.shared),
                Course::Send => client.answer(&response.answer, &mut self.shared),
            }
            self.drive(slot);
            self.make_room();
        }
        Ok(consumed)
    }

    /// Learns from a response what similar ones will cost, and charges what this one cost beyond its estimate,
    /// even if the client has gone. The cost of a write is its own size.
    fn learn(&mut self, sent: &Sent, response: &LaneResponse) {
        self.estimates.learn(sent.asked, response.answer.status, response.length);
        let more = u32::try_from(response.length.saturating_sub(sent.bytes)).unwrap_or(u32::MAX);
        self.waiting[LaneKind::Read as usize].charge(sent.flow, cost(response.length), more);
    }

    /// The slot of a client that still waits for this response.
    fn holder(&self, asker: Asker) -> Option<usize> {
        let connection = self.connections.get(asker.slot)?;
        (connection.serial == asker.serial && matches!(connection.client.state(), State::Inside(_)))
            .then_some(asker.slot)
    }

    /// Sends the requests of this round, with one write per lane.
    pub(super) fn flush_lanes(&mut self) {
        for index in 0..self.lanes.len() {
            if let Err(error) = self.lanes[index].flush(self.poll.registry()) {
                self.fail_lane(index, &error);
            }
        }
    }

    /// Handles a broken lane: answers its clients and connects it again.
    fn fail_lane(&mut self, index: usize, error: &io::Error) {
        self.lose_lane(index, &error.to_string());
        self.connect_lanes();
    }

    /// Drops a lane's connection, and answers the clients whose requests were on it.
    pub(super) fn lose_lane(&mut self, index: usize, reason: &str) {
        let askers = self.lanes[index].fail(self.shared.now);
        let kind = self.lanes[index].kind();
        let lost = match askers.len() {
            0 => String::new(),
            count => format!(" with {count} requests in it"),
        };
        self.say(format!("a lane for {kind} broke off{lost}: {reason}"));
        for asker in askers {
            if let Some(slot) = self.holder(asker) {
                self.connections[slot].client.lose(&mut self.shared);
                self.drive(slot);
            }
        }
    }

    /// Connects the lanes that are closed.
    pub(super) fn connect_lanes(&mut self) {
        for index in 0..self.lanes.len() {
            let lane = &mut self.lanes[index];
            if let Err(error) = lane.connect(self.poll.registry()) {
                lane.fail(self.shared.now);
                let kind = lane.kind();
                self.say(format!("cannot reach a lane for {kind}: {error}"));
            }
        }
    }

    /// Why the service cannot go on, if a lane has been closed for too long.
    pub(super) fn lane_trouble(&self, now: Instant) -> Option<String> {
        let is_lost = |lane: &Lane| {
            lane.shut_since.is_some_and(|since| now.saturating_duration_since(since) >= MAX_SHUT)
        };
        let lane = self.lanes.iter().find(|lane| is_lost(lane))?;
        Some(format!("a lane for {} does not answer", lane.kind()))
    }
}

/// The cost in the fair queue of a request with this many bytes.
fn cost(bytes: usize) -> u32 {
    u32::try_from(REQUEST_COST + bytes).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn request_costs_its_bytes_and_8_kib_beside() {
        assert_eq!([0, 1000, 1 << 40].map(cost), [8192, 9192, u32::MAX]);
    }
}
