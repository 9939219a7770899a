//! The store: the only place with SQL. Knows nothing of HTTP.
//!
//! Each worker that reads has a [`Reader`], which cannot write; the worker that writes has the only [`Writer`], which
//! can also read.
//!
//! - The statements: `pets.rs`, `keys.rs`, `project/` and `transfer.rs` are methods of these two, and `statements.rs` and
//!   `retries.rs` are for both engines. `rows.rs` reads columns.
//! - `counts.rs` has the number of pets with each status.
//! - `reader.rs` and `writer.rs` list what an engine does. `sqlite/` is the engine in one file, and `rqlite/` the one of
//!   several machines, with the feature `cluster`.
//! - `location.rs` distinguishes a file from a cluster, and `open.rs` opens a database with its engine. `outcome.rs` has
//!   the outcome of a batch, `whole.rs` a whole database, and `error.rs` why the store failed.

mod batch_writer;
mod counts;
mod error;
#[cfg(test)]
mod full_disk_tests;
mod keys;
mod location;
mod open;
mod outcome;
mod pets;
mod project;
mod reader;
mod retries;
mod rows;
#[cfg_attr(not(feature = "cluster"), path = "no_rqlite.rs")]
mod rqlite;
mod sqlite;
mod staging;
mod statements;
mod transfer;
mod whole;
mod writer;

pub use batch_writer::{BatchWriter, Transaction};
pub use counts::{Counted, Counts};
pub use error::{Cause, Damage, StoreError};
pub use location::{absolute, check_supported, is_cluster, require_file};
pub use open::{
    OpenStore, WriteAccess, compare_nodes, exists, meters, open_ephemeral, open_for_service,
    open_only_to_read,
};
pub use outcome::{Changed, Committed, Inserted, Outcome};
pub use project::FileInfo;
pub use reader::Reader;
pub use rqlite::load;
#[cfg(feature = "cluster")]
pub use rqlite::set_database_password;
pub use sqlite::{
    BUSY_TIMEOUT, Checked, Claim, FileId, RestoredKeys, SCHEMA_VERSION, Snapshot, carry_over,
    journal_of, kind_of, lacks_log, left_of, lock_old, log_of, reset_ephemeral,
};
pub use staging::Staging;
pub use whole::Whole;
pub use writer::{CONTENDS_FOR, Writer};

#[cfg(test)]
pub(crate) mod tests;
