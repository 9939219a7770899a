//! The check of the DNS record of a domain, which must exist and point to the platform.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::caa::check_caa;
use super::finding::{Finding, list};
use super::suffix::{is_apex, registered};
use crate::base::config::Hosting;
use crate::model::DomainEvent;
use crate::site::dns::{AnswerRecord, Dns, DnsAnswer, DnsError, NameServers, RecordType, with_parents};

/// The common types of records that must not exist alongside the CNAME record of a subdomain.
const OTHERS: [RecordType; 4] = [RecordType::A, RecordType::AAAA, RecordType::MX, RecordType::TXT];

/// The name has other records.
pub(super) const CONFLICTING_RECORD: &str = "conflicting_record";
/// The record points elsewhere.
pub(super) const WRONG_TARGET: &str = "wrong_target";
/// There is no record, or it is not visible yet.
const NOT_FOUND_YET: &str = "not_found_yet";

const SLOW: &str = "DNS changes can take up to 48 hours.";

/// The result of a check; `Err` if the name servers gave no answer.
type Found = Result<Finding, DnsError>;

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

/// Looks up the record of a domain. The name has A-labels in lower case.
pub(super) fn verify(name: &str, platform_host: &str, dns: &Dns) -> Finding {
    let host = platform_host.trim_end_matches('.').to_ascii_lowercase();
    let found = dns.authorities(name).and_then(|mut authorities| {
        let targets = aliases(&authorities.ask(name, RecordType::CNAME)?);
        let zone = authorities.ask(name, RecordType::SOA);
        let has_soa = |zone: &DnsAnswer| zone.own().any(|record| record.kind() == RecordType::SOA);
        // A registered name without a SOA record that is an alias belongs to the zone of its parent.
        if zone.as_ref().is_ok_and(has_soa) || is_apex(name) && (targets.is_empty() || zone.is_err()) {
            apex(name, &host, &targets, &mut authorities, dns)
        } else {
            subdomain(name, &host, &targets, &mut authorities, dns)
        }
    });
    found.unwrap_or_else(|error| {
        let why = format!(
            "The record of {name} could not be looked up: {error}. The service asks again within ten minutes. If that \
             fails too, check that the domain is registered, and that its name servers and CNAME records are right."
        );
        Finding::new(DomainEvent::Unknown, "dns_unavailable", why)
    })
}

fn wrong(code: &str, message: String) -> Finding {
    Finding::new(DomainEvent::Wrong, code, message)
}

fn subdomain(name: &str, host: &str, targets: &[String], authorities: &mut NameServers, dns: &Dns) -> Found {
    if targets.iter().any(|target| target != host) {
        let (found, advice) = (list(targets), appended(name, host, targets));
        let elsewhere =
            format!("The CNAME record of {name} points to {found}. It must point to {host}.{advice}");
        return Ok(wrong(WRONG_TARGET, elsewhere));
    }
    let mut others = BTreeSet::new();
    for kind in OTHERS {
        let answer = authorities.ask(name, kind)?;
        others.extend(answer.own().filter(|record| record.kind() == kind).map(ToString::to_string));
    }
    if !others.is_empty() {
        let (what, them) = named(&others);
        let own = if targets.is_empty() { addresses(name, authorities)? } else { BTreeSet::new() };
        if !own.is_empty() && own.is_subset(&addresses(host, &mut dns.resolvers()).unwrap_or_default()) {
            let conflict = format!(
                "{name} has {what}, the addresses of {host}, but no CNAME record. If your DNS settings show one, the provider \
                 flattens it: turn flattening off for this record. Otherwise replace the addresses with a CNAME record to \
                 {host}."
            );
            return Ok(wrong(CONFLICTING_RECORD, conflict));
        }
        let (also, advice) = if targets.is_empty() { ("", hidden(host)) } else { ("also ", String::new()) };
        let conflict = format!(
            "{name} {also}has {what}. Remove {them}: a name with a CNAME cannot have other records.{advice}"
        );
        return Ok(wrong(CONFLICTING_RECORD, conflict));
    }
    if targets.is_empty() {
        let missing = format!("{name} has no CNAME record yet. Create one with the value {host}. {SLOW}");
        return Ok(wrong(NOT_FOUND_YET, missing));
    }
    Ok(Finding::RIGHT)
}

