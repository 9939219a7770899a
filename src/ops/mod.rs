//! Operators' tasks: API keys, import and export, backup, check and restore; and the pets for embedding programs. Knows no
//! HTTP.

pub mod changes;
pub mod inventory;
pub mod keys;
pub mod maintenance;
pub mod pet_store;
pub mod transfer;
