//! The check of the DNS record of a domain, which must exist and point to the platform.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::config::Hosting;
use crate::model::DomainEvent;
use crate::project::caa::check_caa;
use crate::project::dns::{
    AnswerRecord, Dns, DnsAnswer, DnsError, NameServers, RecordType, with_parents,
};
use crate::project::finding::{Finding, list};
use crate::project::suffix::{is_apex, registered};

/// The common types of records that must not exist alongside the CNAME record of a subdomain.
const OTHERS: [RecordType; 4] = [
    RecordType::A,
    RecordType::AAAA,
    RecordType::MX,
    RecordType::TXT,
];

/// The time between two checks of a domain, in seconds: 10 minutes.
pub const CHECK_EVERY: i64 = 10 * 60;
/// The name has other records.
pub(crate) const CONFLICTING_RECORD: &str = "conflicting_record";
/// The record points elsewhere.
pub(crate) const WRONG_TARGET: &str = "wrong_target";
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
pub(crate) fn verify(name: &str, platform_host: &str, dns: &Dns) -> Finding {
    let host = platform_host.trim_end_matches('.').to_ascii_lowercase();
    let found = dns.authorities(name).and_then(|mut authorities| {
        let targets = aliases(&authorities.ask(name, RecordType::CNAME)?);
        let zone = authorities.ask(name, RecordType::SOA);
        let has_soa = |zone: &DnsAnswer| zone.own().any(|record| record.kind() == RecordType::SOA);
        // A registered name without a SOA record that is an alias belongs to the zone of its parent.
        if zone.as_ref().is_ok_and(has_soa) || is_apex(name) && targets.is_empty() {
            apex(name, &host, &targets, &mut authorities, dns)
        } else {
            subdomain(name, &host, &targets, &mut authorities, dns)
        }
    });
    found.unwrap_or_else(|error| {
        let why = format!(
            "Couldn't look up {name}: {error}. Trying again within 10 minutes. If this doesn't go away, check that the \
             domain is registered and its name servers are set."
        );
        Finding::new(DomainEvent::Unknown, "dns_unavailable", why)
    })
}

fn wrong(code: &str, message: String) -> Finding {
    Finding::new(DomainEvent::Wrong, code, message)
}

