//! A pet store inventory service over HTTP, on an embedded SQLite database.
#![allow(dead_code, reason = "the rooms that use these follow")]

mod api;
mod auth;
mod config;
mod error;
mod gate;
mod message;
mod model;
mod pulse;
mod router;
mod service;
mod store;
mod target;
mod workers;
