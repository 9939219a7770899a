//! The domains that the published site is served at, and the rules of the project around them.
//!
//! `project.rs` has the rules and `refusal.rs` the words for what breaks them; `name.rs` reads names, `record.rs`
//! says which DNS record a name needs, `verify.rs` whether it is there, and `caa.rs` whether a certificate
//! authority may issue for it; `look.rs` puts these together, and `checks.rs` does it beside a running service.
//! Knows no sockets and no SQL.

mod caa;
mod checks;
mod folder;
mod look;
mod name;
mod overview;
mod project;
mod record;
mod refusal;
mod verify;

#[cfg(test)]
mod verify_tests;

pub use crate::model::{Deploy, DomainState, Plan, Redirect};
pub(crate) use checks::{Checks, DomainCare};
pub use look::Look;
pub use overview::{DeployView, DomainView, Overview};
pub use project::{Deployed, Project};
pub use record::Record;
pub use refusal::{Refusal, RefusalCode};
