//! Whether CAA records allow a certificate authority to issue a certificate for a domain (RFC 8659). What their parameters
//! mean is for the authority alone (section 4.2).

use super::check::{CAA_UNKNOWN, Finding, list};
use crate::dns::{Answer, Dns, DnsError, Record, RecordType, with_parents};
use crate::model::DomainEvent;

/// The names in CAA records of Let's Encrypt, and of Sectigo, which issues for `ZeroSSL`.
const DEFAULT_AUTHORITIES: [&str; 2] = ["letsencrypt.org", "sectigo.com"];

/// The flag of a property that an authority must know, or not issue (RFC 8659, section 4.1).
const CRITICAL: u8 = 128;
/// The properties that all authorities know (RFC 8659 and RFC 9495).
const KNOWN: [&str; 4] = ["issue", "issuewild", "issuemail", "iodef"];

/// Looks up whether one of the authorities may issue a certificate for a name whose own record is right. Without any,
/// the default ones count.
pub(super) fn check_caa(name: &str, authorities: &[String], dns: &Dns) -> Finding {
    let authorities: Vec<&str> = match authorities {
        [] => DEFAULT_AUTHORITIES.into(),
        given => given.iter().map(String::as_str).collect(),
    };
    let mut resolvers = dns.resolvers();
    for at in with_parents(name) {
        match resolvers.ask(at, RecordType::CAA).and_then(|answer| judge(&answer, &authorities)) {
            Ok(None) => {}
            // The closest set decides.
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

/// What the CAA records at the end of the aliases mean for the certificate; `None` if there are none.
fn judge(answer: &Answer, authorities: &[&str]) -> Result<Option<Finding>, DnsError> {
    let owner = answer.canonical()?;
    let records: Vec<&Record> = answer.of(&owner).filter(|record| record.kind() == RecordType::CAA).collect();
    if records.is_empty() {
        return Ok(None);
    }
    let unknown: Vec<_> = records.iter().filter(|record| is_unknown_and_critical(record)).collect();
    if !unknown.is_empty() {
        let message = format!(
            "The record is correct, but the CAA records of {owner} block the certificate ({}): the flag {CRITICAL} forbids \
             it to every authority that does not know the property. Remove the record, or set its flag to 0.",
            list(unknown)
        );
        return Ok(Some(Finding::new(DomainEvent::Blocked, "caa_blocks", message)));
    }
    let issuers: Vec<(&Record, &str)> =
        records.into_iter().filter_map(|record| Some((record, issuer(record)?))).collect();
    let is_allowed = |issuer: &str| authorities.iter().any(|name| issuer.eq_ignore_ascii_case(name));
    if issuers.is_empty() || issuers.iter().any(|(_, issuer)| is_allowed(issuer)) {
        return Ok(Some(Finding::RIGHT));
    }
    let message = format!(
        "The record is correct, but the CAA records of {owner} block the certificate ({}): add the record CAA 0 issue \
         \"{}\" there.",
        list(issuers.iter().map(|(record, _)| record)),
        authorities[0]
    );
    Ok(Some(Finding::new(DomainEvent::Blocked, "caa_blocks", message)))
}

fn is_unknown_and_critical(record: &Record) -> bool {
    let is_known = |tag: String| KNOWN.iter().any(|known| known.eq_ignore_ascii_case(&tag));
    record.caa().is_some_and(|property| property.flag & CRITICAL != 0 && !is_known(property.tag.to_string()))
}

/// The authority that an `issue` property names (RFC 8659, section 4.2); empty for none, which a malformed value means
/// too.
fn issuer(record: &Record) -> Option<&str> {
    let property = record.caa().filter(|property| property.tag.to_string().eq_ignore_ascii_case("issue"))?;
    let value = str::from_utf8(&property.value).unwrap_or_default();
    let (issuer, parameters) = value.split_once(';').unwrap_or((value, ""));
    let are_well_formed = trimmed(parameters).is_empty() || parameters.split(';').all(is_parameter);
    Some(if are_well_formed { trimmed(issuer) } else { "" })
}

/// Whether a text is a tag, an equals sign and a value.
fn is_parameter(text: &str) -> bool {
    let Some((tag, value)) = text.split_once('=') else { return false };
    let is_word = |part: &str| !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric());
    trimmed(tag).split('-').all(is_word) && trimmed(value).bytes().all(|b| b.is_ascii_graphic())
}

fn trimmed(text: &str) -> &str {
    text.trim_matches([' ', '\t'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dns::tests::{Record, Records, Server, WWW, respond, with_flags};

    fn issue(value: &'static str) -> Record {
        Record::Caa(0, "issue", value)
    }

    /// Why the records block the certificate; empty if they do not.
    fn ask(records: Records) -> String {
        let found = check_caa(WWW, &[], &Server::of(records).dns());
        let is_blocked = found.event == DomainEvent::Blocked;
        assert!(is_blocked || found == Finding::RIGHT, "{found:?}");
        found.reason.map(|reason| reason.message).unwrap_or_default()
    }

    fn blocks_at(name: &str, records: Records) -> bool {
        ask(records).starts_with(&format!("The record is correct, but the CAA records of {name} block"))
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
        for value in ["letsencrypt.org", "LetsEncrypt.ORG", " sectigo.com ; account=1", "letsencrypt.org;"] {
            assert_eq!(ask(vec![("example.com", issue(value))]), "", "{value}");
        }
        let several = vec![("example.com", issue(";")), ("example.com", issue("sectigo.com"))];
        assert_eq!(ask(several), "");
        let server = Server::of(vec![("example.com", issue("sectigo.com"))]);
        assert_eq!(check_caa(WWW, &["Sectigo.com".to_owned()], &server.dns()), Finding::RIGHT);
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
        let both = vec![("example.com", issue("letsencrypt.org")), (WWW, issue("other.example"))];
        assert!(blocks_at(WWW, both));
        // Records without `issue` restrict nothing, and are the closest all the same.
        assert_eq!(ask(vec![com, (WWW, Record::Caa(0, "iodef", "mailto:a@example.com"))]), "");
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
        let records = vec![(WWW, Record::Cname("a.example.net")), ("example.net", issue("other.example"))];
        assert_eq!(ask(records), "");
    }

    #[test]
    fn other_tags_do_not_block() {
        for tag in ["issuewild", "issuemail", "iodef"] {
            assert_eq!(ask(vec![(WWW, Record::Caa(128, tag, "other.example"))]), "", "{tag}");
        }
        assert_eq!(ask(vec![(WWW, Record::Caa(128, "ISSUE", "letsencrypt.org"))]), "");
        assert_eq!(ask(vec![(WWW, Record::Caa(128, "IssueWild", ";"))]), "");
        assert_eq!(ask(vec![(WWW, Record::Caa(1, "tbs", "un\x1bknown"))]), "");
    }

    #[test]
    fn critical_property_that_is_unknown_blocks_whatever_else_allows() {
        for (flag, tag) in [(128, "tbs"), (255, "tbs"), (129, "contactemail"), (128, "ISSUEX")] {
            let message = ask(vec![(WWW, issue("letsencrypt.org")), (WWW, Record::Caa(flag, tag, "x"))]);
            let start = format!(
                "The record is correct, but the CAA records of www.example.com block the certificate (CAA {flag} {tag} \
                 \"x\"): the flag 128 forbids it"
            );
            assert!(message.starts_with(&start), "{message}");
        }
        assert_eq!(ask(vec![(WWW, issue("letsencrypt.org")), (WWW, Record::Caa(127, "tbs", "x"))]), "");
        // One of a parent does not count if the name has records of its own.
        let parent = ("example.com", Record::Caa(128, "tbs", "x"));
        assert_eq!(ask(vec![parent.clone(), (WWW, issue("letsencrypt.org"))]), "");
        assert!(blocks_at("example.com", vec![parent]));
    }

    #[test]
    fn malformed_value_names_no_authority() {
        for value in [
            "letsencrypt.org; %%%%%",
            "letsencrypt.org; account",
            "letsencrypt.org; a=b;",
            "letsencrypt.org;; a=b",
            "letsencrypt.org; -a=b",
            "letsencrypt.org; =b",
            "letsencrypt.org; a=b c=d",
            "letsencrypt.org; a=\u{e9}",
            "letsencrypt.org a=b",
            "letsencrypt.org.",
            "letsencrypt.org\n",
            "\"letsencrypt.org\"",
            "letsencrypt.org, sectigo.com",
        ] {
            assert!(blocks_at("example.com", vec![("example.com", issue(value))]), "{value}");
            assert_eq!(ask(vec![(WWW, issue(value)), (WWW, issue("sectigo.com"))]), "", "{value}");
        }
        for value in [
            "letsencrypt.org ;\t",
            "letsencrypt.org;a=b",
            "letsencrypt.org; a-b = c=d ; e=",
            "letsencrypt.org; validationmethods=http-01,dns-01; accounturi=https://x.example/1",
        ] {
            assert_eq!(ask(vec![("example.com", issue(value))]), "", "{value}");
        }
    }

    #[test]
    fn failing_server_leaves_the_status_unknown() {
        let server = Server::datagrams(|query| {
            vec![with_flags(respond(query, &Vec::new()), |flags| *flags = *flags & !15 | 2)]
        });
        let expected = format!(
            "The record is correct. CAA records may forbid the certificate, but those of \
             www.example.com could not be looked up: the name server {} failed to answer (SERVFAIL).",
            server.address
        );
        let found = check_caa(WWW, &[], &server.dns());
        assert_eq!(found, Finding::new(DomainEvent::Right, CAA_UNKNOWN, expected));
    }

    #[test]
    fn long_values_are_shortened() {
        let long: &'static str = Box::leak("x".repeat(5000).into_boxed_str());
        let records = (0..6).map(|_| (WWW, issue(long))).collect();
        let message = ask(records);
        assert!(message.len() < 700 && message.contains(" and 2 more)"), "{message}");
    }
}
