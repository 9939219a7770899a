//! Strict JSON. An object's members are read by name, and each may appear only once. A schema reads a value,
//! reports the expected values, and describes them. Knows nothing of pets or HTTP.

mod object;
mod ordered;
mod schema;

pub use object::{
    Declared, Invalid, JsonObject, JsonValue, Member, Optional, Required, describe, shown,
};
pub use ordered::{Json, NULL, object};
pub use schema::{AnyString, DateTime, Enumeration, Integer, Nullable, Schema, Text, reference};
