//! The check of CAA records, which must allow a certificate authority to issue a certificate for a domain (RFC 8659).
//! Parameters in the records are ignored, since only the authority can interpret them (section 4.2).

use crate::model::DomainEvent;
use crate::project::dns::{AnswerRecord, Dns, DnsAnswer, DnsError, RecordType, with_parents};
use crate::project::finding::{CAA_UNKNOWN, Finding, list};

/// The names in CAA records of Let's Encrypt, and of Sectigo, which issues for `ZeroSSL`.
const DEFAULT_AUTHORITIES: [&str; 2] = ["letsencrypt.org", "sectigo.com"];

/// The critical flag: an authority that does not know the property must not issue (RFC 8659, section 4.1).
const CRITICAL: u8 = 128;
/// The properties that all authorities know (RFC 8659 and RFC 9495).
const KNOWN: [&str; 4] = ["issue", "issuewild", "issuemail", "iodef"];

/// Checks if one of the authorities may issue a certificate for a name with a correct DNS record. If `authorities` is
/// empty, the default ones count.
pub(crate) fn check_caa(name: &str, authorities: &[String], dns: &Dns) -> Finding {
    let authorities: Vec<&str> = match authorities {
        [] => DEFAULT_AUTHORITIES.into(),
        given => given.iter().map(String::as_str).collect(),
    };
    let mut resolvers = dns.resolvers();
    for at in with_parents(name) {
        match resolvers
            .ask(at, RecordType::CAA)
            .and_then(|answer| judge(&answer, &authorities))
        {
            Ok(None) => {}
            // The records of the closest name decide.
            Ok(Some(finding)) => return finding,
            Err(error) => {
                let why = format!(
                    "The record is correct. CAA records may forbid the certificate, but those of {at} could not be looked up: {error}."
                );
                return Finding::new(DomainEvent::Right, CAA_UNKNOWN, why);
            }
        }
    }
    Finding::RIGHT
}

/// Evaluates the CAA records of the canonical name; `None` if there are none.
fn judge(answer: &DnsAnswer, authorities: &[&str]) -> Result<Option<Finding>, DnsError> {
    let owner = answer.canonical()?;
    let records: Vec<&AnswerRecord> = answer
        .of(&owner)
        .filter(|record| record.kind() == RecordType::CAA)
        .collect();
    if records.is_empty() {
        return Ok(None);
    }
    let blocked = |records: Vec<&AnswerRecord>, advice: String| {
        let records = list(records);
        let message = format!(
            "The record is correct, but the CAA records of {owner} block the certificate ({records}): {advice}"
        );
        Ok(Some(Finding::new(
            DomainEvent::Blocked,
            "caa_blocks",
            message,
        )))
    };
    let (issuing, others): (Vec<&AnswerRecord>, Vec<_>) = records
        .into_iter()
        .partition(|record| issuer(record).is_some());
    let is_unknown = |tag: String| !KNOWN.contains(&&*tag.to_ascii_lowercase());
    let forbids = |record: &&AnswerRecord| {
        record
            .caa()
            .is_some_and(|own| own.flag & CRITICAL != 0 && is_unknown(own.tag.to_string()))
    };
    let unknown: Vec<_> = others.into_iter().filter(forbids).collect();
    if !unknown.is_empty() {
        let advice = "the flag 128 forbids it to every authority that does not know the property. Remove the record, or \
                      set its flag to 0.";
        return blocked(unknown, advice.to_owned());
    }
    let is_allowed = |issuer: &[u8]| {
        authorities
            .iter()
            .any(|name| issuer.eq_ignore_ascii_case(name.as_bytes()))
    };
    if issuing.is_empty()
        || issuing
            .iter()
            .filter_map(|record| issuer(record))
            .any(is_allowed)
    {
        return Ok(Some(Finding::RIGHT));
    }
    blocked(
        issuing,
        format!("add the record CAA 0 issue \"{}\" there.", authorities[0]),
    )
}

