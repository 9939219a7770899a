//! The queue of requests that wait for a lane, in a fair order.
//!
//! Addresses take turns, however many requests each has. Each size has its own queue: otherwise a small request would
//! wait for the large ones of thousands of addresses.

use std::cmp::Reverse;
use std::collections::BinaryHeap;

use crate::lanes::ClientId;
use petstore_base::http::Size;

/// The number of smaller requests that go ahead of a larger one, while both wait.
const SMALLER_AHEAD: usize = 8;

/// The next turns of an address that takes turns with the others, by [`Size`].
pub type Turns = [u64; 3];

/// The waiting requests of one kind of lane, by [`Size`].
#[derive(Default)]
pub struct FairQueue([SizeQueue; 3]);

/// Requests of one size.
#[derive(Default)]
struct SizeQueue {
    /// Turn and client; the least is next.
    requests: BinaryHeap<Reverse<(u64, ClientId)>>,
    /// The turn of the last request that was removed. New requests have later turns, so none waits for ever.
    turn: u64,
    /// The number of smaller requests that have gone ahead of the next one.
    ahead: usize,
}

impl FairQueue {
    /// Adds a request. The caller bounds their number. `turns`: those of the client's address.
    pub fn push(&mut self, turns: &mut Turns, size: Size, client: ClientId) {
        let queue = &mut self.0[size as usize];
        let next = &mut turns[size as usize];
        let turn = (*next).max(queue.turn + 1);
        *next = turn + 1;
        queue.requests.push(Reverse((turn, client)));
    }

    /// The next request, without removing it.
    pub fn peek(&self) -> Option<ClientId> {
        let Reverse((_, client)) = self.0[self.next_size()?].requests.peek()?;
        Some(*client)
    }

    /// The size of the next request: the smallest in the queue, unless a larger one has waited for [`SMALLER_AHEAD`].
    fn next_size(&self) -> Option<usize> {
        let mut waiting = (0..self.0.len()).filter(|size| !self.0[*size].requests.is_empty());
        let smallest = waiting.next()?;
        Some(
            waiting
                .rfind(|size| self.0[*size].ahead >= SMALLER_AHEAD)
                .unwrap_or(smallest),
        )
    }

    /// Removes the next request.
    pub fn pop(&mut self) -> Option<ClientId> {
        let size = self.next_size()?;
        for larger in &mut self.0[size + 1..] {
            larger.ahead = if larger.requests.is_empty() {
                0
            } else {
                larger.ahead + 1
            };
        }
        let queue = &mut self.0[size];
        let Reverse((turn, client)) = queue.requests.pop()?;
        queue.turn = turn;
        queue.ahead = 0;
        Some(client)
    }

    /// Removes the requests of closed connections. It visits all requests.
    pub fn retain(&mut self, mut is_here: impl FnMut(ClientId) -> bool) {
        for queue in &mut self.0 {
            queue
                .requests
                .retain(|Reverse((_, client))| is_here(*client));
        }
    }

    /// The number of waiting requests.
    pub fn len(&self) -> usize {
        self.0.iter().map(|queue| queue.requests.len()).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request that is named by one character.
    fn client(name: char) -> ClientId {
        ClientId {
            slot: name as usize,
            serial: 0,
        }
    }

    fn order(waiting: &mut FairQueue) -> String {
        std::iter::from_fn(|| waiting.pop())
            .filter_map(|client| char::from_u32(client.slot as u32))
            .collect()
    }

    #[test]
    fn address_with_many_requests_has_one_turn_in_each_round() {
        let (mut waiting, mut turns) = (FairQueue::default(), [Turns::default(); 3]);
        for (address, name) in [(0, 'a'), (0, 'b'), (0, 'c'), (1, 'x'), (2, 'y'), (1, 'z')] {
            waiting.push(&mut turns[address], Size::Small, client(name));
        }
        assert_eq!(waiting.len(), 6);
        assert_eq!(order(&mut waiting), "axybzc");
        assert_eq!((waiting.len(), waiting.peek()), (0, None));
    }

    #[test]
    fn newcomers_do_not_go_ahead_for_ever() {
        let (mut waiting, mut many) = (FairQueue::default(), Turns::default());
        "abc"
            .chars()
            .for_each(|name| waiting.push(&mut many, Size::Small, client(name)));
        let mut served = String::new();
        for name in "vwxyz".chars() {
            waiting.push(&mut Turns::default(), Size::Small, client(name));
            served.extend(
                waiting
                    .pop()
                    .and_then(|client| char::from_u32(client.slot as u32)),
            );
        }
        assert_eq!(served + &order(&mut waiting), "avbwxcyz");
    }

    #[test]
    fn small_requests_go_ahead_of_a_large_one_but_not_for_ever() {
        let (mut waiting, mut turns) = (FairQueue::default(), Turns::default());
        "LM".chars()
            .for_each(|name| waiting.push(&mut turns, Size::Large, client(name)));
        "abcdefghijklmnopqr"
            .chars()
            .for_each(|name| waiting.push(&mut turns, Size::Small, client(name)));
        assert_eq!(order(&mut waiting), "abcdefghLijklmnopMqr");
        waiting.push(&mut turns, Size::Large, client('L'));
        assert_eq!(
            waiting.peek(),
            Some(client('L')),
            "none waits for a small one"
        );
    }

    #[test]
    fn each_size_waits_for_a_few_of_the_smaller_ones() {
        let (mut waiting, mut turns) = (FairQueue::default(), Turns::default());
        for (size, names) in [
            (Size::Large, "XY"),
            (Size::Medium, "MN"),
            (Size::Small, "abcdefghijklmnopqr"),
        ] {
            names
                .chars()
                .for_each(|name| waiting.push(&mut turns, size, client(name)));
        }
        assert_eq!(order(&mut waiting), "abcdefghXMijklmnoYpNqr");
    }

    #[test]
    fn closed_connections_lose_their_turns() {
        let (mut waiting, mut turns) = (FairQueue::default(), Turns::default());
        "axx"
            .chars()
            .for_each(|name| waiting.push(&mut turns, Size::Small, client(name)));
        waiting.push(&mut turns, Size::Large, client('b'));
        waiting.retain(|id| id != client('x'));
        assert_eq!(waiting.len(), 2);
        waiting.push(&mut turns, Size::Small, client('c'));
        assert_eq!(order(&mut waiting), "acb");
    }
}
