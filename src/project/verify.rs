//! Whether the DNS record of a domain is there, and right.

use std::collections::BTreeSet;
use std::net::IpAddr;

use super::record::is_apex;
use crate::dns::{Answer, Data, Dns, DnsError, Inquiry, NameServers, RecordType};

/// What may stand where only the CNAME record of a subdomain should. Whether the first two are there must be known,
/// unless the CNAME record is wrong already. The search ends where a server does not answer it.
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

/// What DNS says of a domain.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum RecordStatus {
    /// The record is there and right.
    Right,
    /// It is not. Where the problem is not `NotFoundYet`, waiting alone does not mend it.
    Wrong(Problem),
    /// DNS could not be asked. Nothing is known. One plain sentence says why.
    Unknown(String),
}

/// What is wrong with the record.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Problem {
    pub code: ProblemCode,
    /// What was found and what is wanted: one or two plain sentences.
    pub message: String,
}

/// The kind of problem.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ProblemCode {
    /// Another record of the same name stands in the way.
    ConflictingRecord,
    /// The record leads elsewhere.
    WrongTarget,
    /// There is no record. It may be on its way.
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

/// Looks the record of a domain up. The name has A-labels in lower case. It takes 15 seconds at the most.
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
    let leads_elsewhere = targets.iter().any(|target| target != host);
    let mut others = BTreeSet::new();
    for (number, kind) in OTHERS.into_iter().enumerate() {
        match authorities.ask(name, kind) {
            Ok(answer) => {
                let found = answer.own().filter(|data| data.kind() == kind);
                others.extend(found.map(|data| (number, data.to_string())));
            }
            // A resolver that follows a wrong record may well fail.
            Err(error) if number < MUST_BE_KNOWN && !leads_elsewhere => return Err(error),
            Err(_) => break,
        }
    }
    Ok(if !others.is_empty() {
        let found = list(others.into_iter().map(|(_, record)| record));
        let conflict = format!(
            "{name} has other records than a CNAME record: {found}. Remove them, as nothing may stand beside the CNAME \
             record to {host}."
        );
        Some((ProblemCode::ConflictingRecord, conflict))
    } else if targets.is_empty() {
        let missing = format!(
            "{name} has no CNAME record yet. Create one with the value {host}; DNS may take up to 48 hours to show it."
        );
        Some((ProblemCode::NotFoundYet, missing))
    } else if leads_elsewhere {
        let wrong = format!("The CNAME record of {name} leads to {}. It must lead to {host}.", list(targets));
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
                "{name} has a CNAME record to {}. An apex domain cannot have one, as it has NS and SOA records: create \
                 an ALIAS or ANAME record to {host} instead.",
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
            "{name} has the addresses {}. Its ALIAS or ANAME record must lead to {host}, which has {}.",
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

/// A value is as long as its owner likes.
pub(super) fn shortened(shown: &str) -> String {
    const MOST: usize = 100;
    if shown.len() <= MOST { shown.to_owned() } else { shown.chars().take(MOST).chain(['…']).collect() }
}

/// The first few, for a sentence.
fn list(items: impl IntoIterator<Item: ToString>) -> String {
    let items: Vec<String> = items.into_iter().map(|item| shortened(&item.to_string())).collect();
    let first = items[..items.len().min(MAX_NAMED)].join(", ");
    match items.len().saturating_sub(MAX_NAMED) {
        0 => first,
        more => format!("{first} and {more} more"),
    }
}
