//! How the service ends: what has begun is finished, or the clients are told why it cannot be.

use std::time::{Duration, Instant};

use crate::base::error::Error;
use crate::net::gate::Gate;
use crate::net::gate::client::State;
use crate::net::gate::socket_file::BACKLOG;

/// How long clients have to take their last responses when the service fails.
pub const LAST_WORDS: Duration = Duration::from_secs(1);

/// The clients to accept at the end: everything in the backlog, but not endlessly, because others may come as fast.
const MAX_LAST_ACCEPTS: usize = 2 * BACKLOG;

impl Gate {
    /// Begins to end when it is time to, and returns how the service ended once it has.
    pub(super) fn end(&mut self) -> Option<Result<(), Error>> {
        if self.stopper.is_failing() {
            self.tell_all();
            if !std::mem::replace(&mut self.has_failed, true) {
                self.end_by = Some(Instant::now() + LAST_WORDS);
            }
        }
        if self.stopper.is_stopping() && !self.shared.draining {
            if let Some(reason) = self.stopper.reason() {
                log::error!("ending: {reason}");
            }
            self.end_by.get_or_insert(Instant::now() + self.shared.deadlines.drain);
            self.begin_drain();
        }
        let by = self.end_by?;
        if !self.connections.is_empty() && self.shared.now < by {
            return None;
        }
        self.note_cut_off();
        Some(self.stopper.reason().map_or(Ok(()), Err))
    }

    /// Notes how many requests would be cut off if the service ended now.
    pub(super) fn note_cut_off(&self) {
        let begun = self.connections.iter().filter(|(_, c)| c.client.has_request());
        self.stopper.note_cut_off(begun.count());
    }

    /// Answers all requests that nobody will answer any more.
    fn tell_all(&mut self) {
        for slot in self.slots_of(|client| matches!(client.state(), State::Waiting | State::Inside(_))) {
            if let Some(connection) = self.connections.get_mut(slot) {
                connection.client.expire(&mut self.shared);
                self.drive(slot);
            }
        }
    }

    /// Accepts nobody any more, and closes idle clients soon.
    pub(super) fn begin_drain(&mut self) {
        self.shared.now = Instant::now();
        // The next service accepts the clients that wait at a supervisor's socket.
        self.listening.take_if(|listening| listening.is_passed);
        self.note_newcomers();
        self.accept(MAX_LAST_ACCEPTS);
        self.listening = None;
        self.shared.draining = true;
        for slot in self.slots_of(|_| true) {
            // A request that has been sent has begun, even if its event has not been seen yet.
            if let Some(connection) = self.connections.get_mut(slot) {
                connection.readable = true;
            }
            self.drive(slot);
            let connection = self.connections.get_mut(slot).filter(|c| c.client.state() == State::Idle);
            if let Some(idle) = connection {
                // It has only a moment more.
                idle.client.enter(State::Idle, &self.shared);
            }
        }
    }
}
