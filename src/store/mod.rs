//! The store: the only place with SQL. Knows nothing of HTTP.
//!
//! Each worker that reads has a [`Reader`], which cannot write; the worker that writes has the only [`Writer`]. Both
//! are a [`Database`], which is what can be read.
//!
//! - The statements: `pets.rs`, `keys.rs`, `project/` and `transfer.rs`. `steps/` has the steps that make the schema.
//! - `sqlite/` is the engine: the file, its connections, snapshots and batches.
//! - `error.rs` says why the store failed.

mod error;
mod keys;
mod pets;
mod project;
mod sqlite;
mod transfer;

pub use error::{Cause, StoreError};
pub use project::{FileInfo, ProjectChange, ProjectReads};
#[cfg(test)]
pub(crate) use sqlite::tests;
pub use sqlite::*;
