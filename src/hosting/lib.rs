//! The published project: its plan, its deploys, its domains and their redirects, and the checks of their DNS. A running
//! service notices every change at once, since its caches are valid for one version of the database only.
//!
//! `virtual_hosts.rs` accepts, redirects or rejects the host of each request, and `statements/` has the SQL. `project/` has
//! the rules of all changes, and the checks of the domains; a build that only serves leaves it out.
//!
//! The database is not its own: `database.rs` says what it asks of connections.

#![allow(
    missing_debug_implementations,
    reason = "connections and threads say nothing of use"
)]

mod config;
mod database;
#[doc(hidden)]
#[cfg(all(any(test, fuzzing), feature = "project"))]
pub mod fuzzing;
mod model;
#[cfg(feature = "project")]
mod project;
mod statements;
mod virtual_hosts;

pub use config::{Hosting, host, is_label};
pub use database::{Reads, Row, Value, Writes};
pub use model::{Deploy, Domain, DomainEvent, DomainState, Plan, Reason, Redirect, SiteFile};
#[cfg(feature = "project")]
pub use project::{
    DnsRecord, DomainView, Overview, Project, Refusal, RefusalCode, Removed, Upkeep,
};
pub use statements::{FileInfo, ProjectReads, ProjectWrites};
pub use virtual_hosts::{Admitted, FORWARDED_PROTO, HOST, Hosts, OnServed, link_canonical};
