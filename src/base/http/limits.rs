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
/// The size in bytes at which a page of a list ends early, because names may be long. The `Link` header leads to the
/// rest.
pub const FULL_PAGE_BYTES: usize = 1024 * 1024;

/// Every bound on the size of a request, for people: the bounded part, its maximum, the unit of that, and the status if it
/// is exceeded.
pub const LIMITS: [(&str, usize, &str, u16); 5] = [
    ("request target", MAX_TARGET_BYTES, "bytes", 414),
    ("request head", MAX_HEAD_BYTES, "bytes", 431),
    ("header fields", MAX_HEADER_FIELDS, "fields", 431),
    (
        "chunk extensions and trailers",
        MAX_DROPPED_BYTES,
        "bytes",
        431,
    ),
    ("request body", MAX_BODY_BYTES, "bytes", 413),
];
