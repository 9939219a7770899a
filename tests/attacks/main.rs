//! The service under attack: what strangers and holders of read-only keys cannot take from others.
//!
//! Each attack has its own server, with innocent clients alongside. [`trial`] asserts what holds for all of
//! them; `cargo test --test attacks -- --nocapture` prints the figures.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test fails by panicking"
)]

mod attacker;
mod cgroup;
mod crowd;
mod innocents;
mod plan;
mod replies;
mod requests;
mod source_address;
mod trial;

mod floods;
mod many_connections;
mod requests_held;
mod responses_held;
