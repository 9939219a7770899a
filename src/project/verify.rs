//! Whether the DNS record of a domain exists and is right.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::finding::{DNS_UNAVAILABLE, Finding, list};
use super::proxied::is_proxied;
use super::record::is_apex;
use crate::dns::{Answer, Dns, DnsError, Inquiry, NameServers, Record, RecordType};
use crate::model::DomainEvent;

/// The types that may not exist alongside the CNAME record of a subdomain. The first two must be known, unless the
/// CNAME record is wrong anyway. The search ends at the first type that a server does not answer.
const OTHERS: [RecordType; 8] = [
    RecordType::A,
    RecordType::AAAA,
    RecordType::MX,
    RecordType::TXT,
    RecordType::NS,
    RecordType::CAA,
    RecordType::SRV,
    RecordType::HTTPS,
];
const MUST_BE_KNOWN: usize = 2;

/// The name has other records.
const CONFLICTING_RECORD: &str = "conflicting_record";
/// The record points elsewhere.
const WRONG_TARGET: &str = "wrong_target";
/// The record is hidden by a proxy.
const PROXIED: &str = "proxied";
/// There is no record, or DNS does not show it yet.
const NOT_FOUND_YET: &str = "not_found_yet";

/// Looks up the record of a domain, which takes at most 15 seconds. The name has A-labels in lower case.
pub(super) fn verify(name: &str, platform_host: &str, dns: &Dns) -> Finding {
    let host = platform_host.trim_end_matches('.').to_ascii_lowercase();
    let inquiry = dns.begin();
    let found = inquiry.authorities(name).and_then(|mut authorities| {
        if is_apex(name) {
            apex(name, &host, &mut authorities, inquiry)
        } else {
            subdomain(name, &host, &mut authorities)
        }
    });
    found.unwrap_or_else(|error| {
        let why = unknown(name, &error);
        Finding::new(DomainEvent::Unknown, DNS_UNAVAILABLE, why)
    })
}

/// Why a record could not be looked up, and what the owner of the name can do.
fn unknown(name: &str, error: &DnsError) -> String {
    let advice = match error {
        DnsError::NoServers { name } => {
            return format!(
                "{name} has no name servers we can reach: is it registered, and are its name servers set?"
            );
        }
        DnsError::Loop { .. } => "Correct them in your DNS settings.",
        DnsError::NotRecursive { .. } | DnsError::System(_) => "Tell whoever runs this service.",
        DnsError::BadName { .. } => "Remove the domain, and add it with another name.",
        _ => "The service asks again within an hour. If that fails too, check the NS records of the domain.",
    };
    format!("The record of {name} could not be looked up: {error}. {advice}")
}

fn wrong(code: &str, message: String) -> Finding {
    Finding::new(DomainEvent::Wrong, code, message)
}

fn subdomain(name: &str, host: &str, authorities: &mut NameServers) -> Result<Finding, DnsError> {
    let targets = aliases(&authorities.ask(name, RecordType::CNAME)?);
    let points_elsewhere = targets.iter().any(|target| target != host);
    let (mut others, mut addresses) = (BTreeSet::new(), BTreeSet::new());
    for (number, kind) in OTHERS.into_iter().enumerate() {
        match authorities.ask(name, kind) {
            Ok(answer) => {
                let found = || answer.own().filter(|record| record.kind == kind);
                others.extend(found().map(|record| (number, record.to_string())));
                addresses.extend(found().filter_map(Record::address));
            }
            // A resolver that follows a wrong record often fails.
            Err(error) if number < MUST_BE_KNOWN && !points_elsewhere => return Err(error),
            Err(_) => break,
        }
    }
    Ok(if targets.is_empty() && is_proxied(&addresses) {
        proxied(name, host, addresses)
    } else if !others.is_empty() {
        let found = list(others.into_iter().map(|(_, record)| record));
        let conflict = format!(
            "{name} has other records than a CNAME record: {found}. Remove them: a name with a CNAME record cannot have others."
        );
        wrong(CONFLICTING_RECORD, conflict)
    } else if targets.is_empty() {
        let missing = format!(
            "{name} has no CNAME record yet. Create one with the value {host}; DNS may take up to 48 hours to show it."
        );
        wrong(NOT_FOUND_YET, missing)
    } else if points_elsewhere {
        let elsewhere =
            format!("The CNAME record of {name} points to {}. It must point to {host}.", list(targets));
        wrong(WRONG_TARGET, elsewhere)
    } else {
        Finding::RIGHT
    })
}

