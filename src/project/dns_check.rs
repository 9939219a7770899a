//! One check of a domain's DNS: what it means for the domain, and why.

use std::net::IpAddr;

use super::caa::check_caa;
use super::finding::Finding;
use super::verify::{addresses, verify};
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

/// Looks up the addresses of the platform host, which takes at most 4 s; none if DNS does not tell them.
pub fn platform_addresses(platform: &str, hosting: &Hosting) -> Vec<IpAddr> {
    let dns = Dns::new(hosting.resolver);
    addresses(platform, &mut dns.begin_short().resolvers()).map(Vec::from_iter).unwrap_or_default()
}
