//! The domains that the project site is served at. Knows no sockets.
//!
//! `record.rs` says which DNS record a domain needs, `verify.rs` whether it is there, and `caa.rs` whether a
//! certificate authority may issue for it.

mod caa;
mod record;
mod verify;

#[cfg(test)]
mod verify_tests;

pub(crate) use caa::{Blocked, DEFAULT_AUTHORITIES, blocking};
pub(crate) use record::{Record, is_apex};
pub(crate) use verify::{Problem, ProblemCode, Verdict, verify};
