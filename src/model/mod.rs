//! The domain: pets, API keys and the project. Knows JSON, and nothing of HTTP or SQL.

mod idempotency;
mod key;
mod page;
mod pet;
mod project;
mod sample;
mod string_enum;

pub use idempotency::{Caller, IdempotencyKey};
pub use key::{ApiKey, Digest, KeyScope};
pub use page::{FULL_PAGE_BYTES, Page};
pub use pet::{
    BROUGHT_ID, FILTERS, ID, MAX_BROUGHT_ID, MEMBERS, MemberValue, NewPet, Pet, PetCounts,
    PetPatch, PetQuery, PetStatus, any_id, column, pet_schemas,
};
pub use project::{
    CHECK_EVERY, Deploy, Domain, DomainEvent, DomainState, Plan, REDIRECT_STATUSES, Reason,
    Redirect, SiteFile,
};
pub use sample::sample_pets;
pub(crate) use string_enum::words;
