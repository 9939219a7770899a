//! Operators' tasks: API keys, import and export, backup, check and restore. Knows no HTTP.

pub mod keys;
pub mod maintenance;
pub mod transfer;
