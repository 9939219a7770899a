//! One look at the DNS of a domain: what it means for the domain, and why.

use super::caa::{DEFAULT_AUTHORITIES, blocking};
use super::verify::{Verdict, verify};
use crate::config::Hosting;
use crate::dns::Dns;
use crate::model::{DomainEvent, Reason};

/// The code where DNS could not be asked.
pub const DNS_UNAVAILABLE: &str = "dns_unavailable";

/// What is looked at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// The record that leads to the platform.
    Record,
    /// The same, and the CAA records that may forbid the certificate.
    RecordAndCaa,
}

/// What was seen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Seen {
    pub event: DomainEvent,
    pub reason: Option<Reason>,
}

/// Looks at the DNS of domains.
#[derive(Clone, Debug)]
pub struct Looker {
    resolver: Option<std::net::SocketAddr>,
    authorities: Vec<String>,
}

impl Looker {
    /// With the resolver and the certificate authorities that are set.
    pub fn new(hosting: &Hosting) -> Self {
        let given = hosting.certificate_authorities.clone();
        let usual = || DEFAULT_AUTHORITIES.iter().map(|name| (*name).to_owned()).collect();
        Self { resolver: hosting.resolver, authorities: if given.is_empty() { usual() } else { given } }
    }

    /// Looks at a domain, which takes up to 20 s. Changes nothing.
    pub fn look(&self, name: &str, platform: &str, look: Look) -> Seen {
        let dns = Dns::new(self.resolver);
        match verify(name, platform, &dns) {
            Verdict::Right if look == Look::RecordAndCaa => self.look_at_caa(name, &dns),
            Verdict::Right => Seen { event: DomainEvent::Right, reason: None },
            Verdict::Wrong(problem) => Seen {
                event: DomainEvent::Wrong,
                reason: Some(reason(problem.code.as_str(), problem.message)),
            },
            Verdict::Unknown(why) => {
                Seen { event: DomainEvent::Unknown, reason: Some(reason(DNS_UNAVAILABLE, why)) }
            }
        }
    }

    fn look_at_caa(&self, name: &str, dns: &Dns) -> Seen {
        match blocking(name, &self.authorities, dns) {
            Ok(None) => Seen { event: DomainEvent::Right, reason: None },
            Ok(Some(blocked)) => {
                let reason = reason("caa_blocks", blocked.to_string());
                Seen { event: DomainEvent::Blocked, reason: Some(reason) }
            }
            // The record itself was seen right.
            Err(why) => {
                let why = format!(
                    "The record is right. Whether CAA records forbid the certificate is not known: {why}"
                );
                Seen { event: DomainEvent::Right, reason: Some(reason(DNS_UNAVAILABLE, why)) }
            }
        }
    }
}

fn reason(code: &str, message: String) -> Reason {
    Reason { code: code.to_owned(), message }
}
