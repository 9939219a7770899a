//! Whether CAA records allow a certificate authority to issue a certificate for a domain (RFC 8659), to which account,
//! and after which validation (RFC 8657).

use super::finding::{CAA_ACCOUNT, CAA_BLOCKS, CAA_UNKNOWN, Finding, list};
use crate::dns::{Answer, Caa, Data, Dns, DnsError, RecordType, with_parents};
use crate::model::DomainEvent;

/// The names in CAA records of Let's Encrypt, and of Sectigo, which issues for `zerossl.com`.
const DEFAULT_AUTHORITIES: [&str; 2] = ["letsencrypt.org", "sectigo.com"];

/// The tags that every authority knows: RFC 8659, section 4, and RFC 9495.
const KNOWN_TAGS: [&str; 4] = ["issue", "issuewild", "iodef", "issuemail"];
/// An authority that does not know the tag must not issue (RFC 8659, section 4.1).
const CRITICAL: u8 = 128;

/// The ways of validation by which a proxy gets a certificate while it serves the name (RFC 8555, section 8.3; RFC 8737).
const METHODS: [&[u8]; 2] = [b"http-01", b"tls-alpn-01"];

/// What an `issue` property allows to the authorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Allowed {
    Nothing,
    /// A certificate for one account. Nobody knows which account the proxy has.
    Account,
    Certificate,
}

/// Looks up whether one of the authorities may issue a certificate for a name whose own record is right, which takes
/// at most 4 seconds. Without any, the default ones count.
pub(super) fn check_caa(name: &str, authorities: &[String], dns: &Dns) -> Finding {
    let mut authorities: Vec<&str> = authorities.iter().map(|authority| caa_name(authority)).collect();
    if authorities.is_empty() {
        authorities.extend(DEFAULT_AUTHORITIES);
    }
    let mut resolvers = dns.begin_short().resolvers();
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
    let allow = |what| issue.iter().any(|property| allowed(&property.value, authorities) == what);
    let (blocking, remedy) = if !unknown.is_empty() {
        (unknown, "remove these records, which certificate authorities do not know".to_owned())
    } else if issue.is_empty() || allow(Allowed::Certificate) {
        return Ok(Some(Finding::RIGHT));
    } else if allow(Allowed::Account) {
        let message = format!(
            "The record is correct. The CAA records of {owner} allow only one account to get the certificate ({}). \
             It is created if your proxy uses that account.",
            list(issue)
        );
        return Ok(Some(Finding::new(DomainEvent::Right, CAA_ACCOUNT, message)));
    } else if issue.iter().any(|property| is_of(issuer(&property.value), authorities)) {
        (issue, "allow the validation methods http-01 and tls-alpn-01 there, which proxies use".to_owned())
    } else {
        (issue, format!("add the CAA record 0 issue \"{}\" there", authorities[0]))
    };
    let shown = list(blocking);
    let message = format!(
        "The record is correct, but the CAA records of {owner} block the certificate ({shown}): {remedy}."
    );
    Ok(Some(Finding::new(DomainEvent::Blocked, CAA_BLOCKS, message)))
}

/// What the value of an `issue` property allows. A parameter that is given twice allows nothing (RFC 8657, section 3);
/// other parameters are for the authority alone (RFC 8659, section 4.2).
fn allowed(value: &[u8], authorities: &[&str]) -> Allowed {
    let given = |tag: &[u8]| -> Vec<&[u8]> {
        let parameters = value.split(|byte| *byte == b';').skip(1);
        let pairs = parameters.filter_map(|parameter| {
            let at = parameter.iter().position(|byte| *byte == b'=')?;
            Some((parameter[..at].trim_ascii(), parameter[at + 1..].trim_ascii()))
        });
        pairs.filter(|(name, _)| *name == tag).map(|(_, value)| value).collect()
    };
    let is_method = |method: &[u8]| METHODS.contains(&method.trim_ascii());
    match (&given(b"validationmethods")[..], &given(b"accounturi")[..]) {
        _ if !is_of(issuer(value), authorities) => Allowed::Nothing,
        ([methods], _) if !methods.split(|byte| *byte == b',').any(is_method) => Allowed::Nothing,
        ([] | [_], []) => Allowed::Certificate,
        ([] | [_], [_]) => Allowed::Account,
        _ => Allowed::Nothing,
    }
}

fn is_of(issuer: &[u8], authorities: &[&str]) -> bool {
    authorities.iter().any(|name| issuer.eq_ignore_ascii_case(name.as_bytes()))
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
    fn validation_methods_must_include_one_that_proxies_use() {
        for value in [
            "letsencrypt.org;validationmethods=http-01",
            "letsencrypt.org; validationmethods = dns-01 , tls-alpn-01",
            "letsencrypt.org; policy=ev; validationmethods=dns-01,http-01",
        ] {
            assert_eq!(ask(vec![(WWW, issue(value))]), "", "{value}");
        }
        for value in [
            "letsencrypt.org; validationmethods=dns-01",
            "letsencrypt.org; validationmethods=",
            "letsencrypt.org; validationmethods=http-01; validationmethods=http-01",
        ] {
            let message = ask(vec![(WWW, issue(value))]);
            assert!(message.contains("allow the validation methods http-01 and tls-alpn-01"), "{message}");
        }
        // One property that allows is enough.
        let both = vec![
            (WWW, issue("letsencrypt.org; validationmethods=dns-01")),
            (WWW, issue("sectigo.com; validationmethods=http-01")),
        ];
        assert_eq!(ask(both), "");
    }

    #[test]
    fn certificate_for_one_account_is_a_remark() {
        let account = "letsencrypt.org; accounturi=https://acme.example/acct/1";
        let check = |records| check_caa(WWW, &[], &Server::of(records).dns());
        let found = check(vec![("example.com", issue(account))]);
        let Finding { event: DomainEvent::Right, reason: Some(reason) } = found else { panic!("{found:?}") };
        assert_eq!(reason.code, CAA_ACCOUNT);
        assert!(reason.message.contains("of example.com allow") && reason.message.contains("acct/1"));
        let or_all = vec![(WWW, issue(account)), (WWW, issue("letsencrypt.org"))];
        assert_eq!(check(or_all), Finding::RIGHT);
        for value in [
            "letsencrypt.org; accounturi=a:1; accounturi=a:2",
            "letsencrypt.org; accounturi=a:1; validationmethods=dns-01",
            "other.example; accounturi=a:1",
        ] {
            assert_eq!(check(vec![(WWW, issue(value))]).event, DomainEvent::Blocked, "{value}");
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
