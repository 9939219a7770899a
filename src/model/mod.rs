//! What the inventory is about.

pub mod pet;
