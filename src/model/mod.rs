//! The domain: pets, and API keys. Knows JSON, and nothing of HTTP or SQL.

mod change;
mod idempotency;
mod key;
mod page;
mod pet;
mod sample;
mod search;

pub use change::{ChangeKind, ChangeQuery, ChangesKept, PetChange};
pub use idempotency::{Caller, IdempotencyKey};
pub use key::{ApiKey, Digest, KeyScope};
pub use page::{FULL_PAGE_BYTES, Order, Page};
pub use pet::{
    BROUGHT_ID, FILTERS, ID, MAX_BROUGHT_ID, MEMBERS, MemberValue, NewPet, Pet, PetCounts,
    PetPatch, PetQuery, PetStatus, any_id, column, pet_schemas,
};
pub use sample::sample_pets;
pub use search::{NamePart, PetSearch};
