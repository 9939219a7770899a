//! The service as its users see it: the real executable on a free port, over sockets.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

mod client;
mod described;
#[cfg(feature = "site")]
mod dns_server;
mod harness;
mod pool;
mod wait;

mod admin;
mod authentication;
mod backup;
mod check;
mod cluster;
mod damage;
mod deadlines;
mod description;
#[cfg(feature = "site")]
mod domains;
mod durability;
mod embedding;
mod environment;
mod ephemeral;
mod error_kinds;
mod file;
mod framing;
mod get_pet;
mod healthcheck;
mod keys;
mod list_pets;
mod listen;
mod litestream;
mod locked;
mod log;
mod log_beside;
mod lost_responses;
mod members;
mod methods;
mod neighbours;
mod new_pet;
mod nightly;
mod origins;
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
mod streams;
mod supervisor;
mod tidy;
mod transfer;
mod unusable_names;
#[cfg(feature = "site")]
mod upkeep;
mod well_known;
mod wording;
