//! One check of a domain's DNS: what it means for the domain, and why.

use super::caa::check_caa;
use super::verify::verify;
use crate::config::Hosting;
use crate::dns::Dns;
use crate::model::{DomainEvent, Reason};

/// The code of a reason if DNS could not be asked.
pub const DNS_UNAVAILABLE: &str = "dns_unavailable";

/// What a check of a domain's DNS covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnsCheck {
    /// The record that points to the platform.
    Record,
    /// The record, and the CAA records that may forbid the certificate.
    RecordAndCaa,
}

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

/// Checks the DNS of a domain, which takes at most 20 s.
pub fn check_dns(name: &str, platform: &str, hosting: &Hosting, check: DnsCheck) -> Finding {
    let dns = Dns::new(hosting.resolver);
    let found = verify(name, platform, &dns);
    if check == DnsCheck::RecordAndCaa && found == Finding::RIGHT {
        return check_caa(name, &hosting.certificate_authorities, &dns);
    }
    found
}
