//! Responses that are held back on purpose, so that clients can test how they wait. They hold up no worker.

use std::cmp::Reverse;

use crate::gate::Gate;
use crate::gate::lanes::ClientId;

impl Gate {
    /// Holds back a response that has just come, if it has a delay.
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
}
