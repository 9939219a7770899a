//! The protocol between the gate and the workers: what each end writes stands beside what the other end reads.
//!
//! A lane is one connection to a tiny_http server. It knows nothing of routes, pets or SQL.

mod response;
mod ticket;

pub use response::{Answer, LaneResponse, Malformed, print};
pub use ticket::{TICKET, id, write_number};

/// Which lane a request takes: all that the gate knows of meaning. A response may send it on from a lane
/// for reading to the lane for writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneKind {
    /// GET, HEAD and OPTIONS.
    Read,
    /// Every other method.
    Write,
}
