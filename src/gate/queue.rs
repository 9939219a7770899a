//! The requests that wait for room in a lane: first in, first out, and bounded.

use std::collections::VecDeque;

use crate::gate::lane::Ticket;

/// The most that wait; one more is answered with 503 at once.
const MAX_WAITING: usize = 4096;

/// One kind's queue. Who has gone meanwhile stays in it until its turn.
#[derive(Default)]
pub struct Queue(VecDeque<Ticket>);

impl Queue {
    /// Joins the end; `false` where the queue is full.
    pub fn push(&mut self, ticket: Ticket) -> bool {
        let has_room = self.0.len() < MAX_WAITING;
        if has_room {
            self.0.push_back(ticket);
        }
        has_room
    }

    /// The next in turn.
    pub fn pop(&mut self) -> Option<Ticket> {
        self.0.pop_front()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn order_is_kept_and_the_length_bounded() {
        let mut queue = Queue::default();
        for slot in 0..MAX_WAITING {
            assert!(queue.push(Ticket { slot, serial: 0 }));
        }
        assert!(!queue.push(Ticket { slot: 0, serial: 1 }));
        assert_eq!(queue.pop(), Some(Ticket { slot: 0, serial: 0 }));
        assert!(queue.push(Ticket { slot: 0, serial: 1 }));
        assert_eq!(queue.pop(), Some(Ticket { slot: 1, serial: 0 }));
    }
}
