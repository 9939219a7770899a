//! What the inventory is about. Knows JSON, and nothing of HTTP or SQL.

mod pet;

pub use pet::{NewPet, Pet, PetStatus, components};
