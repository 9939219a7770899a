//! The requests that wait for a lane, in a fair order.
//!
//! Turns go round by flow: a flow that has had its turn waits for all others, however many requests it has.
//! Small and large requests wait apart, because a client that asks for little would otherwise wait for every
//! client that asks for much, and there may be thousands of those.

use std::collections::{HashMap, VecDeque};

/// How many small requests go ahead of a large one, while both wait.
const SMALL_PER_LARGE: usize = 8;

/// The party that shares fairly: an address, by its index, or a single connection of an exempt one, by its number.
pub type Flow = (usize, u64);

/// How much work a request is, as its method and target tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Size {
    Small,
    /// Its response may be large, such as a long list or a deployed file.
    Large,
}

/// The waiting requests of one kind of lane.
pub struct Waiting<T> {
    /// By [`Size`].
    rounds: [Round<T>; 2],
    /// Small requests that have gone ahead of the large one that is next.
    ahead: usize,
}

impl<T> Default for Waiting<T> {
    fn default() -> Self {
        Self { rounds: [Round::default(), Round::default()], ahead: 0 }
    }
}

impl<T> Waiting<T> {
    /// Adds a request. The caller limits how many wait.
    pub fn push(&mut self, flow: Flow, size: Size, item: T) {
        self.rounds[size as usize].push(flow, item);
    }

    /// The next request, without removing it.
    pub fn peek(&self) -> Option<(&T, Size)> {
        let [small, large] = [Size::Small, Size::Large].map(|size| self.rounds[size as usize].peek());
        match (small, large) {
            (Some(item), None) => Some((item, Size::Small)),
            (Some(item), Some(_)) if self.ahead < SMALL_PER_LARGE => Some((item, Size::Small)),
            _ => large.map(|item| (item, Size::Large)),
        }
    }

    /// Removes the next request.
    pub fn pop(&mut self) -> Option<T> {
        let (_, size) = self.peek()?;
        let has_large = self.rounds[Size::Large as usize].count > 0;
        self.ahead = if size == Size::Small && has_large { self.ahead + 1 } else { 0 };
        self.rounds[size as usize].pop()
    }

    /// Removes the requests that have no more use for their places. It visits all of them.
    pub fn retain(&mut self, has_use: impl Fn(&T) -> bool) {
        self.rounds.iter_mut().for_each(|round| round.retain(&has_use));
    }

    /// The number of waiting requests.
    pub fn len(&self) -> usize {
        self.rounds.iter().map(|round| round.count).sum()
    }
}

/// The requests of one size.
struct Round<T> {
    /// The flows with requests, the next one first.
    turns: VecDeque<Flow>,
    /// The requests of each flow with at least one, first in, first out.
    requests: HashMap<Flow, VecDeque<T>>,
    /// Empty queues of flows, for others.
    spare: Vec<VecDeque<T>>,
    count: usize,
}

impl<T> Default for Round<T> {
    fn default() -> Self {
        Self { turns: VecDeque::new(), requests: HashMap::new(), spare: Vec::new(), count: 0 }
    }
}

impl<T> Round<T> {
    fn push(&mut self, flow: Flow, item: T) {
        let queue = self.requests.entry(flow).or_insert_with(|| self.spare.pop().unwrap_or_default());
        if queue.is_empty() {
            self.turns.push_back(flow);
        }
        queue.push_back(item);
        self.count += 1;
    }

    fn peek(&self) -> Option<&T> {
        self.requests.get(self.turns.front()?)?.front()
    }

    fn pop(&mut self) -> Option<T> {
        let flow = self.turns.pop_front()?;
        let queue = self.requests.get_mut(&flow)?;
        let item = queue.pop_front()?;
        self.count -= 1;
        if queue.is_empty() {
            self.spare.extend(self.requests.remove(&flow));
        } else {
            self.turns.push_back(flow);
        }
        Some(item)
    }

    fn retain(&mut self, has_use: impl Fn(&T) -> bool) {
        self.requests.retain(|_, queue| {
            queue.retain(&has_use);
            !queue.is_empty()
        });
        self.turns.retain(|flow| self.requests.contains_key(flow));
        self.count = self.requests.values().map(VecDeque::len).sum();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Flow = (1, 0);
    const B: Flow = (2, 0);

    /// Requests that wait, each with its flow, its size and its name.
    fn waiting(requests: &[(Flow, Size, char)]) -> Waiting<char> {
        let mut waiting = Waiting::default();
        requests.iter().for_each(|(flow, size, name)| waiting.push(*flow, *size, *name));
        waiting
    }

    fn order(waiting: &mut Waiting<char>) -> String {
        std::iter::from_fn(|| waiting.pop()).collect()
    }

    #[test]
    fn flow_with_many_requests_has_one_turn_in_each_round() {
        let requests = [(A, 'a'), (A, 'b'), (A, 'c'), (B, 'x'), ((1, 7), 'y'), (B, 'z')];
        let mut waiting = waiting(&requests.map(|(flow, name)| (flow, Size::Small, name)));
        assert_eq!(waiting.len(), 6);
        assert_eq!(order(&mut waiting), "axybzc");
        assert_eq!((waiting.len(), waiting.peek()), (0, None));
    }

    #[test]
    fn small_requests_go_ahead_of_a_large_one_but_not_for_ever() {
        let mut waiting = waiting(&[(A, Size::Large, 'L'), (A, Size::Large, 'M')]);
        "abcdefghijklmnopqr".chars().for_each(|name| waiting.push(B, Size::Small, name));
        assert_eq!(order(&mut waiting), "abcdefghLijklmnopMqr");
        waiting.push(A, Size::Large, 'L');
        assert_eq!(waiting.peek(), Some((&'L', Size::Large)), "none waits for a small one");
    }

    #[test]
    fn those_who_have_gone_lose_their_places() {
        let mut waiting = waiting(&[
            (A, Size::Small, 'a'),
            (A, Size::Small, 'x'),
            (B, Size::Small, 'x'),
            (B, Size::Large, 'b'),
        ]);
        waiting.retain(|name| *name != 'x');
        assert_eq!(waiting.len(), 2);
        waiting.push(B, Size::Small, 'c');
        assert_eq!(order(&mut waiting), "acb");
    }
}
