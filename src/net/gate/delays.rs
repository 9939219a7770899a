//! Responses that are held back on purpose, so that clients can test how they wait. They hold up no worker.

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::time::{Duration, Instant};

use crate::net::gate::client::Client;
use crate::net::gate::lanes::ClientId;

/// Draws how long the next response is held back.
pub type Delay = Box<dyn FnMut(&[u8]) -> Duration + Send>;

/// The source of the delays, and the responses that are held back.
pub struct Delays {
    draw: Option<Delay>,
    /// The clients, by when their response is due.
    held_back: BinaryHeap<Reverse<(Instant, ClientId)>>,
}

impl Delays {
    pub fn new(draw: Option<Delay>) -> Self {
        Self { draw, held_back: BinaryHeap::new() }
    }

    /// Draws the delay of a request.
    pub fn draw(&mut self, client: &mut Client) {
        if let Some(draw) = &mut self.draw {
            client.delay = draw(client.request.line());
        }
    }

    /// Holds back a response that has just come, if it has a delay.
    pub fn hold_back(&mut self, id: ClientId, client: &mut Client, now: Instant) {
        if !client.delay.is_zero() {
            client.hold_back();
            self.held_back.push(Reverse((now + client.delay, id)));
        }
    }

    /// When the next response is due.
    pub fn next(&self) -> Option<Instant> {
        self.held_back.peek().map(|Reverse((due, _))| *due)
    }

    /// Removes the client whose response is due next.
    pub fn pop(&mut self) -> Option<ClientId> {
        self.held_back.pop().map(|Reverse((_, id))| id)
    }
}
