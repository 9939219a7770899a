//! Every bound on a request, in one place for messages, the pages of the site and the code that enforces it.

/// The largest head of a request, in bytes.
pub const MAX_HEAD_BYTES: usize = 16 * 1024;
/// The most header fields of a request.
pub const MAX_HEADER_FIELDS: usize = 100;
/// The longest request target, in bytes.
pub const MAX_TARGET_BYTES: usize = 8 * 1024;
/// The largest body of a request, in bytes, without any transfer coding.
pub const MAX_BODY_BYTES: usize = 64 * 1024;
/// The most bytes of one request's chunk extensions and trailer fields, which are dropped.
pub const MAX_DROPPED_BYTES: usize = 8 * 1024;
