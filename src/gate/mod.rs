//! gate
mod body;
mod client;
mod head;
mod reader;
mod reply;
mod request_id;
mod target;
