//! One check of a domain's DNS: what it found, and how it is said.

use super::caa::check_caa;
use super::verify::verify;
use crate::base::config::Hosting;
use crate::model::{DomainEvent, Reason};
use crate::site::dns::Dns;

/// The code of a remark if DNS did not tell the CAA records of a domain whose own record is right.
pub const CAA_UNKNOWN: &str = "caa_unknown";

/// The most records that a message names.
const MAX_NAMED: usize = 4;

/// The result of a check.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub event: DomainEvent,
    pub reason: Option<Reason>,
}

impl Finding {
    /// Nothing is wrong.
    pub const RIGHT: Self = Self { event: DomainEvent::Right, reason: None };

    /// Creates a finding with a reason.
    pub fn new(event: DomainEvent, code: &str, message: String) -> Self {
        Self { event, reason: Some(Reason { code: code.to_owned(), message }) }
    }
}

/// Checks the record that points a domain to the platform and, if it is right, the CAA records that may forbid the
/// certificate. Takes at most 20 s.
pub fn check_dns(name: &str, hosting: &Hosting) -> Finding {
    let platform = hosting.platform_host.as_deref().unwrap_or_default();
    let dns = Dns::new(hosting.resolver);
    match verify(name, platform, &dns) {
        Finding::RIGHT => check_caa(name, &hosting.certificate_authorities, &dns),
        found => found,
    }
}

/// The first few items, for a sentence. Their owner may have made them long.
pub(super) fn list(items: impl IntoIterator<Item: ToString>) -> String {
    const MOST: usize = 100;
    let shortened = |shown: String| shown.chars().take(MOST).collect();
    let items: Vec<String> = items.into_iter().map(|item| shortened(item.to_string())).collect();
    let first = items[..items.len().min(MAX_NAMED)].join(", ");
    match items.len().saturating_sub(MAX_NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
