//! Bytes: the gate that holds all clients, the lanes that it sends requests down, and the workers at their ends. Knows
//! no keys, no routes, no pets and no SQL.

pub mod gate;
pub mod lane;
pub mod refusal;
pub mod worker;
