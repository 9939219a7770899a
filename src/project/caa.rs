//! Whether CAA records allow a certificate authority to issue a certificate for a domain (RFC 8659).

use super::verify::shortened;
use crate::dns::{Answer, Data, Dns, DnsError, RecordType};

/// The names in CAA records of Let's Encrypt, and of Sectigo, which issues for `zerossl.com`.
pub(super) const DEFAULT_AUTHORITIES: [&str; 2] = ["letsencrypt.org", "sectigo.com"];

/// The tags that every authority knows: RFC 8659, section 4, and RFC 9495.
const KNOWN_TAGS: [&str; 4] = ["issue", "issuewild", "iodef", "issuemail"];
/// An authority that does not know the tag must not issue (RFC 8659, section 4.1).
const CRITICAL: u8 = 128;
/// The most properties that a message names.
const MAX_NAMED: usize = 4;

/// What the CAA records of a name mean for its certificate.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CaaStatus {
    /// One of the authorities may issue.
    Allowed,
    /// None of the authorities may issue.
    Blocked(Blocked),
    /// DNS gave no answer, for the reason in this sentence.
    Unknown(String),
}

/// CAA records that allow none of the authorities to issue.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Blocked {
    /// The name that has the records.
    pub at: String,
    /// The properties as a zone file shows them, such as `0 issue "other.example"`, separated by commas.
    pub value: String,
    /// The property to add; `None` if the named properties must be removed instead.
    pub add: Option<String>,
}

impl std::fmt::Display for Blocked {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        let Self { at, value, add } = self;
        write!(f, "The CAA records of {at} block the certificate ({value}): ")?;
        match add {
            Some(add) => write!(f, "add the CAA record {add} there."),
            None => f.write_str("remove these records, which certificate authorities do not know."),
        }
    }
}

/// Looks up whether one of the authorities may issue a certificate for the name, which takes at most 4 seconds. The
/// authorities are given as CAA records name them.
pub(super) fn check_caa(name: &str, authorities: &[String], dns: &Dns) -> CaaStatus {
    let mut resolvers = dns.begin_short().resolvers();
    let mut at = name;
    while !at.is_empty() {
        let answer = resolvers.ask(at, RecordType::CAA);
        match answer.and_then(|answer| properties(&answer)) {
            Ok((_, properties)) if properties.is_empty() => {}
            // The closest set decides.
            Ok((owner, properties)) => {
                let blocked = judge(&properties, authorities);
                let blocked = blocked.map(|(value, add)| Blocked { at: owner, value, add });
                return blocked.map_or(CaaStatus::Allowed, CaaStatus::Blocked);
            }
            Err(error) => {
                let why = format!("The CAA records of {at} could not be looked up: {error}.");
                return CaaStatus::Unknown(why);
            }
        }
        at = at.split_once('.').map_or("", |(_, parent)| parent);
    }
    CaaStatus::Allowed
}

/// A property of a CAA record.
struct Property {
    flags: u8,
    tag: String,
    value: Vec<u8>,
    shown: String,
}

/// The properties at the end of the aliases, and the name that has them.
fn properties(answer: &Answer) -> Result<(String, Vec<Property>), DnsError> {
    let owner = answer.canonical()?;
    let property = |data: &Data| match data {
        Data::Caa { flags, tag, value } => {
            let shown = data.to_string().trim_start_matches("CAA ").to_owned();
            Some(Property { flags: *flags, tag: tag.clone(), value: value.clone(), shown })
        }
        _ => None,
    };
    Ok((owner.to_owned(), answer.of(owner).filter_map(property).collect()))
}

