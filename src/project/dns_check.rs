//! One check of a domain's DNS: what it means for the domain, and why.

use std::net::SocketAddr;

use super::caa::{CaaStatus, DEFAULT_AUTHORITIES, check_caa};
use super::verify::{RecordStatus, verify};
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

/// Checks the DNS of domains.
#[derive(Clone, Debug)]
pub struct DnsChecker {
    resolver: Option<SocketAddr>,
    authorities: Vec<String>,
}

impl DnsChecker {
    /// Uses the configured resolver and certificate authorities.
    pub fn new(hosting: &Hosting) -> Self {
        let given = hosting.certificate_authorities.clone();
        let default = || DEFAULT_AUTHORITIES.iter().map(|name| (*name).to_owned()).collect();
        Self { resolver: hosting.resolver, authorities: if given.is_empty() { default() } else { given } }
    }

    /// Checks a domain, which takes at most 20 s. Changes nothing.
    pub fn check(&self, name: &str, platform: &str, check: DnsCheck) -> Finding {
        let dns = Dns::new(self.resolver);
        let (event, reason) = match verify(name, platform, &dns) {
            RecordStatus::Right if check == DnsCheck::RecordAndCaa => return self.check_caa(name, &dns),
            RecordStatus::Right => (DomainEvent::Right, None),
            RecordStatus::Wrong(problem) => {
                (DomainEvent::Wrong, Some(reason(problem.code.as_str(), problem.message)))
            }
            RecordStatus::Unknown(why) => (DomainEvent::Unknown, Some(reason(DNS_UNAVAILABLE, why))),
        };
        Finding { event, reason }
    }

    fn check_caa(&self, name: &str, dns: &Dns) -> Finding {
        let (event, reason) = match check_caa(name, &self.authorities, dns) {
            CaaStatus::Allowed => (DomainEvent::Right, None),
            CaaStatus::Blocked(blocked) => {
                (DomainEvent::Blocked, Some(reason("caa_blocks", blocked.to_string())))
            }
            // The record itself is right.
            CaaStatus::Unknown(why) => {
                let why = format!(
                    "The record is right. It is not known whether CAA records forbid the certificate: {why}"
                );
                (DomainEvent::Right, Some(reason(DNS_UNAVAILABLE, why)))
            }
        };
        Finding { event, reason }
    }
}

fn reason(code: &str, message: String) -> Reason {
    Reason { code: code.to_owned(), message }
}
