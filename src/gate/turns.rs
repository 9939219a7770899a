//! Which request goes to a lane next: cheap and expensive requests wait in two fair queues, and each queue
//! gets half of the work.
//!
//! In one queue, a client that keeps asking for little would end up behind every client that asks for much, and
//! there may be thousands of those. With two queues it waits for at most one of them.

use crate::gate::fair_queue::FairQueue;

/// The cost from which on a request is expensive.
const DEAR: u32 = 32 * 1024;

/// The waiting requests.
pub struct Turns<T> {
    cheap: FairQueue<T>,
    dear: FairQueue<T>,
    /// Work done for cheap requests while expensive ones waited, and not yet made up for.
    lead: u64,
}

impl<T: Ord> Turns<T> {
    /// Two empty queues, each for at most this many requests.
    pub fn new(most: usize) -> Self {
        Self { cheap: FairQueue::new(most), dear: FairQueue::new(most), lead: 0 }
    }

    /// Adds a request to its queue; see [`FairQueue::push`].
    ///
    /// # Errors
    /// The item, if its queue is full.
    pub fn push(&mut self, flow: u64, cost: u32, item: T) -> Result<(), T> {
        self.of(cost).push(flow, cost, item)
    }

    /// The next request and its cost, without removing it.
    pub fn peek(&self) -> Option<(&T, u32)> {
        let (cheap, dear) = (self.cheap.peek(), self.dear.peek());
        match dear {
            Some((_, cost)) if cheap.is_none() || self.lead >= u64::from(cost) => dear,
            _ => cheap,
        }
    }

    /// Removes the next request.
    pub fn pop(&mut self) -> Option<T> {
        let (_, cost) = self.peek()?;
        if cost >= DEAR {
            self.lead = self.lead.saturating_sub(u64::from(cost));
        } else if self.dear.peek().is_some() {
            self.lead += u64::from(cost);
        }
        self.of(cost).pop()
    }

    /// Removes the next request without serving it.
    pub fn take(&mut self) -> Option<T> {
        let (_, cost) = self.peek()?;
        self.of(cost).take()
    }

    /// Removes the requests that have no more use for their places. It visits all of them.
    pub fn retain(&mut self, mut has_use: impl FnMut(&T) -> bool) {
        self.cheap.retain(&mut has_use);
        self.dear.retain(has_use);
    }

    /// Charges a flow for a request that cost `cost`, which is `more` than announced; see
    /// [`FairQueue::charge`].
    pub fn charge(&mut self, flow: u64, cost: u32, more: u32) {
        self.of(cost).charge(flow, more);
    }

    /// The number of waiting requests.
    pub fn len(&self) -> usize {
        self.cheap.len() + self.dear.len()
    }

    fn of(&mut self, cost: u32) -> &mut FairQueue<T> {
        if cost < DEAR { &mut self.cheap } else { &mut self.dear }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAGE: u32 = 1024 * 1024;
    const SMALL: u32 = 10 * 1024;

    #[test]
    fn who_asks_for_little_again_and_again_waits_for_one_who_asks_for_much() {
        let mut turns = Turns::new(4096);
        (1..=2000).for_each(|flow| turns.push(flow, PAGE, flow).unwrap());
        let mut served = 0;
        for _ in 0..1000 {
            turns.push(0, SMALL, 0).unwrap();
            let before = std::iter::from_fn(|| turns.pop()).take_while(|flow| *flow > 0).count();
            assert!(before <= 1, "{before}");
            served += before;
            // A page goes down the lane while it does not ask.
            served += usize::from(turns.pop().is_some());
        }
        assert!(served >= 1000);
    }

    #[test]
    fn each_kind_gets_half_of_the_work() {
        let mut turns = Turns::new(4096);
        let (mut work, mut flow) = ([0, 0], 0);
        turns.push(flow, PAGE, PAGE).unwrap();
        turns.push(flow, SMALL, SMALL).unwrap();
        for _ in 0..100_000 {
            let cost = turns.pop().unwrap();
            work[usize::from(cost == PAGE)] += u64::from(cost);
            flow += 1;
            turns.push(flow, cost, cost).unwrap();
        }
        assert!(work[0].abs_diff(work[1]) <= 2 * u64::from(PAGE), "{work:?}");
    }

    #[test]
    fn who_leaves_unserved_has_had_no_work() {
        let mut turns = Turns::new(10);
        turns.push(1, DEAR, 'a').unwrap();
        for item in ['b', 'c', 'd'] {
            turns.push(2, DEAR - 1, item).unwrap();
        }
        assert_eq!(turns.len(), 4);
        assert_eq!((turns.take(), turns.lead), (Some('b'), 0));
        assert_eq!((turns.pop(), turns.lead), (Some('c'), u64::from(DEAR - 1)));
        turns.retain(|item| *item != 'd');
        assert_eq!(turns.peek(), Some((&'a', DEAR)));
        assert_eq!((turns.pop(), turns.lead), (Some('a'), 0));
        assert_eq!((turns.pop(), turns.take()), (None, None));
    }

    #[test]
    fn each_kind_has_its_own_bound_and_its_own_debts() {
        let mut turns = Turns::new(2);
        turns.charge(1, PAGE, PAGE);
        for (flow, item) in [(1, 'a'), (2, 'b')] {
            turns.push(flow, PAGE, item).unwrap();
            turns.push(flow, SMALL, item).unwrap();
        }
        assert_eq!((turns.push(3, PAGE, 'c'), turns.push(3, DEAR - 1, 'c')), (Err('c'), Err('c')));
        let order: String = std::iter::from_fn(|| turns.pop()).collect();
        assert_eq!(order, "abba", "the cheap ones first; what 1 had of the dear ones counts among those");
    }
}