/// The properties that block the certificate and the one to add, or `None` if nothing blocks it.
fn judge(properties: &[Property], authorities: &[String]) -> Option<(String, Option<String>)> {
    let show = |properties: &[&Property]| {
        let first = properties.iter().take(MAX_NAMED).map(|property| shortened(&property.shown));
        first.collect::<Vec<_>>().join(", ")
    };
    let is_unknown =
        |property: &&Property| property.flags & CRITICAL != 0 && !KNOWN_TAGS.contains(&property.tag.as_str());
    let unknown: Vec<&Property> = properties.iter().filter(is_unknown).collect();
    if !unknown.is_empty() {
        return Some((show(&unknown), None));
    }
    let issue: Vec<&Property> = properties.iter().filter(|property| property.tag == "issue").collect();
    let allows = |property: &&Property| {
        authorities
            .iter()
            .any(|authority| issuer(&property.value).eq_ignore_ascii_case(caa_name(authority).as_bytes()))
    };
    if issue.is_empty() || issue.iter().any(allows) {
        return None;
    }
    let wanted = authorities.first().map_or(DEFAULT_AUTHORITIES[0], |authority| caa_name(authority));
    Some((show(&issue), Some(format!("0 issue \"{wanted}\""))))
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

    fn ask(records: Records) -> Option<Blocked> {
        let authorities = DEFAULT_AUTHORITIES.map(str::to_owned);
        match check_caa(WWW, &authorities, &Server::of(records).dns()) {
            CaaStatus::Allowed => None,
            CaaStatus::Blocked(blocked) => Some(blocked),
            CaaStatus::Unknown(why) => panic!("{why}"),
        }
    }

    #[test]
    fn without_records_nothing_blocks_and_all_parents_are_asked() {
        let server = Server::of(Vec::new());
        assert_eq!(check_caa(WWW, &[], &server.dns()), CaaStatus::Allowed);
        let asked: Vec<String> = server.asked().into_iter().map(|asked| asked.name).collect();
        assert_eq!(asked, ["www.example.com", "example.com", "com"]);
    }

    #[test]
    fn named_authority_may_issue() {
        for value in ["letsencrypt.org", "LetsEncrypt.ORG", " sectigo.com ; account=1", "letsencrypt.org;"] {
            assert_eq!(ask(vec![("example.com", issue(value))]), None, "{value}");
        }
        let several = vec![("example.com", issue(";")), ("example.com", issue("sectigo.com"))];
        assert_eq!(ask(several), None);
        let server = Server::of(vec![("example.com", issue("sectigo.com"))]);
        assert_eq!(check_caa(WWW, &["ZeroSSL.com".to_owned()], &server.dns()), CaaStatus::Allowed);
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
            let blocked = ask(vec![("example.com", issue(value))]).unwrap();
            assert_eq!((&*blocked.at, &*blocked.value), ("example.com", shown));
            assert_eq!(
                blocked.to_string(),
                format!(
                    "The CAA records of example.com block the certificate ({shown}): add the CAA record 0 issue \
                     \"letsencrypt.org\" there."
                )
            );
        }
    }

    #[test]
    fn closest_records_decide() {
        let com = ("com", issue("other.example"));
        assert_eq!(ask(vec![com.clone(), (WWW, issue("letsencrypt.org"))]), None);
        assert_eq!(ask(vec![com.clone()]).unwrap().at, "com");
        let both = vec![("example.com", issue("letsencrypt.org")), (WWW, issue("other.example"))];
        assert_eq!(ask(both).unwrap().at, WWW);
        // Records without `issue` restrict nothing, and are the closest all the same.
        assert_eq!(ask(vec![com, (WWW, Record::Caa(0, "iodef", "mailto:a@example.com"))]), None);
    }

    #[test]
    fn records_of_the_alias_decide() {
        let records = vec![
            (WWW, Record::Cname("a.example.net")),
            ("a.example.net", issue("other.example")),
            ("example.com", issue("letsencrypt.org")),
        ];
        assert_eq!(ask(records).unwrap().at, "a.example.net");
        // The parents of the alias do not count.
        let records = vec![(WWW, Record::Cname("a.example.net")), ("example.net", issue("other.example"))];
        assert_eq!(ask(records), None);
    }

    #[test]
    fn wildcards_and_known_tags_do_not_block() {
        for tag in ["issuewild", "issuemail", "iodef"] {
            assert_eq!(ask(vec![(WWW, Record::Caa(128, tag, "other.example"))]), None, "{tag}");
        }
        assert_eq!(ask(vec![(WWW, Record::Caa(128, "ISSUE", "letsencrypt.org"))]), None);
        assert_eq!(ask(vec![(WWW, Record::Caa(1, "tbs", "unknown"))]), None);
    }

    #[test]
    fn unknown_critical_tag_blocks() {
        let records = vec![(WWW, issue("letsencrypt.org")), (WWW, Record::Caa(128, "tbs", "un\x1bknown"))];
        let blocked = ask(records).unwrap();
        assert_eq!(
            blocked.to_string(),
            "The CAA records of www.example.com block the certificate (128 tbs \"un\\027known\"): remove these \
             records, which certificate authorities do not know."
        );
    }

    #[test]
    fn failing_server_leaves_the_status_unknown() {
        let server = Server::datagrams(|query| {
            vec![with_flags(respond(query, &Vec::new()), |flags| *flags = *flags & !15 | 2)]
        });
        let expected = format!(
            "The CAA records of www.example.com could not be looked up: the name server {} failed to answer (SERVFAIL).",
            server.address
        );
        assert_eq!(check_caa(WWW, &[], &server.dns()), CaaStatus::Unknown(expected));
    }

    #[test]
    fn long_values_are_shortened() {
        let long: &'static str = Box::leak("x".repeat(5000).into_boxed_str());
        let records = (0..6).map(|_| (WWW, issue(long))).collect();
        assert!(ask(records).unwrap().to_string().len() < 700);
    }
}
