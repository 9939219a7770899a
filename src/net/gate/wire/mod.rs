//! Decodes bytes into requests and encodes responses into bytes, without a socket.

pub mod body;
pub mod exchange;
pub mod head;
pub mod origins;
pub mod reader;
pub mod request_id;
pub mod request_line;

#[cfg(test)]
mod framing_tests;
