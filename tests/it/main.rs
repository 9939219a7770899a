//! The service as its users see it: the real executable on a free port, over sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod admin;
mod authentication;
mod backup;
mod backup_rotation;
mod check;
mod cluster;
mod cors;
mod damage;
mod deadlines;
mod description;
#[cfg(feature = "site")]
mod domain_checks;
#[cfg(feature = "site")]
mod domains;
mod durability;
mod embedding;
mod environment;
mod ephemeral;
mod error_kinds;
mod file;
mod foreign_wal;
mod framing;
mod get_pet;
mod healthcheck;
mod keys;
mod list_pets;
mod listen;
mod litestream;
mod locked;
mod log;
mod lost_responses;
mod members;
mod methods;
mod new_pet;
mod other_programs;
mod overload;
mod pets;
mod read_only;
mod readers;
mod restore;
mod retries;
mod revalidation;
#[cfg(feature = "site")]
mod samples;
mod shutdown;
#[cfg(feature = "site")]
mod site;
mod small_disk;
mod startup;
mod stdio;
mod supervisor;
mod tidy;
mod transfer;
mod unusable_names;
mod well_known;
mod wording;

/// A configuration of the library for the database in this folder and a free port.
fn config(folder: &support::harness::Folder) -> petstore::Config {
    let mut config = petstore::Config::default();
    config.listen = ([127, 0, 0, 1], 0).into();
    config.database = folder.database();
    config
}
