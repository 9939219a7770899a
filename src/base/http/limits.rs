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

/// A bound on a part of a request, described for people.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Limit {
    /// The part of a request that is bounded, such as "request body".
    pub what: &'static str,
    /// The maximum.
    pub most: usize,
    /// The unit of the maximum.
    pub unit: &'static str,
    /// The status if it is exceeded.
    pub status: u16,
}

/// Every bound on the size of a request.
pub const LIMITS: &[Limit] = &[
    Limit {
        what: "request target",
        most: MAX_TARGET_BYTES,
        unit: "bytes",
        status: 414,
    },
    Limit {
        what: "request head",
        most: MAX_HEAD_BYTES,
        unit: "bytes",
        status: 431,
    },
    Limit {
        what: "header fields",
        most: MAX_HEADER_FIELDS,
        unit: "fields",
        status: 431,
    },
    Limit {
        what: "chunk extensions and trailers",
        most: MAX_DROPPED_BYTES,
        unit: "bytes",
        status: 431,
    },
    Limit {
        what: "request body",
        most: MAX_BODY_BYTES,
        unit: "bytes",
        status: 413,
    },
];
