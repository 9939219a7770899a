//! One check of a domain's DNS: what it means for the domain, and why.

use super::caa::check_caa;
use super::finding::Finding;
use super::verify::verify;
use crate::config::Hosting;
use crate::dns::Dns;

/// Checks the record that points a domain to the platform and, if it is right, the CAA records that may forbid the
/// certificate. Takes at most 20 s.
pub fn check_dns(name: &str, platform: &str, hosting: &Hosting) -> Finding {
    let dns = Dns::new(hosting.resolver);
    match verify(name, platform, &dns) {
        Finding::RIGHT => check_caa(name, &hosting.certificate_authorities, &dns),
        found => found,
    }
}
