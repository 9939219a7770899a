//! The messages that several tests expect, each once.

pub const ANOTHER_APPLICATION: &str = "another application";
pub const DATABASE_FOREIGN: &str = "is not an SQLite database";
pub const DATABASE_MISSING: &str = "there is no database ";
pub const ENDED_BY_SIGTERM: &str = " s: SIGTERM; unfinished requests: 0";
pub const FILE_EXISTS: &str = "already exists and is not overwritten; choose another name";
pub const FILE_MISSING: &str = ": No such file or directory";
pub const FIRST_KEY_WRITTEN: &str = "the first API key was written to ";
pub const INDEX_MISSING: &str = "the index pets_by_status is missing";
pub const KEY_UNKNOWN: &str = "there is no key named ";
pub const LOCKED: &str = "is locked by another process";
pub const LOG_FOREIGN: &str = "is not the log of";
pub const MOVED: &str = "moved, deleted or overwritten";
pub const NOT_NEW: &str =
    "already has or had pets; import without --keep-ids, or choose a new database with --database";
pub const PAGE_MISSING: &str = "is not sound: a page is missing";
pub const PET_UNKNOWN: &str = "there is no pet with the id 1";
pub const REFUSED_ROWS: &str = "refused, so nothing was imported; correct the input or --format, or leave these lines out with --skip-invalid";
pub const TABLE_MISSING: &str = "the table api_keys is missing";
pub const TOO_LARGE: &str = "may not grow further";
