//! Requests down the lanes in a fair order, and responses up.

use std::io;

use mio::Registry;

use crate::client::{ClientState, Shared};
use crate::connections::Connections;
use crate::fair_queue::{FairQueue, Turns};
use crate::lane::LaneKind;
use crate::lanes::{ClientId, Lane};
use petstore_base::http::Size;

/// All lanes, and the requests that wait for them.
pub struct Dispatcher {
    pub lanes: Vec<Lane>,
    /// By [`LaneKind`].
    pub waiting: [FairQueue; 2],
    size: fn(&[u8]) -> Size,
}

impl Dispatcher {
    /// `size`: that of the response to a read, by its method and target with a space between.
    pub fn new(lanes: Vec<Lane>, size: fn(&[u8]) -> Size) -> Self {
        Self {
            lanes,
            waiting: Default::default(),
            size,
        }
    }

    /// Queues a client's request.
    pub fn queue(
        &mut self,
        slot: usize,
        kind: LaneKind,
        connections: &mut Connections,
        shared: &Shared,
    ) {
        let waiting = &mut self.waiting[kind as usize];
        // Each connection has at most one request waiting, so at least half belong to closed connections.
        if waiting.len() >= 2 * connections.max {
            waiting.retain(|id| connections.get_mut(id).is_some());
        }
        let Some(connection) = connections.open.get_mut(slot) else {
            return;
        };
        connection.client.enter(ClientState::Waiting, shared);
        let size = match kind {
            LaneKind::Read => (self.size)(connection.client.request.line()),
            LaneKind::Write => Size::Small,
        };
        // Each connection of an exempt address has turns of its own.
        let mut of_connection = Turns::default();
        let turns = if connection.is_exempt {
            &mut of_connection
        } else {
            &mut connections.addresses.known[connection.address_index].turns[kind as usize]
        };
        waiting.push(
            turns,
            size,
            ClientId {
                slot,
                serial: connection.serial,
            },
        );
    }

    /// Moves queued requests to the lanes, as long as these accept more.
    pub fn dispatch(&mut self, connections: &mut Connections, shared: &Shared) {
        for kind in [LaneKind::Read, LaneKind::Write] {
            let waiting = &mut self.waiting[kind as usize];
            while let Some(id) = waiting.peek() {
                let connection = connections
                    .open
                    .get_mut(id.slot)
                    .filter(|c| c.serial == id.serial);
                let Some(connection) =
                    connection.filter(|c| c.client.state() == ClientState::Waiting)
                else {
                    // By now the connection is closed, or has its response.
                    waiting.pop();
                    continue;
                };
                let client = &mut connection.client;
                let bytes = client.request.len();
                let free = self
                    .lanes
                    .iter_mut()
                    .filter(|lane| lane.kind == kind && lane.has_capacity(bytes));
                let Some(lane) = free.min_by_key(|lane| lane.load()) else {
                    break;
                };
                waiting.pop();
                lane.push(id, client.id(), &client.request);
                client.go_inside(kind, shared);
                connection.count_held(&mut connections.held);
            }
        }
    }

    /// Sends the requests of this round, with one write per lane.
    ///
    /// # Errors
    /// If a lane has broken off.
    pub fn flush(&mut self, registry: &Registry) -> io::Result<()> {
        self.lanes
            .iter_mut()
            .try_for_each(|lane| lane.flush(registry))
    }
}
