//! The end of the service: requests that have begun are finished, or fail with a response that gives the reason.

use std::time::{Duration, Instant};

use crate::client::ClientState;
use crate::gate::Gate;
use crate::socket_file::BACKLOG;
use petstore_base::error::Error;

/// How long clients have to take their last responses when the service fails.
pub const LAST_WORDS: Duration = Duration::from_secs(1);

/// The most clients to accept at the end: the backlog, and as many again that come in the meantime.
const MAX_LAST_ACCEPTS: usize = 2 * BACKLOG;

impl Gate {
    /// Begins the end of the service when it is due. Returns the outcome once the service has ended.
    pub(super) fn end(&mut self) -> Option<Result<(), Error>> {
        if self.stopper.is_failing() {
            let is_unanswered =
                |state| matches!(state, ClientState::Waiting | ClientState::Inside(_));
            self.connections
                .expire(|client| is_unanswered(client.state()), &mut self.shared);
            self.advance();
            let by = Instant::now() + LAST_WORDS;
            self.end_by = Some(self.end_by.map_or(by, |end| end.min(by)));
        }
        if self.stopper.is_stopping() && !self.shared.draining {
            if let Some(reason) = self.stopper.reason() {
                log::error!("ending: {reason}");
            }
            self.end_by
                .get_or_insert(Instant::now() + self.shared.deadlines.drain);
            self.begin_drain();
        }
        let by = self.end_by?;
        if !self.connections.open.is_empty() && self.shared.now < by {
            return None;
        }
        self.note_cut_off();
        Some(self.stopper.reason().map_or(Ok(()), Err))
    }

    /// Reports the number of unfinished requests.
    pub(super) fn note_cut_off(&self) {
        let begun = self
            .connections
            .open
            .iter()
            .filter(|(_, c)| c.client.has_request());
        self.stopper.note_cut_off(begun.count());
    }

    /// Accepts the backlog and then no more clients, and shortens the deadline of idle ones.
    pub(super) fn begin_drain(&mut self) {
        self.shared.now = Instant::now();
        // The next service accepts the clients that wait at a supervisor's socket.
        if self
            .listening
            .as_ref()
            .is_some_and(|listening| listening.is_passed)
        {
            self.listening = None;
        }
        self.note_newcomers();
        self.accept(MAX_LAST_ACCEPTS);
        self.listening = None;
        self.shared.draining = true;
        self.connections.read_all();
        self.advance();
        for (_, connection) in &mut self.connections.open {
            if connection.client.state() == ClientState::Idle {
                // Its deadline is shorter now.
                connection.client.enter(ClientState::Idle, &self.shared);
            }
        }
    }
}
