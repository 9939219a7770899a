//! What the readers of all clients share.

use crate::gate::trusted_proxies::TrustedProxies;
use crate::gate::wire::origins::Origins;
use crate::gate::wire::request_id::RequestIds;

/// What every request is read by.
#[derive(Default)]
pub struct Intake {
    /// Identifiers for the requests that bring none.
    pub ids: RequestIds,
    /// The header fields that the service behind the lanes reads.
    pub passed_on: Vec<&'static str>,
    /// Whose word on the client's address counts.
    pub trusted: TrustedProxies,
    /// Whose scripts may read responses.
    pub origins: Origins,
}
