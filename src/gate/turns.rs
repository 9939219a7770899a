//! Who is next for a lane: requests that cost little and those that cost much wait apart, each in a fair
//! order, and share the work half and half.
//!
//! In one order, who asks for little again and again comes behind all who ask for much, once it has had as
//! much as each of them is to get. They may be thousands. Here it waits for one of them.

use crate::gate::fair_queue::FairQueue;

/// A request is dear from this cost on.
const DEAR: u32 = 32 * 1024;

/// The waiting requests.
pub struct Turns<T> {
    cheap: FairQueue<T>,
    dear: FairQueue<T>,
    /// Work done for cheap requests while dear ones waited, and not yet for those.
    lead: u64,
}

impl<T> Turns<T> {
    /// Nobody yet; of each kind, at most so many wait.
    pub fn new(most: usize) -> Self {
        Self { cheap: FairQueue::new(most), dear: FairQueue::new(most), lead: 0 }
    }

    /// Joins those of its kind, as [`FairQueue::push`] says.
    ///
    /// # Errors
    /// The item itself, where too many of its kind wait.
    pub fn push(&mut self, flow: u64, cost: u32, item: T) -> Result<(), T> {
        self.of(cost).push(flow, cost, item)
    }

    /// The next in turn, which stays, and its cost.
    pub fn peek(&self) -> Option<(&T, u32)> {
        let (cheap, dear) = (self.cheap.peek(), self.dear.peek());
        match dear {
            Some((_, cost)) if cheap.is_none() || self.lead >= u64::from(cost) => dear,
            _ => cheap,
        }
    }

    /// The next in turn, which leaves.
    pub fn pop(&mut self) -> Option<T> {
        let (_, cost) = self.peek()?;
        if cost >= DEAR {
            self.lead = self.lead.saturating_sub(u64::from(cost));
        } else if self.dear.peek().is_some() {
            self.lead += u64::from(cost);
        }
        self.of(cost).pop()
    }

    /// The next in turn, which leaves without having been served.
    pub fn take(&mut self) -> Option<T> {
        let (_, cost) = self.peek()?;
        self.of(cost).take()
    }

    /// Lets those go who have no more use for their places. It looks at all.
    pub fn retain(&mut self, mut has_use: impl FnMut(&T) -> bool) {
        self.cheap.retain(&mut has_use);
        self.dear.retain(has_use);
    }

    /// A request of the flow cost so much, which was `more` than was said, as [`FairQueue::charge`] says.
    pub fn charge(&mut self, flow: u64, cost: u32, more: u32) {
        self.of(cost).charge(flow, more);
    }

    /// How many wait.
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
            // A page goes down while it does not ask.
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
        turns.push(1, PAGE, 'a').unwrap();
        for item in ['b', 'c', 'd'] {
            turns.push(2, DEAR - 1, item).unwrap();
        }
        assert_eq!(turns.len(), 4);
        assert_eq!((turns.take(), turns.lead), (Some('b'), 0));
        assert_eq!((turns.pop(), turns.lead), (Some('c'), u64::from(DEAR - 1)));
        turns.retain(|item| *item != 'd');
        assert_eq!(turns.peek(), Some((&'a', PAGE)));
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
