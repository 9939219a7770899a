//! The requests that wait for a lane, in a fair order: clients that ask for little go before clients that ask
//! for much.
//!
//! Knows only flows, costs and items, not what they stand for. This is fair queueing (Demers, Keshav and
//! Shenker, SIGCOMM 1989) with the virtual time of start-time fair queueing (Goyal, Vin and Cheng, SIGCOMM
//! 1996): a request starts, in virtual time, where the flow's last one finishes, or now, and finishes after
//! its cost; the one that finishes first is next. So flows that wait at the same time get the same amount of
//! work, cheap requests go before expensive ones, and a single flow is first in, first out.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

/// The number of debts below which none are forgotten.
const MIN_DEBTS: usize = 64;

/// The waiting requests. Each operation takes logarithmic time, including the forgetting of debts
/// (amortized).
///
/// Virtual time counts units of cost in a `u64`. It runs at most twice as fast as the work done, so a billion
/// units a second would take centuries to fill it. Even then it only stands still, and the queue becomes
/// first in, first out.
pub struct FairQueue<T> {
    waiting: BinaryHeap<Reverse<Waiting<T>>>,
    most: usize,
    /// The virtual time. It never goes back.
    now: u64,
    /// Work that has not moved the virtual time yet: less than a unit for each waiting request.
    rest: u64,
    /// Counts the requests, for the order among equals.
    sequence: u64,
    /// When the last request of each flow finishes. Times in the past mean nothing and are forgotten.
    debts: HashMap<u64, u64>,
    /// The number of debts at which to forget some.
    prune_at: usize,
}

/// A request. The one that finishes first, in virtual time, is next, and the earlier one among equals.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Waiting<T> {
    finish: u64,
    sequence: u64,
    cost: u32,
    item: T,
}

impl<T: Ord> FairQueue<T> {
    /// An empty queue for at most this many requests.
    pub fn new(most: usize) -> Self {
        Self {
            waiting: BinaryHeap::new(),
            most,
            now: 0,
            rest: 0,
            sequence: 0,
            debts: HashMap::new(),
            prune_at: MIN_DEBTS,
        }
    }

    /// Adds a request. `flow` is a number for the party that shares fairly. `cost` is in any unit that is the
    /// same for all; 0 counts as 1, because a flow that costs nothing would always be first.
    ///
    /// The bound is for all flows together, so the caller must limit how many requests of one flow wait.
    ///
    /// # Errors
    /// The item, if the queue is full.
    pub fn push(&mut self, flow: u64, cost: u32, item: T) -> Result<(), T> {
        if self.waiting.len() >= self.most {
            return Err(item);
        }
        let cost = cost.max(1);
        let finish = self.owe(flow, cost);
        self.sequence += 1;
        self.waiting.push(Reverse(Waiting { finish, sequence: self.sequence, cost, item }));
        Ok(())
    }

    /// The next request and its cost, without removing it.
    pub fn peek(&self) -> Option<(&T, u32)> {
        self.waiting.peek().map(|Reverse(waiting)| (&waiting.item, waiting.cost))
    }

    /// Removes the next request.
    pub fn pop(&mut self) -> Option<T> {
        let Reverse(waiting) = self.waiting.pop()?;
        self.now = self.now.max(waiting.finish - u64::from(waiting.cost));
        self.advance(waiting.cost);
        Some(waiting.item)
    }

    /// Removes the next request without serving it.
    pub fn take(&mut self) -> Option<T> {
        self.waiting.pop().map(|Reverse(waiting)| waiting.item)
    }

    /// Removes the requests that have no more use for their places. It visits all of them.
    pub fn retain(&mut self, mut has_use: impl FnMut(&T) -> bool) {
        self.waiting.retain(|Reverse(waiting)| has_use(&waiting.item));
    }

    /// Charges a flow for a request that cost more than announced: its next requests start that much later.
    /// Waiting ones keep their places. Nothing is ever given back.
    pub fn charge(&mut self, flow: u64, more: u32) {
        if more > 0 {
            self.advance(more);
            self.owe(flow, more);
        }
    }

    /// The number of waiting requests.
    pub fn len(&self) -> usize {
        self.waiting.len()
    }

    /// Adds to the debt of a flow, and returns when it is paid in virtual time.
    fn owe(&mut self, flow: u64, cost: u32) -> u64 {
        let debt = self.debts.entry(flow).or_default();
        let finish = self.now.max(*debt).saturating_add(u64::from(cost));
        *debt = finish;
        if self.debts.len() > self.prune_at {
            self.debts.retain(|_, finish| *finish > self.now);
            // As many again must come before all of them are visited again.
            self.prune_at = MIN_DEBTS.max(2 * self.debts.len());
            self.debts.shrink_to(self.prune_at);
        }
        finish
    }

