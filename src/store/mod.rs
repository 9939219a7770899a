//! The store: the only place with SQL. Knows nothing of HTTP.
//!
//! Each worker that reads has a [`Reader`], which cannot write; the worker that writes has the only [`Writer`]. With
//! both, one reads a [`Database`].
//!
//! - The statements: `pets.rs`, `retries.rs`, `keys.rs`, `project/` and `transfer.rs`.
//! - `traits.rs` says what an engine does, and what an open database is. `sqlite/` is the engine in one file, and `rqlite/` the one of several
//!   machines, with the feature `cluster`.
//! - `location.rs` says whether a database is a file or a cluster, and `open.rs` opens it with its engine. `error.rs` says why the store failed.

mod error;
mod keys;
mod location;
mod open;
mod pets;
mod project;
mod retries;
#[cfg_attr(not(feature = "cluster"), path = "no_rqlite.rs")]
mod rqlite;
mod sqlite;
#[cfg_attr(not(feature = "cluster"), expect(dead_code, reason = "a cluster has other rows and outcomes"))]
mod traits;
mod transfer;

pub use error::{Cause, Damage, StoreError};
pub use location::{absolute, check_supported, is_cluster};
pub use open::{compare_nodes, exists, meters, open_for_service, open_only_to_read};
pub use project::FileInfo;
pub use rqlite::{IS_SHARED, close};
pub use sqlite::{
    BUSY_TIMEOUT, Checked, Claim, SCHEMA_VERSION, Snapshot, carry_over, kind_of, lacks_log, lock_old, log_of,
    open_ephemeral, reset_ephemeral,
};
use traits::Row;
pub use traits::{
    Committed, Database, Inserted, MOST_PUT_OFF, OpenStore, Outcome, Reader, Whole, WriteAccess, Writer,
};
pub use transfer::{BatchIds, Progress};

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    pub use crate::testing::Folder;
    #[cfg(feature = "cluster")]
    pub use support::rqlite_nodes::Nodes;

    /// Has SQLite refuse every write, as a file does that may only be read.
    pub fn refuse_writes(writer: &Writer, refuse: bool) {
        run(writer, &format!("PRAGMA query_only = {refuse}"));
    }

    /// A writer whose log cannot be moved into the file, as on a disk that fails.
    pub fn writer_that_keeps_its_log(path: &std::path::Path) -> Box<Writer> {
        let mut writer = sqlite::FileWriter::open(path).unwrap();
        sqlite::tests::refuse_checkpoints(&mut writer);
        Box::new(writer)
    }

    /// Takes the pets away, so that nobody can read them.
    pub fn lose_pets(writer: &Writer) {
        run(writer, "DROP TABLE pets");
    }

    /// Runs a statement as another program would.
    pub fn run(writer: &Writer, sql: &str) {
        writer.rows(sql, &[], &mut |_| Ok(std::ops::ControlFlow::Continue(()))).unwrap();
    }

    /// The writer of a new database, and a reader.
    pub fn pair() -> (Folder, Box<Writer>, Box<Reader>) {
        let folder = Folder::new();
        let writer = Writer::open(&folder.database()).unwrap();
        let reader = Reader::open(&folder.database()).unwrap();
        (folder, writer, reader)
    }
}
