//! What is counted of the requests to a host.

use std::time::Duration;

/// The requests to one host of a cluster.
#[derive(Clone, Debug)]
pub struct HostMeter {
    /// Such as `one:4001`.
    pub host: String,
    /// Requests to it.
    pub requests: u64,
    /// Requests that failed, rejected ones included.
    pub failures: u64,
    /// The time that all of them took.
    pub duration: Duration,
}
