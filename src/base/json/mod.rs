//! Strict JSON. An object's members are read by name, and each may appear only once. A schema reads a value,
//! words what is expected of it, and describes it. Knows nothing of pets or HTTP.

mod object;
mod schema;

pub use object::{Invalid, JsonObject, JsonValue, Member, Optional, Required, describe, shown};
pub use schema::{AnyString, Enumeration, Integer, Schema, reference};
