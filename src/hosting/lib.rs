//! The published project: its plan, its deploys, its domains and their redirects, and the checks of their DNS. A running
//! service notices every change at once, since its caches are valid for one version of the database only.
//!
//! `deploys.rs`, `domains.rs` and `redirects.rs` have the rules, and `error.rs` has a code for each violation. `name.rs`
//! parses names, `suffix.rs` has the Public Suffix List, and `record.rs` the DNS record to create for a name. `verify.rs`
//! checks a domain: it looks up its record, then `caa.rs` the CAA records, which may forbid its certificate, and `finding.rs`
//! has the result. `background.rs` has the work of a running service between requests, and `virtual_hosts.rs`
//! accepts, redirects or rejects the host of each request.
//!
//! The database is not its own: `database.rs` says what it asks of connections.

// Clippy also checks the crate without `test` and `fuzzing`, as it ships.
#![cfg_attr(
    any(test, fuzzing),
    allow(clippy::unwrap_used, reason = "a panic is how a test fails")
)]
#![allow(
    missing_debug_implementations,
    reason = "connections and threads say nothing of use"
)]

#[cfg(feature = "project")]
mod background;
#[cfg(feature = "project")]
mod caa;
mod config;
mod database;
#[cfg(feature = "project")]
mod deploys;
#[cfg(feature = "project")]
mod dns;
#[cfg(feature = "project")]
mod domains;
#[cfg(feature = "project")]
mod error;
#[cfg(feature = "project")]
mod finding;
#[cfg(feature = "project")]
mod folder;
#[doc(hidden)]
#[cfg(all(any(test, fuzzing), feature = "project"))]
pub mod fuzzing;
#[cfg(feature = "project")]
mod media_type;
mod model;
#[cfg(feature = "project")]
mod name;
#[cfg(feature = "project")]
mod overview;
#[cfg(feature = "project")]
mod project;
#[cfg(feature = "project")]
mod record;
#[cfg(feature = "project")]
mod redirects;
mod statements;
#[cfg(feature = "project")]
mod suffix;
#[cfg(feature = "project")]
#[cfg(test)]
mod testing;
#[cfg(feature = "project")]
mod verify;
#[cfg(feature = "project")]
#[cfg(test)]
mod verify_tests;
mod virtual_hosts;

#[cfg(feature = "project")]
pub use background::Upkeep;
pub use config::{Hosting, host, is_label};
pub use database::{Reads, Row, Value, Writes};
#[cfg(feature = "project")]
pub use domains::Removed;
#[cfg(feature = "project")]
pub use error::{Refusal, RefusalCode};
pub use model::{Deploy, Domain, DomainEvent, DomainState, Plan, Reason, Redirect, SiteFile};
#[cfg(feature = "project")]
pub use overview::{DomainView, Overview};
#[cfg(feature = "project")]
pub use project::Project;
#[cfg(feature = "project")]
pub use record::DnsRecord;
pub use statements::{FileInfo, ProjectReads, ProjectWrites};
pub use virtual_hosts::{Admitted, FORWARDED_PROTO, HOST, Hosts, OnServed, link_canonical};
