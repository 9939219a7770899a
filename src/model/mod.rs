//! The things that the service is about: pets and the project. Knows JSON, and nothing of HTTP or SQL.

mod pet;
mod project;

pub use pet::{NewPet, Pet, PetStatus, components};
pub use project::{
    Deploy, Domain, DomainEvent, DomainState, Plan, REDIRECT_STATUSES, Reason, Redirect, SiteFile,
};
