//! A pet store inventory service over HTTP, on an embedded SQLite database.
#![allow(dead_code, reason = "the rooms that use these follow")]

mod error;
mod message;
mod model;
mod store;
mod workers;