    /// Moves the virtual time on by the work done.
    ///
    /// If only starts moved it, it would stand still while new flows keep coming: expensive requests would
    /// wait forever, and no debt would be forgotten. So it moves by the share of each waiting request, as if
    /// each were of another flow. Work done while none waited was at nobody's expense, so all debts shrink by
    /// it.
    fn advance(&mut self, work: u32) {
        let work = u64::from(work);
        if self.waiting.is_empty() {
            self.now = self.now.saturating_add(work);
            return;
        }
        let places = (self.waiting.len() as u64).saturating_add(1);
        self.rest += work;
        self.now = self.now.saturating_add(self.rest / places);
        self.rest %= places;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Random;

    const A: u64 = 1;
    const B: u64 = 2;

    fn drain<T: Ord>(queue: &mut FairQueue<T>) -> Vec<T> {
        std::iter::from_fn(|| queue.pop()).collect()
    }

    #[test]
    fn one_flow_is_first_in_first_out() {
        let mut queue = FairQueue::new(100);
        for item in 0..100 {
            queue.push(A, 1 + item % 7, item).unwrap();
        }
        assert_eq!(queue.peek(), Some((&0, 1)));
        assert_eq!(drain(&mut queue), (0..100).collect::<Vec<_>>());
        assert_eq!(queue.peek(), None);
    }

    #[test]
    fn many_requests_of_one_flow_put_nobody_behind_all_of_them() {
        let mut queue = FairQueue::new(1000);
        for item in 0..100 {
            queue.push(A, 1, item).unwrap();
        }
        queue.push(B, 1, 1000).unwrap();
        assert_eq!((queue.pop(), queue.pop()), (Some(0), Some(1000)));
        assert_eq!(queue.pop(), Some(1));
        queue.push(B, 1, 1001).unwrap();
        assert_eq!(queue.pop(), Some(1001));
    }

    #[test]
    fn cheap_requests_get_more_turns() {
        let mut queue = FairQueue::new(4096);
        queue.push(A, 100, A).unwrap();
        queue.push(B, 1, B).unwrap();
        let mut turns = [0, 0, 0];
        for _ in 0..10_100 {
            let flow = queue.pop().unwrap();
            turns[flow as usize] += 1;
            queue.push(flow, if flow == A { 100 } else { 1 }, flow).unwrap();
        }
        assert!((98..=102).contains(&turns[A as usize]), "{turns:?}");
    }

    #[test]
    fn later_charge_counts_like_a_cost() {
        let mut queue = FairQueue::new(4096);
        queue.push(A, 1, A).unwrap();
        queue.pop();
        queue.charge(A, 99);
        queue.push(A, 1, A).unwrap();
        for _ in 0..98 {
            queue.push(B, 1, B).unwrap();
        }
        let order = drain(&mut queue);
        assert_eq!(order.last(), Some(&A));
        queue.charge(A, u32::MAX);
        queue.charge(B, 0);
        queue.push(A, u32::MAX, A).unwrap();
        queue.push(B, 1, B).unwrap();
        assert_eq!(drain(&mut queue), [B, A]);
    }

    #[test]
    fn silent_flow_has_saved_nothing_up() {
        let mut queue = FairQueue::new(4096);
        for _ in 0..1000 {
            queue.push(A, 1, A).unwrap();
        }
        for _ in 0..500 {
            queue.pop();
        }
        for _ in 0..500 {
            queue.push(B, 1, B).unwrap();
        }
        let b = (0..100).filter(|_| queue.pop() == Some(B)).count();
        assert!((49..=51).contains(&b), "{b}");
    }

    #[test]
    fn what_turns_out_dear_goes_after_what_is_cheap() {
        let mut queue = FairQueue::new(100);
        for flow in 0..10 {
            queue.push(flow, 1, flow).unwrap();
        }
        queue.push(A + 100, 1, 100).unwrap();
        for flow in 0..10 {
            assert_eq!(queue.peek(), Some((&flow, 1)));
            assert_eq!((queue.take(), queue.now), (Some(flow), 0), "nothing was done");
            queue.push(flow, 50, flow).unwrap();
        }
        assert_eq!(queue.pop(), Some(100));
        assert_eq!(drain(&mut queue).len(), 10);
    }

    #[test]
    fn equal_requests_are_first_in_first_out() {
        let mut queue = FairQueue::new(10);
        for (flow, item) in [(A, "z"), (B, "y"), (3, "x")] {
            queue.push(flow, 1, item).unwrap();
        }
        assert_eq!([queue.pop(), queue.pop(), queue.pop()], [Some("z"), Some("y"), Some("x")]);
    }

    #[test]
    fn who_has_gone_makes_room() {
        let mut queue = FairQueue::new(4);
        for item in 0..4 {
            queue.push(A, 1, item).unwrap();
        }
        queue.retain(|item| item % 2 == 1);
        queue.push(A, 1, 5).unwrap();
        assert_eq!(drain(&mut queue), [1, 3, 5]);
    }

    #[test]
    fn length_is_bounded() {
        let mut queue = FairQueue::new(2);
        assert_eq!(queue.push(A, 1, 'a'), Ok(()));
        assert_eq!(queue.push(A, 1, 'b'), Ok(()));
        assert_eq!(queue.push(B, 1, 'c'), Err('c'));
        assert_eq!((queue.len(), queue.len() == 0), (2, false));
        queue.pop();
        assert_eq!(queue.push(B, 1, 'c'), Ok(()));
        assert_eq!(drain(&mut queue), ['c', 'b']);
        assert_eq!((queue.len(), queue.len() == 0), (0, true));
        assert_eq!(FairQueue::new(0).push(A, 1, 'a'), Err('a'));
        FairQueue::<char>::new(0).charge(A, 1);
    }

    #[test]
    fn debts_are_forgotten_while_ever_new_flows_come() {
        // The most that wait, and whether costs are charged afterwards.
        for (waiting, charges) in [(0, false), (0, true), (1, true), (50, false), (50, true)] {
            let mut queue = FairQueue::new(100);
            for flow in 0..50_000 {
                let cost = if flow % 10 == 0 { 10_000 } else { 3 };
                queue.push(flow, if charges { 1 } else { cost }, flow).unwrap();
                if queue.len() > waiting
                    && let Some(flow) = queue.pop()
                    && charges
                {
                    queue.charge(flow, cost);
                }
                assert!(queue.debts.len() <= 1000, "{waiting} {charges} {flow}: {}", queue.debts.len());
            }
        }
    }

    #[test]
    fn debt_that_still_counts_is_not_forgotten_with_others() {
        let mut queue = FairQueue::new(1000);
        queue.push(A, 1000, "first of A").unwrap();
        for flow in 0..2 * MIN_DEBTS as u64 {
            queue.push(100 + flow, 1, "other").unwrap();
        }
        queue.push(A, 1, "second of A").unwrap();
        queue.push(B, 500, "B").unwrap();
        assert_eq!(drain(&mut queue)[2 * MIN_DEBTS..], ["B", "first of A", "second of A"]);
    }

    #[test]
    fn ever_new_flows_keep_nobody_waiting_for_ever() {
        let mut queue = FairQueue::new(100);
        for flow in 100..110 {
            queue.push(flow, 1, flow).unwrap();
        }
        queue.push(A, 10, A).unwrap();
        queue.push(A, 10, A).unwrap();
        let mut turns = Vec::new();
        for turn in 0..3000 {
            if queue.pop() == Some(A) {
                turns.push(turn);
            }
            queue.push(200 + turn, 1, 0).unwrap();
        }
        assert_eq!(turns.len(), 2);
        assert!(turns[1] <= 2 * 10 * 100 + 20, "{turns:?}");
    }

    #[test]
    fn busy_flows_get_the_same_work_whatever_their_requests_cost() {
        let mut numbers = Random::new();
        let mut random = |below: u64| numbers.below(below as usize) as u64;
        let mut queue = FairQueue::new(4096);
        let mut push = |queue: &mut FairQueue<(usize, u64)>, flow: usize| {
            let cost = 1 + random([1, 5, 20, 100, 300][flow]);
            queue.push(flow as u64, cost as u32, (flow, cost)).unwrap();
        };
        let mut work = [0; 5];
        for turn in 0..50_000 {
            // A flow that has joined always has requests waiting; the last one joins late.
            let joining = match turn {
                0 => 0..4,
                10_000 => 4..5,
                _ => 0..0,
            };
            for flow in joining {
                work = [0; 5];
                for _ in 0..3 {
                    push(&mut queue, flow);
                }
            }
            let (flow, cost) = queue.pop().unwrap();
            work[flow] += cost;
            push(&mut queue, flow);
            let busy = if turn < 10_000 { &work[..4] } else { &work[..] };
            let (least, most) = busy.iter().min().zip(busy.iter().max()).unwrap();
            // A tenth, and the most that two requests cost.
            assert!(most - least <= most / 10 + 2 * 300, "{turn}: {work:?}");
        }
    }
}
