//! Decodes bytes into requests and encodes responses into bytes, without a socket.

pub mod body;
pub mod cors;
pub mod head;
pub mod reader;
pub mod request_id;
pub mod request_line;
pub mod response_head;

#[cfg(test)]
mod framing_tests;
