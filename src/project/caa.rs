//! Whether CAA records allow a certificate authority to issue a certificate for a domain (RFC 8659). Their parameters are
//! for the authority alone (section 4.2).

use super::check::{CAA_BLOCKS, CAA_UNKNOWN, Finding, list};
use crate::dns::{Answer, Caa, Data, Dns, DnsError, RecordType, with_parents};
use crate::model::DomainEvent;

/// The names in CAA records of Let's Encrypt, and of Sectigo, which issues for `zerossl.com`.
const DEFAULT_AUTHORITIES: [&str; 2] = ["letsencrypt.org", "sectigo.com"];

/// The tags that every authority knows: RFC 8659, section 4, and RFC 9495.
const KNOWN_TAGS: [&str; 4] = ["issue", "issuewild", "iodef", "issuemail"];
/// An authority that does not know the tag must not issue (RFC 8659, section 4.1).
const CRITICAL: u8 = 128;

/// Looks up whether one of the authorities may issue a certificate for a name whose own record is right. Without any,
/// the default ones count.
pub(super) fn check_caa(name: &str, authorities: &[String], dns: &Dns) -> Finding {
    let mut authorities: Vec<&str> = authorities.iter().map(|authority| caa_name(authority)).collect();
    if authorities.is_empty() {
        authorities.extend(DEFAULT_AUTHORITIES);
    }
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
    let properties =
        answer.of(owner).filter_map(|record| if let Data::Caa(it) = &record.data { Some(it) } else { None });
    let properties: Vec<&Caa> = properties.collect();
    if properties.is_empty() {
        return Ok(None);
    }
    let is_unknown = |property: &Caa| property.flags & CRITICAL != 0 && !KNOWN_TAGS.contains(&&*property.tag);
    let (unknown, known): (Vec<&Caa>, Vec<&Caa>) = properties.into_iter().partition(|it| is_unknown(it));
    let issue: Vec<&Caa> = known.into_iter().filter(|property| property.tag == "issue").collect();
    let is_allowed = |property: &&Caa| {
        authorities.iter().any(|name| issuer(&property.value).eq_ignore_ascii_case(name.as_bytes()))
    };
    let (blocking, remedy) = if !unknown.is_empty() {
        (unknown, "remove these records, which certificate authorities do not know".to_owned())
    } else if issue.is_empty() || issue.iter().any(is_allowed) {
        return Ok(Some(Finding::RIGHT));
    } else {
        (issue, format!("add the CAA record 0 issue \"{}\" there", authorities[0]))
    };
    let shown = list(blocking);
    let message = format!(
        "The record is correct, but the CAA records of {owner} block the certificate ({shown}): {remedy}."
    );
    Ok(Some(Finding::new(DomainEvent::Blocked, CAA_BLOCKS, message)))
}

/// The authority that an `issue` property names; empty for none. Parameters follow it (RFC 8659, section 4.2).
fn issuer(value: &[u8]) -> &[u8] {
    value.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii()
}

/// The name that an authority has in CAA records.
fn caa_name(authority: &str) -> &str {
    // help.zerossl.com, 'Invalid CAA Records'
    if authority.eq_ignore_ascii_case("zerossl.com") { "sectigo.com" } else { authority }
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
        assert_eq!(check_caa(WWW, &["ZeroSSL.com".to_owned()], &server.dns()), Finding::RIGHT);
    }

    #[test]
    fn other_authorities_block() {
        for (value, shown) in [
            ("other.example", "0 issue \"other.example\""),
            (";", "0 issue \";\""),
            ("", "0 issue \"\""),
            ("notletsencrypt.org", "0 issue \"notletsencrypt.org\""),
            ("x.letsencrypt.org", "0 issue \"x.letsencrypt.org\""),
        ] {
            assert_eq!(
                ask(vec![("example.com", issue(value))]),
                format!(
                    "The record is correct, but the CAA records of example.com block the certificate ({shown}): add the \
                     CAA record 0 issue \"letsencrypt.org\" there."
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
    fn wildcards_and_known_tags_do_not_block() {
        for tag in ["issuewild", "issuemail", "iodef"] {
            assert_eq!(ask(vec![(WWW, Record::Caa(128, tag, "other.example"))]), "", "{tag}");
        }
        assert_eq!(ask(vec![(WWW, Record::Caa(128, "ISSUE", "letsencrypt.org"))]), "");
        assert_eq!(ask(vec![(WWW, Record::Caa(1, "tbs", "unknown"))]), "");
    }

    #[test]
    fn unknown_critical_tag_blocks() {
        let records = vec![(WWW, issue("letsencrypt.org")), (WWW, Record::Caa(128, "tbs", "un\x1bknown"))];
        assert_eq!(
            ask(records),
            "The record is correct, but the CAA records of www.example.com block the certificate (128 tbs \
             \"un\\027known\"): remove these records, which certificate authorities do not know."
        );
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
