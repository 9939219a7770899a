//! The store: an SQLite database in one file, and its SQL. Knows nothing of HTTP.
//!
//! Each worker that reads has a [`Reader`], which cannot write; the worker that writes has the only [`Writer`], which
//! can also read. They are connections of SQLite: `sqlite/` has their files, locks and transactions.
//!
//! - The statements: `pets.rs`, `changes.rs`, `keys.rs`, `staging.rs` and `transfer.rs` are methods of these two, and `hosting.rs` is how
//!   hosting uses them. `statements.rs` has those that name every column of a pet, and `idempotency.rs` those on idempotency
//!   keys, and the outcome of a create. `rows.rs` reads columns.
//! - `counts.rs` has the number of pets with each status.
//! - `batch_writer.rs` is what a handler may do with the writer, and `transact.rs` work that is one transaction.
//! - `open.rs` opens a database for a service, and `error.rs` has why the store failed.

mod batch_writer;
mod changes;
pub mod cluster;
mod counts;
mod error;
#[cfg(test)]
mod full_disk_tests;
mod hosting;
pub(crate) mod idempotency;
pub(crate) mod keys;
mod open;
mod pets;
mod rows;
mod sqlite;
mod staging;
pub(crate) mod statements;
mod transact;
mod transfer;

pub use batch_writer::{BatchWriter, Transaction};
pub use counts::{Counted, Counts};
#[cfg(feature = "cluster")]
pub use error::names_what_is_missing;
pub use error::{Cause, Damage, StoreError};
pub use idempotency::Outcome;
pub use open::{
    OpenStore, WriteAccess, exists, open_ephemeral, open_for_service, open_only_to_read,
};
pub use sqlite::{
    BUSY_TIMEOUT, Checked, Claim, FileId, OldDatabase, Reader, RestoredKeys, SCHEMA_VERSION,
    Snapshot, Writer, carry_over, journal_of, kind_of, lacks_log, left_of, lock_old, log_of,
    renew_changes, reset_ephemeral,
};
#[cfg(feature = "cluster")]
pub(crate) use sqlite::{migrations, schema};
pub use staging::Staging;
pub use transfer::ImportNote;

#[cfg(test)]
pub(crate) mod tests;