/// Returns the authority in an `issue` property, without the parameters after it; empty if the property allows no
/// authority (RFC 8659, section 4.2).
fn issuer(record: &AnswerRecord) -> Option<&[u8]> {
    let property = record
        .caa()
        .filter(|property| property.tag.to_string().eq_ignore_ascii_case("issue"))?;
    property
        .value
        .split(|byte| *byte == b';')
        .next()
        .map(<[u8]>::trim_ascii)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::dns::tests::{AsDns, Record, Records, Server, WWW, respond, with_flags};

    fn issue(value: &'static str) -> Record {
        Record::Caa(0, "issue", value)
    }

    /// Returns the reason why the records forbid the certificate; empty if they do not.
    fn ask(records: Records) -> String {
        let found = check_caa(WWW, &[], &Server::of(records).dns());
        let is_blocked = found.event == DomainEvent::Blocked;
        assert!(is_blocked || found == Finding::RIGHT, "{found:?}");
        found
            .reason
            .map(|reason| reason.message)
            .unwrap_or_default()
    }

    fn blocks_at(name: &str, records: Records) -> bool {
        ask(records).starts_with(&format!(
            "The record is correct, but the CAA records of {name} block"
        ))
    }

    #[test]
    fn without_records_nothing_blocks_and_all_parents_are_asked() {
        let server = Server::of(Vec::new());
        assert_eq!(check_caa(WWW, &[], &server.dns()), Finding::RIGHT);
        let asked: Vec<String> = server.asked().into_iter().map(|asked| asked.name).collect();
        assert_eq!(asked, ["www.example.com", "example.com", "com"]);
    }

    #[test]
    fn named_authority_may_issue() {
        for value in [
            "letsencrypt.org",
            "LetsEncrypt.ORG",
            " sectigo.com ; account=1",
            "letsencrypt.org;",
        ] {
            assert_eq!(ask(vec![("example.com", issue(value))]), "", "{value}");
        }
        let several = vec![
            ("example.com", issue(";")),
            ("example.com", issue("sectigo.com")),
        ];
        assert_eq!(ask(several), "");
        let server = Server::of(vec![("example.com", issue("sectigo.com"))]);
        assert_eq!(
            check_caa(WWW, &["Sectigo.com".to_owned()], &server.dns()),
            Finding::RIGHT
        );
    }

    #[test]
    fn other_authorities_block() {
        for (value, shown) in [
            ("other.example", "CAA 0 issue \"other.example\""),
            (";", "CAA 0 issue \";\""),
            ("", "CAA 0 issue \"\""),
            ("notletsencrypt.org", "CAA 0 issue \"notletsencrypt.org\""),
            ("x.letsencrypt.org", "CAA 0 issue \"x.letsencrypt.org\""),
        ] {
            assert_eq!(
                ask(vec![("example.com", issue(value))]),
                format!(
                    "The record is correct, but the CAA records of example.com block the certificate ({shown}): add the \
                     record CAA 0 issue \"letsencrypt.org\" there."
                )
            );
        }
    }

    #[test]
    fn closest_records_decide() {
        let com = ("com", issue("other.example"));
        assert_eq!(ask(vec![com.clone(), (WWW, issue("letsencrypt.org"))]), "");
        assert!(blocks_at("com", vec![com.clone()]));
        let both = vec![
            ("example.com", issue("letsencrypt.org")),
            (WWW, issue("other.example")),
        ];
        assert!(blocks_at(WWW, both));
        // Records without `issue` restrict nothing, but they are the closest, so those of parents do not count.
        assert_eq!(
            ask(vec![
                com,
                (WWW, Record::Caa(0, "iodef", "mailto:a@example.com"))
            ]),
            ""
        );
    }

    #[test]
    fn records_of_the_alias_decide() {
        let records = vec![
            (WWW, Record::Cname("a.example.net")),
            ("a.example.net", issue("other.example")),
            ("example.com", issue("letsencrypt.org")),
        ];
        assert!(blocks_at("a.example.net", records));
        // The parents of the alias do not count.
        let records = vec![
            (WWW, Record::Cname("a.example.net")),
            ("example.net", issue("other.example")),
        ];
        assert_eq!(ask(records), "");
    }

    #[test]
    fn other_tags_do_not_block() {
        for tag in ["issuewild", "issuemail", "iodef"] {
            assert_eq!(
                ask(vec![(WWW, Record::Caa(128, tag, "other.example"))]),
                "",
                "{tag}"
            );
        }
        assert_eq!(
            ask(vec![(WWW, Record::Caa(128, "ISSUE", "letsencrypt.org"))]),
            ""
        );
        assert_eq!(ask(vec![(WWW, Record::Caa(128, "IssueWild", ";"))]), "");
        assert_eq!(ask(vec![(WWW, Record::Caa(1, "tbs", "un\x1bknown"))]), "");
    }

    #[test]
    fn critical_property_that_is_unknown_blocks_whatever_else_allows() {
        for (flag, tag) in [
            (128, "tbs"),
            (255, "tbs"),
            (129, "contactemail"),
            (128, "ISSUEX"),
        ] {
            let message = ask(vec![
                (WWW, issue("letsencrypt.org")),
                (WWW, Record::Caa(flag, tag, "x")),
            ]);
            let start = format!(
                "The record is correct, but the CAA records of www.example.com block the certificate (CAA {flag} {tag} \
                 \"x\"): the flag 128 forbids it"
            );
            assert!(message.starts_with(&start), "{message}");
        }
        assert_eq!(
            ask(vec![
                (WWW, issue("letsencrypt.org")),
                (WWW, Record::Caa(127, "tbs", "x"))
            ]),
            ""
        );
        // One of a parent does not count if the name has records of its own.
        let parent = ("example.com", Record::Caa(128, "tbs", "x"));
        assert_eq!(
            ask(vec![parent.clone(), (WWW, issue("letsencrypt.org"))]),
            ""
        );
        assert!(blocks_at("example.com", vec![parent]));
    }

    #[test]
    fn failing_server_leaves_the_status_unknown() {
        let server = Server::datagrams(|query| {
            vec![with_flags(respond(query, &Vec::new()), |flags| {
                *flags = *flags & !15 | 2;
            })]
        });
        let expected = format!(
            "The record is correct. CAA records may forbid the certificate, but those of \
             www.example.com could not be looked up: the name server {} failed to answer (SERVFAIL).",
            server.address
        );
        let found = check_caa(WWW, &[], &server.dns());
        assert_eq!(
            found,
            Finding::new(DomainEvent::Right, CAA_UNKNOWN, expected)
        );
    }

    #[test]
    fn long_values_are_shortened() {
        let long: &'static str = Box::leak("x".repeat(5000).into_boxed_str());
        let records = (0..6).map(|_| (WWW, issue(long))).collect();
        let message = ask(records);
        assert!(
            message.len() < 700 && message.contains(" and 2 more)"),
            "{message}"
        );
    }
}
