//! All lanes: requests down in a fair order, and responses up, some of which are held back on purpose.
//!
//! Turns go round by address: an address that has had its turn waits for all others, however many requests it has.
//! Requests of each size wait apart, because a client that asks for little would otherwise wait for every client that
//! asks for much, and there may be thousands of those.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io;

use crate::base::error::{Error, ErrorKind};
use crate::base::http::Size;
use crate::base::http::response::Disposition;
use crate::net::gate::Gate;
use crate::net::gate::client::State;
use crate::net::gate::lanes::{ClientId, KEEP_BYTES};
use crate::net::lane::LaneKind;

/// How many smaller requests go ahead of a larger one, while both wait.
const SMALLER_AHEAD: usize = 8;

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
                let free = self.lanes.iter_mut().filter(|lane| lane.kind == kind && lane.has_capacity(bytes));
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
            match response.disposition {
                Disposition::RetryOnWriter => client.enter(State::Ready(LaneKind::Write), &self.shared),
                Disposition::Abort => client.close(&self.shared),
                Disposition::Send => {
                    client.answer(&response, &mut self.shared);
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

/// The next turns of an address that takes turns with the others, by [`Size`].
pub type Turns = [u64; 3];

/// The waiting requests of one kind of lane.
#[derive(Default)]
pub struct Waiting {
    /// By [`Size`].
    queues: [Queue; 3],
    /// How many smaller requests have gone ahead of the next one of each size.
    ahead: [usize; 3],
}

/// Requests of one size.
#[derive(Default)]
struct Queue {
    /// Turn and client; the least is next.
    requests: BinaryHeap<Reverse<(u64, ClientId)>>,
    /// The turn of the last request that was removed. Requests that come now have later turns, so nobody waits for ever.
    turn: u64,
}

impl Waiting {
    /// Adds a request. The caller limits how many wait. `turns`: those of the client's address.
    pub fn push(&mut self, turns: &mut Turns, size: Size, client: ClientId) {
        let (queue, next) = (&mut self.queues[size as usize], &mut turns[size as usize]);
        let turn = (*next).max(queue.turn + 1);
        *next = turn + 1;
        queue.requests.push(Reverse((turn, client)));
    }

    /// The next request, without removing it.
    pub fn peek(&self) -> Option<(ClientId, Size)> {
        let mut next = None;
        for size in [Size::Large, Size::Medium, Size::Small] {
            if let Some(Reverse((_, client))) = self.queues[size as usize].requests.peek() {
                next = Some((*client, size));
                if self.ahead[size as usize] >= SMALLER_AHEAD {
                    break;
                }
            }
        }
        next
    }

    /// Removes the next request.
    pub fn pop(&mut self) -> Option<ClientId> {
        let (_, size) = self.peek()?;
        self.ahead[size as usize] = 0;
        for larger in size as usize + 1..self.queues.len() {
            let is_waiting = !self.queues[larger].requests.is_empty();
            self.ahead[larger] = if is_waiting { self.ahead[larger] + 1 } else { 0 };
        }
        let queue = &mut self.queues[size as usize];
        let Reverse((turn, client)) = queue.requests.pop()?;
        queue.turn = turn;
        Some(client)
    }

    /// Removes the requests of clients that have gone. It visits all of them.
    pub fn retain(&mut self, is_here: impl Fn(ClientId) -> bool) {
        for queue in &mut self.queues {
            queue.requests.retain(|Reverse((_, client))| is_here(*client));
        }
    }

    /// The number of waiting requests.
    pub fn len(&self) -> usize {
        self.queues.iter().map(|queue| queue.requests.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request that is told by one character.
    fn client(name: char) -> ClientId {
        ClientId { slot: name as usize, serial: 0 }
    }

    fn order(waiting: &mut Waiting) -> String {
        std::iter::from_fn(|| waiting.pop()).filter_map(|client| char::from_u32(client.slot as u32)).collect()
    }

    #[test]
    fn address_with_many_requests_has_one_turn_in_each_round() {
        let (mut waiting, mut turns) = (Waiting::default(), [Turns::default(); 3]);
        for (address, name) in [(0, 'a'), (0, 'b'), (0, 'c'), (1, 'x'), (2, 'y'), (1, 'z')] {
            waiting.push(&mut turns[address], Size::Small, client(name));
        }
        assert_eq!(waiting.len(), 6);
        assert_eq!(order(&mut waiting), "axybzc");
        assert_eq!((waiting.len(), waiting.peek()), (0, None));
    }

    #[test]
    fn newcomers_do_not_go_ahead_for_ever() {
        let (mut waiting, mut many) = (Waiting::default(), Turns::default());
        "abc".chars().for_each(|name| waiting.push(&mut many, Size::Small, client(name)));
        let mut served = String::new();
        for name in "vwxyz".chars() {
            waiting.push(&mut Turns::default(), Size::Small, client(name));
            served.extend(waiting.pop().and_then(|client| char::from_u32(client.slot as u32)));
        }
        assert_eq!(served + &order(&mut waiting), "avbwxcyz");
    }

    #[test]
    fn small_requests_go_ahead_of_a_large_one_but_not_for_ever() {
        let (mut waiting, mut turns) = (Waiting::default(), Turns::default());
        "LM".chars().for_each(|name| waiting.push(&mut turns, Size::Large, client(name)));
        "abcdefghijklmnopqr".chars().for_each(|name| waiting.push(&mut turns, Size::Small, client(name)));
        assert_eq!(order(&mut waiting), "abcdefghLijklmnopMqr");
        waiting.push(&mut turns, Size::Large, client('L'));
        assert_eq!(waiting.peek(), Some((client('L'), Size::Large)), "none waits for a small one");
    }

    #[test]
    fn each_size_waits_for_a_few_of_the_smaller_ones() {
        let (mut waiting, mut turns) = (Waiting::default(), Turns::default());
        for (size, names) in [(Size::Large, "XY"), (Size::Medium, "MN"), (Size::Small, "abcdefghijklmnopqr")]
        {
            names.chars().for_each(|name| waiting.push(&mut turns, size, client(name)));
        }
        assert_eq!(order(&mut waiting), "abcdefghXMijklmnoYpNqr");
    }

    #[test]
    fn those_who_have_gone_lose_their_places() {
        let (mut waiting, mut turns) = (Waiting::default(), Turns::default());
        "axx".chars().for_each(|name| waiting.push(&mut turns, Size::Small, client(name)));
        waiting.push(&mut turns, Size::Large, client('b'));
        waiting.retain(|id| id != client('x'));
        assert_eq!(waiting.len(), 2);
        waiting.push(&mut turns, Size::Small, client('c'));
        assert_eq!(order(&mut waiting), "acb");
    }
}
