//! Whether the DNS record of a domain exists and is right.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::record::is_apex;
use crate::dns::{Answer, Data, Dns, DnsError, Inquiry, NameServers, RecordType};

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
/// The most records that a message names.
const MAX_NAMED: usize = 4;

/// What DNS has for a domain.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RecordStatus {
    /// The record exists and is right.
    Right,
    /// The record is missing or wrong. Waiting helps only if it is `NotFoundYet`.
    Wrong(Problem),
    /// DNS gave no answer, for the reason in this sentence.
    Unknown(String),
}

/// What is wrong with the record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub code: ProblemCode,
    /// What was found and what is expected, in one or two sentences.
    pub message: String,
}

/// The kind of problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProblemCode {
    /// The name has other records.
    ConflictingRecord,
    /// The record points elsewhere.
    WrongTarget,
    /// There is no record, or DNS does not show it yet.
    NotFoundYet,
}

impl ProblemCode {
    /// The stable code for programs.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::ConflictingRecord => "conflicting_record",
            Self::WrongTarget => "wrong_target",
            Self::NotFoundYet => "not_found_yet",
        }
    }
}

/// Looks up the record of a domain, which takes at most 15 seconds. The name has A-labels in lower case.
pub(super) fn verify(name: &str, platform_host: &str, dns: &Dns) -> RecordStatus {
    let host = platform_host.trim_end_matches('.').to_ascii_lowercase();
    let inquiry = dns.begin();
    let problem = inquiry.authorities(name).and_then(|mut authorities| {
        if is_apex(name) {
            apex(name, &host, &mut authorities, inquiry)
        } else {
            subdomain(name, &host, &mut authorities)
        }
    });
    match problem {
        Ok(None) => RecordStatus::Right,
        Ok(Some((code, message))) => RecordStatus::Wrong(Problem { code, message }),
        Err(error) => RecordStatus::Unknown(format!("The record of {name} could not be looked up: {error}.")),
    }
}

type Found = Result<Option<(ProblemCode, String)>, DnsError>;

fn subdomain(name: &str, host: &str, authorities: &mut NameServers) -> Found {
    let targets = aliases(&authorities.ask(name, RecordType::CNAME)?);
    let points_elsewhere = targets.iter().any(|target| target != host);
    let mut others = BTreeSet::new();
    for (number, kind) in OTHERS.into_iter().enumerate() {
        match authorities.ask(name, kind) {
            Ok(answer) => {
                let found = answer.own().filter(|data| data.kind() == kind);
                others.extend(found.map(|data| (number, data.to_string())));
            }
            // A resolver that follows a wrong record often fails.
            Err(error) if number < MUST_BE_KNOWN && !points_elsewhere => return Err(error),
            Err(_) => break,
        }
    }
    Ok(if !others.is_empty() {
        let found = list(others.into_iter().map(|(_, record)| record));
        let conflict = format!(
            "{name} has other records than a CNAME record: {found}. Remove them: a name with a CNAME record may \
             have no others."
        );
        Some((ProblemCode::ConflictingRecord, conflict))
    } else if targets.is_empty() {
        let missing = format!(
            "{name} has no CNAME record yet. Create one with the value {host}; DNS may take up to 48 hours to show it."
        );
        Some((ProblemCode::NotFoundYet, missing))
    } else if points_elsewhere {
        let wrong =
            format!("The CNAME record of {name} points to {}. It must point to {host}.", list(targets));
        Some((ProblemCode::WrongTarget, wrong))
    } else {
        None
    })
}

fn apex(name: &str, host: &str, authorities: &mut NameServers, inquiry: Inquiry) -> Found {
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
            return Ok(Some((ProblemCode::ConflictingRecord, conflict)));
        }
        own.extend(answer.addresses()?);
    }
    if own.is_empty() {
        let missing = format!(
            "{name} has no addresses yet. Create an ALIAS or ANAME record with the value {host}; DNS may take up to 48 \
             hours to show it."
        );
        return Ok(Some((ProblemCode::NotFoundYet, missing)));
    }
    let of_host = addresses(host, &mut inquiry.resolvers())?;
    Ok((!own.is_subset(&of_host)).then(|| {
        let wrong = format!(
            "{name} has the addresses {}. Its ALIAS or ANAME record must point to {host}, which has {}.",
            list(own),
            if of_host.is_empty() { "none".to_owned() } else { list(of_host) }
        );
        (ProblemCode::WrongTarget, wrong)
    }))
}

fn aliases(answer: &Answer) -> Vec<String> {
    let target = |data: &Data| match data {
        Data::Alias(target) => Some(target.clone()),
        _ => None,
    };
    answer.own().filter_map(target).collect()
}

fn addresses(host: &str, resolvers: &mut NameServers) -> Result<BTreeSet<IpAddr>, DnsError> {
    let mut addresses = BTreeSet::new();
    for kind in [RecordType::A, RecordType::AAAA] {
        addresses.extend(resolvers.ask(host, kind)?.addresses()?);
    }
    Ok(addresses)
}

/// The start of a value, which its owner may have made long.
pub(super) fn shortened(shown: &str) -> String {
    const MOST: usize = 100;
    if shown.len() <= MOST { shown.to_owned() } else { shown.chars().take(MOST).chain(['…']).collect() }
}

/// The first few items, for a sentence.
fn list(items: impl IntoIterator<Item: ToString>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| shortened(&item.to_string())).collect();
    let first = items[..items.len().min(MAX_NAMED)].join(", ");
    match items.len().saturating_sub(MAX_NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