fn subdomain(
    name: &str,
    host: &str,
    targets: &[String],
    authorities: &mut NameServers,
    dns: &Dns,
) -> Found {
    if targets.iter().any(|target| target != host) {
        let (found, advice) = (list(targets), appended(name, host, targets));
        let elsewhere = format!(
            "The CNAME record of {name} points to {found}. It must point to {host}.{advice}"
        );
        return Ok(wrong(WRONG_TARGET, elsewhere));
    }
    let mut others = BTreeSet::new();
    for kind in OTHERS {
        let answer = match authorities.ask(name, kind) {
            // What cannot be looked up is no conflict.
            Err(_) if !targets.is_empty() => continue,
            answer => answer?,
        };
        others.extend(
            answer
                .own()
                .filter(|record| record.kind() == kind)
                .map(ToString::to_string),
        );
    }
    if !others.is_empty() {
        let own = if targets.is_empty() {
            addresses(name, authorities).0
        } else {
            BTreeSet::new()
        };
        if !own.is_empty() && own.is_subset(&addresses(host, &mut dns.resolvers()).0) {
            let conflict = format!(
                "{name} has the addresses of {host} ({}), but no CNAME record. If your DNS settings show one, the provider \
                 flattens it: turn flattening off for this record. Otherwise replace the addresses with a CNAME record to \
                 {host}.",
                list(&others)
            );
            return Ok(wrong(CONFLICTING_RECORD, conflict));
        }
        let advice = if targets.is_empty() {
            hidden(host)
        } else {
            " Its CNAME record is right.".to_owned()
        };
        let conflict = format!(
            "{} A name with a CNAME can't have others.{advice}",
            delete(name, &others)
        );
        return Ok(wrong(CONFLICTING_RECORD, conflict));
    }
    if targets.is_empty() {
        let missing =
            format!("{name} has no CNAME record yet. Create one with the value {host}. {SLOW}");
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

/// Asks for the deletion of records. The settings page makes the first step of this sentence.
fn delete(name: &str, records: &BTreeSet<String>) -> String {
    let these = if records.len() == 1 {
        "this record"
    } else {
        "these records"
    };
    format!("Delete {these} of {name}: {}.", list(records))
}

/// The records of addresses, such as `A 192.0.2.1`.
fn records(addresses: impl IntoIterator<Item = IpAddr>) -> BTreeSet<String> {
    let record =
        |address: IpAddr| format!("{} {address}", if address.is_ipv4() { "A" } else { "AAAA" });
    addresses.into_iter().map(record).collect()
}

/// Asks for the record of an apex. The settings page makes rows of the records after the colon.
fn create(host: &str, of_host: &BTreeSet<IpAddr>) -> String {
    let second_way = if of_host.is_empty() {
        String::new()
    } else {
        format!(
            ", or these records: {}",
            list(records(of_host.iter().copied()))
        )
    };
    format!("Create an ALIAS or ANAME record with the value {host}{second_way}.")
}

/// Advice if a name has addresses, but not those of the platform host.
fn hidden(host: &str) -> String {
    format!(
        " If your DNS settings already point the record to {host}, a proxy such as Cloudflare's hides it: turn the proxy \
         off for this record ('DNS only')."
    )
}

fn apex(
    name: &str,
    host: &str,
    targets: &[String],
    authorities: &mut NameServers,
    dns: &Dns,
) -> Found {
    if !targets.is_empty() {
        let conflict = format!(
            "{name} has a CNAME record to {}. Delete it: an apex domain can't have one, because it has NS and SOA \
             records. {}",
            list(targets),
            create(host, &BTreeSet::new())
        );
        return Ok(wrong(CONFLICTING_RECORD, conflict));
    }
    let (own, looked_up) = addresses(name, authorities);
    let (of_host, host_looked_up) = addresses(host, &mut dns.resolvers());
    if own.is_empty() {
        looked_up?;
        let missing = format!(
            "{name} has no addresses yet. It can't have a CNAME record, because it is the apex of a zone. {} {SLOW}",
            create(host, &of_host)
        );
        return Ok(wrong(NOT_FOUND_YET, missing));
    }
    let stray: BTreeSet<IpAddr> = own.difference(&of_host).copied().collect();
    if stray.is_empty() {
        return Ok(Finding::RIGHT);
    }
    host_looked_up?;
    let first = if stray.iter().any(IpAddr::is_ipv6) {
        ", and IPv6 clients try it first"
    } else {
        ""
    };
    let deletion = delete(name, &records(stray.iter().copied()));
    let stray_records = format!("{deletion} The platform has no such address{first}.");
    let next = if stray.len() < own.len() {
        String::new()
    } else {
        format!(" {}{}", create(host, &of_host), hidden(host))
    };
    Ok(wrong(WRONG_TARGET, stray_records + &next))
}

fn aliases(answer: &DnsAnswer) -> Vec<String> {
    answer.own().filter_map(AnswerRecord::alias).collect()
}

/// The addresses of a name, and the failure if those of one kind could not be looked up.
fn addresses(name: &str, servers: &mut NameServers) -> (BTreeSet<IpAddr>, Result<(), DnsError>) {
    let (mut addresses, mut looked_up) = (BTreeSet::new(), Ok(()));
    for kind in [RecordType::A, RecordType::AAAA] {
        let answer = servers.ask(name, kind);
        match answer.and_then(|answer| answer.addresses()) {
            Ok(found) => addresses.extend(found),
            Err(error) => looked_up = Err(error),
        }
    }
    (addresses, looked_up)
}
