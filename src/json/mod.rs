//! Strict JSON: objects whose members are read by name, each at most once, and whose wrong types are
//! named; and the schemas of values, which read them and say what is expected.
//! Knows nothing of pets or HTTP.

mod number;
mod object;
mod schema;

pub use object::{Invalid, Object, Optional, Required, Value, describe};
pub use schema::{Enumeration, Integer, Schema, Text, Word, reference};
