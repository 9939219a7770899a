//! What the inventory is about. Knows JSON, and nothing of HTTP or SQL.

mod pet;
#[cfg(feature = "site")]
mod project;

pub use pet::{NewPet, Pet, PetStatus, components};
#[cfg(feature = "site")]
pub use project::{
    Deploy, Domain, DomainEvent, DomainState, Plan, REDIRECT_STATUSES, Reason, Redirect, SiteFile,
};
