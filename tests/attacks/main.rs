//! The service under attack: what a stranger, or who has a key that may only read, cannot take from others.
//!
//! Each attack meets a server of its own, and goes on beside innocent clients. What is asserted of all of
//! them stands in [`trial`]; the figures are printed with `cargo test --test attacks -- --nocapture`.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test fails by panicking")]

#[allow(dead_code, reason = "the tests of the interface use the rest")]
#[path = "../it/client.rs"]
mod client;
#[path = "../it/described.rs"]
mod described;
#[allow(dead_code, reason = "the tests of the interface use the rest")]
#[path = "../it/harness.rs"]
mod harness;
#[path = "../it/wait.rs"]
mod wait;

mod crowd;
mod innocents;
mod member;
mod origin;
mod plan;
mod replies;
mod requests;
mod trial;

mod door;
mod floods;
mod requests_held;
mod responses_held;