fn apex(
    name: &str,
    host: &str,
    authorities: &mut NameServers,
    inquiry: Inquiry,
) -> Result<Finding, DnsError> {
    let mut own = BTreeSet::new();
    for kind in [RecordType::A, RecordType::AAAA] {
        let answer = authorities.ask(name, kind)?;
        let targets = aliases(&answer);
        if !targets.is_empty() {
            let conflict = format!(
                "{name} has a CNAME record to {}. An apex domain cannot have one, because it has NS and SOA records. \
                 Create an ALIAS or ANAME record to {host} instead.",
                list(targets)
            );
            return Ok(wrong(CONFLICTING_RECORD, conflict));
        }
        own.extend(answer.addresses()?);
    }
    let of_host = addresses(host, &mut inquiry.resolvers());
    if own.is_empty() {
        let or_addresses = match of_host {
            Ok(addresses) if !addresses.is_empty() => {
                format!(", or A and AAAA records with its addresses {}", list(addresses))
            }
            _ => String::new(),
        };
        let missing = format!(
            "{name} has no addresses yet. Create an ALIAS or ANAME record with the value {host}{or_addresses}; DNS may \
             take up to 48 hours to show it."
        );
        return Ok(wrong(NOT_FOUND_YET, missing));
    }
    let of_host = of_host?;
    let stray: BTreeSet<IpAddr> = own.difference(&of_host).copied().collect();
    if stray.is_empty() {
        return Ok(Finding::RIGHT);
    }
    let elsewhere = if stray.len() < own.len() {
        let why = if stray.iter().all(IpAddr::is_ipv6) {
            "Remove these AAAA records, which are probably left over: clients and certificate authorities that have \
             IPv6 try them first."
        } else {
            "Remove the records with these addresses."
        };
        format!(
            "{name} leads to {host}, but also has addresses that {host} does not have: {}. {why}",
            list(stray)
        )
    } else if is_proxied(&own) {
        return Ok(proxied(name, host, own));
    } else {
        let known = if of_host.is_empty() { "none".to_owned() } else { list(of_host) };
        format!(
            "{name} has the addresses {}. It must have those of {host}, by an ALIAS, an ANAME, or A and AAAA records: \
             {known}.",
            list(own)
        )
    };
    Ok(wrong(WRONG_TARGET, elsewhere))
}

fn proxied(name: &str, host: &str, addresses: BTreeSet<IpAddr>) -> Finding {
    let message = format!(
        "{name} has addresses of Cloudflare ({}), whose proxy probably hides its record. Turn the proxy off for this \
         record ('DNS only'), and point the record to {host}.",
        list(addresses)
    );
    wrong(PROXIED, message)
}

fn aliases(answer: &Answer) -> Vec<String> {
    answer.own().filter_map(Record::alias).map(str::to_owned).collect()
}

pub(super) fn addresses(host: &str, resolvers: &mut NameServers) -> Result<BTreeSet<IpAddr>, DnsError> {
    let mut addresses = BTreeSet::new();
    for kind in [RecordType::A, RecordType::AAAA] {
        addresses.extend(resolvers.ask(host, kind)?.addresses()?);
    }
    Ok(addresses)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failed_look_says_who_can_do_something() {
        let name = || "a.test".to_owned();
        for (error, advice) in [
            (DnsError::Loop { name: name() }, "Correct them in your DNS settings."),
            (DnsError::System("has no sockets"), "Tell whoever runs this service."),
            (DnsError::BadName { name: name() }, "Remove the domain, and add it with another name."),
            (DnsError::NoServers { name: name() }, "is it registered, and are its name servers set?"),
        ] {
            let said = unknown("www.a.test", &error);
            assert!(said.ends_with(advice), "{said}");
        }
    }
}
