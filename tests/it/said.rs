//! The words of failures, each once. A test names the failure; a new wording is changed here alone.

pub const DATABASE_MISSING: &str = "there is no database ";
pub const DATABASE_FOREIGN: &str = "is not an SQLite database";
pub const FILE_EXISTS: &str = "already exists and is not overwritten; choose another name";
pub const FILE_MISSING: &str = "there is no file ";
pub const KEY_UNKNOWN: &str = "there is no key named ";
pub const NOT_NEW: &str =
    "already has or had pets; import without --keep-ids, or choose a new database with --database";
pub const REFUSED_ROWS: &str =
    "refused, so nothing was written; correct them, or leave them out with --skip-invalid";
