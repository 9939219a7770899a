//! The service as its users see it: the real executable on a free port, over sockets.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod messages;

mod access_log;
mod admin;
mod authentication;
mod backup;
mod backup_rotation;
mod busy_timeout;
mod change_pet;
mod changes;
mod check;
mod cluster;
#[cfg(feature = "site")]
mod code_samples;
mod cors;
mod create_pet;
mod damage;
mod database_file;
mod deadlines;
#[cfg(feature = "site")]
mod domain_checks;
#[cfg(feature = "site")]
mod domains;
mod durability;
mod embedding;
mod environment;
mod ephemeral;
mod error_kinds;
mod experimental;
mod find_pets;
mod foreign_journal;
mod foreign_schema;
mod foreign_wal;
mod framing;
mod full_disk;
mod get_pet;
mod healthcheck;
mod idempotency;
mod inventory;
mod keys;
mod list_pets;
mod listen;
mod litestream;
mod lost_responses;
mod openapi;
mod other_programs;
mod overload;
mod pet_command;
mod read_only_commands;
mod read_only_service;
mod restore;
mod revalidation;
mod round_trip;
mod routing;
mod shutdown;
#[cfg(feature = "site")]
mod site;
mod spreadsheets;
mod startup;
mod stdio;
mod store_inventory;
mod supervisor;
mod tidy;
mod transfer;
mod unusable_names;
mod well_known;

/// A configuration of the library for the database in this folder and a free port.
fn config(folder: &support::harness::Folder) -> petstore::Config {
    let mut config = petstore::Config::default();
    config.listen = ([127, 0, 0, 1], 0).into();
    config.database = folder.database();
    config
}
