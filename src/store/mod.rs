//! The store: the only place with SQL. Knows nothing of HTTP.
//!
//! Each worker that reads has a [`Reader`], which cannot write; the worker that writes has the only [`Writer`], which
//! can also read.
//!
//! - The statements: `pets.rs`, `keys.rs`, `project/` and `transfer.rs` are methods of these two, and `statements.rs` and
//!   `retries.rs` are for both engines. `rows.rs` reads columns.
//! - `tally.rs` has the number of pets with each status.
//! - `reader.rs` and `writer.rs` list what an engine does. `sqlite/` is the engine in one file, and `rqlite/` the one of
//!   several machines, with the feature `cluster`.
//! - `location.rs` distinguishes a file from a cluster, and `open.rs` opens a database with its engine. `outcome.rs` has
//!   the outcome of a batch, `whole.rs` a whole database, and `error.rs` why the store failed.

mod batch_writer;
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
mod statements;
mod tally;
mod transfer;
mod whole;
mod writer;

pub use batch_writer::{BatchWriter, Transaction};
pub use error::{Cause, Damage, StoreError};
pub use location::{absolute, check_supported, is_cluster};
pub use open::{
    OpenStore, WriteAccess, compare_nodes, exists, meters, open_ephemeral, open_for_service,
    open_only_to_read,
};
pub use outcome::{Committed, Inserted, Outcome};
pub use project::FileInfo;
pub use reader::Reader;
pub use rqlite::close;
pub use sqlite::{
    BUSY_TIMEOUT, Checked, Claim, SCHEMA_VERSION, Snapshot, carry_over, kind_of, lacks_log, lock_old, log_of,
    reset_ephemeral,
};
pub use tally::Tally;
pub use transfer::{BatchIds, Progress};
pub use whole::Whole;
pub use writer::{CONTENDS_FOR, Writer};

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub use crate::testing::Folder;
    #[cfg(feature = "cluster")]
    pub use support::rqlite_nodes::Nodes;

    /// Has SQLite refuse every write, as a file does that may only be read.
    pub fn refuse_writes(reader: &Reader, refuse: bool) {
        run(reader, &format!("PRAGMA query_only = {refuse}"));
    }

    /// A writer that cannot checkpoint its log, as on a disk that fails.
    pub fn writer_that_keeps_its_log(path: &std::path::Path) -> Writer {
        let mut connection = sqlite::FileConnection::open(path).unwrap();
        sqlite::tests::refuse_checkpoints(&mut connection);
        Writer::new(reader::Engine::File(connection))
    }

    /// Drops the table of the pets, so that reading them fails.
    pub fn lose_pets(writer: &Writer) {
        run(writer, "DROP TABLE pets");
    }

    /// Runs statements as another program would, within the transaction if one is open.
    pub fn run(reader: &Reader, sql: &str) {
        match &reader.engine {
            reader::Engine::File(file) => sqlite::tests::run(file, sql),
            #[cfg(feature = "cluster")]
            reader::Engine::Cluster(_) => panic!("a cluster has no other programs"),
        }
    }

    /// The writer of a new database, and a reader.
    pub fn pair() -> (Folder, Writer, Reader) {
        let folder = Folder::new();
        let writer = Writer::open(&folder.database()).unwrap();
        let reader = Reader::open(&folder.database()).unwrap();
        (folder, writer, reader)
    }
}
