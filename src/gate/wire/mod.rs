//! Decodes bytes into requests and encodes responses into bytes, without a socket.

pub mod access_log;
pub mod body;
pub mod cors;
pub mod head;
pub mod request_id;
pub mod request_line;
pub mod request_reader;
pub mod response_head;

#[cfg(test)]
mod framing_tests;
