//! How an endpoint is written: its row in a table of operations, how a request finds it, what its handler reads
//! the request by, and why it may fail. Each address has a table of its own, and a kind of handler of its own.
//!
//! Knows no resource, no SQL and no sockets.

mod call;
mod failure;
mod operation;
pub mod parameter;
mod router;

pub use call::Call;
pub use failure::Failure;
pub use operation::{Deprecation, Handler, HeaderField, Operation, Stability, Success, Tag};
pub use router::{Route, Router};

#[cfg(test)]
pub use router::tests::flaw;
