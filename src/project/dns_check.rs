//! One check of a domain's DNS: what it means for the domain, and why.

use super::caa::check_caa;
use super::finding::Finding;
use super::verify::verify;
use crate::config::Hosting;
use crate::dns::Dns;

/// What a check of a domain's DNS covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DnsCheck {
    /// The record that points to the platform.
    Record,
    /// The record, and the CAA records that may forbid the certificate.
    RecordAndCaa,
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
