//! Bytes: the gate that holds all clients, the lanes that it sends requests down, and the workers at their ends. Knows
//! no keys, no routes, no pets and no SQL.

pub mod deadlines;
pub mod gate;
pub mod lane;
pub mod listen;
pub mod network;
pub mod refusal;

pub use deadlines::Deadlines;
pub use listen::{Address, Listen};
pub use network::{Network, loopback};
pub mod worker;
