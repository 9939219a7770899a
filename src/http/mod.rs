//! The vocabulary that all rooms share: requests, replies, failures and targets, as plain data.
//! Knows nothing of sockets, SQL or pets.

pub mod error;
pub mod message;
pub mod target;
