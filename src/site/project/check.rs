//! One check of a domain's DNS: its record, then its CAA records.

use super::caa::check_caa;
use super::finding::Finding;
use super::verify::verify;
use crate::base::config::Hosting;
use crate::site::dns::Dns;

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
