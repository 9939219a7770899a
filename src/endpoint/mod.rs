//! How endpoints are written: the row in a table of operations, the router, the parameters and the request that
//! a handler reads, and its failure. Each address has its own table and its own type of handler.
//!
//! Knows no resource, no SQL and no sockets.

mod call;
mod failure;
mod operation;
pub mod parameter;
mod router;

pub use call::Call;
pub use failure::Failure;
pub use operation::{Deprecation, Handler, HeaderField, Operation, Success, Tag};
pub use router::{Route, Router};

#[cfg(test)]
pub use router::tests::flaw;