/// Advice if the provider appended the zone of the name to the value of a CNAME record.
fn appended(name: &str, host: &str, targets: &[String]) -> String {
    let mut zones = with_parents(name).filter(|zone| registered(zone).is_some());
    let zone = zones.find(|zone| targets.contains(&format!("{host}.{zone}")));
    let said = |zone| {
        format!(
            " The DNS provider appended the zone {zone} to the value: enter '{host}.', with the dot at its end."
        )
    };
    zone.map(said).unwrap_or_default()
}

/// Formats records for a sentence, and returns their pronoun too.
fn named(records: &BTreeSet<String>) -> (String, &'static str) {
    let mut all = records.iter();
    let (Some(record), None) = (all.next(), all.next()) else {
        return (format!("other records: {}", list(records)), "them");
    };
    let article = if record.starts_with("TXT") { "a" } else { "an" };
    let (kind, value) = record.split_once(' ').unwrap_or((record, ""));
    let value = if value.is_empty() { String::new() } else { format!(" ({value})") };
    (format!("{article} {kind} record{value}"), "it")
}

/// Advice if a name has addresses, but not those of the platform host.
fn hidden(host: &str) -> String {
    format!(
        " If your DNS settings already point the record to {host}, a proxy such as Cloudflare's hides it: turn the proxy \
         off for this record ('DNS only')."
    )
}

fn apex(name: &str, host: &str, targets: &[String], authorities: &mut NameServers, dns: &Dns) -> Found {
    if !targets.is_empty() {
        let conflict = format!(
            "{name} has a CNAME record to {}. An apex domain cannot have one, because it has NS and SOA records. \
             Create an ALIAS or ANAME record to {host} instead.",
            list(targets)
        );
        return Ok(wrong(CONFLICTING_RECORD, conflict));
    }
    let own = addresses(name, authorities)?;
    let of_host = addresses(host, &mut dns.resolvers())?;
    let known = if of_host.is_empty() { "none".to_owned() } else { list(&of_host) };
    if own.is_empty() {
        let missing = format!(
            "{name} has no addresses yet, and cannot have a CNAME record, because it is the apex of a zone. Create an \
             ALIAS or ANAME record with the value {host}, or A and AAAA records with its addresses {known}. {SLOW}"
        );
        return Ok(wrong(NOT_FOUND_YET, missing));
    }
    let stray: BTreeSet<IpAddr> = own.difference(&of_host).copied().collect();
    if stray.is_empty() {
        return Ok(Finding::RIGHT);
    }
    let elsewhere = if stray.len() < own.len() {
        format!(
            "{name} leads to {host}, but also has addresses that {host} does not have: {}. Remove the records with these \
             addresses. A leftover AAAA record is a common mistake: clients with IPv6 try it first.",
            list(stray)
        )
    } else {
        format!(
            "{name} has the addresses {}. It must have those of {host}, by an ALIAS, an ANAME, or A and AAAA records: \
             {known}.{}",
            list(own),
            hidden(host)
        )
    };
    Ok(wrong(WRONG_TARGET, elsewhere))
}

fn aliases(answer: &DnsAnswer) -> Vec<String> {
    answer.own().filter_map(AnswerRecord::alias).collect()
}

fn addresses(name: &str, servers: &mut NameServers) -> Result<BTreeSet<IpAddr>, DnsError> {
    let mut addresses = BTreeSet::new();
    for kind in [RecordType::A, RecordType::AAAA] {
        addresses.extend(servers.ask(name, kind)?.addresses()?);
    }
    Ok(addresses)
}
