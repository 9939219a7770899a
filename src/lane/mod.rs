//! The protocol between the gate and the workers: what one end writes stands beside what the other end reads.
//!
//! A lane is one connection to a tiny_http server on a private Unix socket. Whole requests go down it pipelined,
//! and whole responses come back in order. This room knows nothing of routes, pets or SQL, and no sockets.

mod request;
mod response;
mod ticket;

pub use request::{Content, LaneRequest};
pub use response::{Answer, LaneResponse, Malformed, write_response};
pub use ticket::Ticket;

/// Which lane a request takes: all that the gate knows of meaning. A response may send it on from a lane
/// for reading to the lane for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneKind {
    /// GET, HEAD and OPTIONS.
    Read,
    /// Every other method.
    Write,
}
