//! The records of a DNS response: plain values, checked and bounded.

use std::net::IpAddr;

use simple_dns::rdata::{CAA, RData};
use simple_dns::{Name, ResourceRecord};

use super::{DnsError, RecordType};

/// The most aliases in a chain.
const MAX_ALIASES: usize = 8;

/// The records in an answer: those of the name in the question and, if it is an alias, those of its targets. If there
/// are none, the name does not exist or has no record of that type.
#[derive(Debug)]
pub(crate) struct DnsAnswer {
    /// The name in the question.
    pub name: String,
    pub records: Vec<AnswerRecord>,
}

/// A record of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct AnswerRecord {
    /// The owner of the record, as [`text`] writes it.
    pub name: String,
    data: RData<'static>,
}

impl DnsAnswer {
    /// The records of the name itself.
    pub fn own(&self) -> impl Iterator<Item = &AnswerRecord> {
        self.of(&self.name)
    }

    /// The records of one name.
    pub fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a AnswerRecord> {
        self.records
            .iter()
            .filter(move |record| record.name == name)
    }

    /// Returns the canonical name: the end of the chain of aliases in this answer (RFC 1034, section 3.6.2).
    ///
    /// # Errors
    /// If the chain has more than eight aliases, or is a loop.
    pub fn canonical(&self) -> Result<String, DnsError> {
        let mut name = self.name.clone();
        for _ in 0..=MAX_ALIASES {
            let Some(target) = self.of(&name).find_map(AnswerRecord::alias) else {
                return Ok(name);
            };
            name = target;
        }
        Err(DnsError(format!(
            "the CNAME records of {} lead in a circle, or to more than {MAX_ALIASES} names",
            self.name
        )))
    }

    /// Returns the addresses of the canonical name.
    ///
    /// # Errors
    /// If the chain of aliases is too long, or is a loop.
    pub fn addresses(&self) -> Result<Vec<IpAddr>, DnsError> {
        Ok(self
            .of(&self.canonical()?)
            .filter_map(AnswerRecord::address)
            .collect())
    }
}

impl AnswerRecord {
    /// Copies a record out of its message.
    pub(super) fn of(record: &ResourceRecord) -> Self {
        Self {
            name: text(&record.name),
            data: record.rdata.clone().into_owned(),
        }
    }

    pub fn kind(&self) -> RecordType {
        self.data.type_code()
    }

    /// The target of an alias, as [`text`] writes it.
    pub fn alias(&self) -> Option<String> {
        if let RData::CNAME(target) = &self.data {
            Some(text(target))
        } else {
            None
        }
    }

    /// The name of a name server, as [`text`] writes it.
    pub fn name_server(&self) -> Option<String> {
        if let RData::NS(server) = &self.data {
            Some(text(server))
        } else {
            None
        }
    }

    /// The property of a CAA record (RFC 8659, section 4.1).
    pub fn caa(&self) -> Option<&CAA<'static>> {
        if let RData::CAA(property) = &self.data {
            Some(property)
        } else {
            None
        }
    }

    fn address(&self) -> Option<IpAddr> {
        match &self.data {
            RData::A(data) => Some(IpAddr::V4(data.address.into())),
            RData::AAAA(data) => Some(IpAddr::V6(data.address.into())),
            _ => None,
        }
    }
}

impl std::fmt::Display for AnswerRecord {
    /// Writes type and content as in a zone file, in graphic ASCII. For types that the service does not use, writes
    /// only the type.
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{:?}", self.kind())?;
        if let Some(address) = self.address() {
            write!(f, " {address}")?;
        } else if let Some(CAA { flag, tag, value }) = self.caa() {
            write!(
                f,
                " {flag} {} \"{}\"",
                escaped(tag.to_string().as_bytes()),
                escaped(value)
            )?;
        } else if let Some(name) = self.alias().or(self.name_server()) {
            write!(f, " {name}")?;
        }
        Ok(())
    }
}

/// Formats a name as in a zone file (RFC 1035, section 5.1): in lower case, without a trailing dot, and in graphic
/// ASCII, even if the server sent other bytes.
pub(super) fn text(name: &Name) -> String {
    let labels = name
        .as_bytes()
        .map(|label| escaped(label).replace('.', "\\.").replace(' ', "\\032"));
    labels.collect::<Vec<_>>().join(".").to_ascii_lowercase()
}

/// Formats bytes as graphic ASCII and spaces. Quotes and backslashes get a backslash; other bytes become `\DDD`.
fn escaped(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes {
        match byte {
            b'"' | b'\\' => text.extend(['\\', byte.into()]),
            b' '..=b'~' => text.push(byte.into()),
            _ => text += &format!("\\{byte:03}"),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use simple_dns::rdata::MX;

    use super::*;

    fn answer(aliases: &[(&str, &str)]) -> DnsAnswer {
        let alias = |(from, to): &(&str, &str)| AnswerRecord {
            name: from.to_string(),
            data: RData::CNAME(Name::new(to).unwrap().into_owned().into()),
        };
        DnsAnswer {
            name: "0".to_owned(),
            records: aliases.iter().map(alias).collect(),
        }
    }

    #[test]
    fn aliases_are_followed_to_the_eighth() {
        let names: Vec<String> = (0..10).map(|number| number.to_string()).collect();
        let chain: Vec<(&str, &str)> = names
            .windows(2)
            .map(|pair| (&*pair[0], &*pair[1]))
            .collect();
        assert_eq!(answer(&[]).canonical().unwrap(), "0");
        assert_eq!(answer(&chain[..8]).canonical().unwrap(), "8");
        assert!(answer(&chain[..9]).canonical().is_err());
    }

    #[test]
    fn names_are_graphic_whatever_they_hold() {
        let name = Name::new(r#"WwW.a\.b\"\\.\027[31m\200 c.example"#).unwrap();
        let text = text(&name);
        assert_eq!(text, r#"www.a\.b\"\\.\027[31m\200\032c.example"#);
        assert_eq!(Name::new(&text).unwrap(), name, "it can be asked for");
    }

    #[test]
    fn records_are_shown_as_in_a_zone_file() {
        let name = |text| Name::new(text).unwrap();
        let caa = CAA {
            flag: 128,
            tag: "issue".try_into().unwrap(),
            value: b"a\"b\x1b; c".into(),
        };
        for (data, shown) in [
            (RData::A(Ipv4Addr::new(192, 0, 2, 7).into()), "A 192.0.2.7"),
            (
                RData::AAAA("2001:db8::7".parse::<Ipv6Addr>().unwrap().into()),
                "AAAA 2001:db8::7",
            ),
            (RData::CNAME(name("a.example").into()), "CNAME a.example"),
            (RData::NS(name("ns.example").into()), "NS ns.example"),
            (RData::CAA(caa), r#"CAA 128 issue "a\"b\027; c""#),
            (
                RData::MX(MX {
                    preference: 1,
                    exchange: name("mail.example"),
                }),
                "MX",
            ),
        ] {
            assert_eq!(
                AnswerRecord {
                    name: String::new(),
                    data
                }
                .to_string(),
                shown
            );
        }
    }
}
