//! What is kept of a response: plain values, checked and bounded.

use std::net::IpAddr;

use simple_dns::Name;
use simple_dns::rdata::RData;

use super::{DnsError, RecordType};

/// The most aliases in a row.
const MAX_ALIASES: usize = 8;

/// The records in an answer: those of the name in the question and, if that is an alias, of its targets. Without
/// records, the name does not exist or has no record of that type.
#[derive(Debug)]
pub(crate) struct Answer {
    /// The name in the question.
    pub name: String,
    pub records: Vec<Record>,
}

/// A record of an answer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Record {
    /// The owner of the record, as [`text`] writes it.
    pub name: String,
    pub kind: RecordType,
    pub data: Data,
}

/// What a record says. Names are as [`text`] writes them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Data {
    Address(IpAddr),
    Alias(String),
    NameServer(String),
    Caa(Caa),
    /// A record whose content the service does not need.
    Other,
}

/// A property of RFC 8659, section 4.1. The tag is in lower case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Caa {
    pub flags: u8,
    pub tag: String,
    pub value: Vec<u8>,
}

impl Answer {
    /// The records of the name itself.
    pub fn own(&self) -> impl Iterator<Item = &Record> {
        self.of(&self.name)
    }

    /// The records of one name.
    pub fn of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Record> {
        self.records.iter().filter(move |record| record.name == name)
    }

    /// The name at the end of the aliases (RFC 1034, section 3.6.2), as far as this answer has them.
    ///
    /// # Errors
    /// [`DnsError::Loop`], if there are more than eight or they form a circle.
    pub fn canonical(&self) -> Result<&str, DnsError> {
        let mut name = self.name.as_str();
        for _ in 0..=MAX_ALIASES {
            match self.of(name).find_map(Record::alias) {
                Some(target) => name = target,
                None => return Ok(name),
            }
        }
        Err(DnsError::Loop { name: self.name.clone() })
    }

    /// The addresses at the end of the aliases.
    ///
    /// # Errors
    /// [`DnsError::Loop`], if the aliases do not end.
    pub fn addresses(&self) -> Result<impl Iterator<Item = IpAddr>, DnsError> {
        Ok(self.of(self.canonical()?).filter_map(Record::address))
    }
}

impl Data {
    /// Copies the content out of its message.
    pub(super) fn of(data: &RData) -> Self {
        match data {
            RData::A(data) => Self::Address(IpAddr::V4(data.address.into())),
            RData::AAAA(data) => Self::Address(IpAddr::V6(data.address.into())),
            RData::CNAME(target) => Self::Alias(text(target)),
            RData::NS(server) => Self::NameServer(text(server)),
            RData::CAA(property) => Self::Caa(Caa {
                flags: property.flag,
                tag: property.tag.to_string().to_ascii_lowercase(),
                value: property.value.to_vec(),
            }),
            _ => Self::Other,
        }
    }
}

impl Record {
    /// The target of an alias.
    pub fn alias(&self) -> Option<&str> {
        if let Data::Alias(target) = &self.data { Some(target) } else { None }
    }

    /// The address of an address record.
    pub fn address(&self) -> Option<IpAddr> {
        if let Data::Address(address) = &self.data { Some(*address) } else { None }
    }
}

impl std::fmt::Display for Record {
    /// Writes type and content as in a zone file, in graphic ASCII; only the type if the content is not kept.
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{:?}", self.kind)?;
        match &self.data {
            Data::Address(address) => write!(f, " {address}"),
            Data::Alias(name) | Data::NameServer(name) => write!(f, " {name}"),
            Data::Caa(property) => write!(f, " {property}"),
            Data::Other => Ok(()),
        }
    }
}

impl std::fmt::Display for Caa {
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{} {} \"{}\"", self.flags, escaped(self.tag.as_bytes()), escaped(&self.value))
    }
}

/// A name as in a zone file (RFC 1035, section 5.1): lower case, no trailing dot, and graphic ASCII whatever the
/// server sent.
pub(super) fn text(name: &Name) -> String {
    let labels = name.as_bytes().map(|label| escaped(label).replace('.', "\\.").replace(' ', "\\032"));
    labels.collect::<Vec<_>>().join(".").to_ascii_lowercase()
}

/// Bytes as graphic ASCII and spaces. Quotes and backslashes get a backslash; other bytes become `\DDD`.
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
    use super::*;

    fn answer(aliases: &[(&str, &str)]) -> Answer {
        let alias = |(from, to): &(&str, &str)| Record {
            name: from.to_string(),
            kind: RecordType::CNAME,
            data: Data::Alias(to.to_string()),
        };
        Answer { name: "0".to_owned(), records: aliases.iter().map(alias).collect() }
    }

    #[test]
    fn aliases_are_followed_to_the_eighth() {
        let names: Vec<String> = (0..10).map(|number| number.to_string()).collect();
        let chain: Vec<(&str, &str)> = names.windows(2).map(|pair| (&*pair[0], &*pair[1])).collect();
        assert_eq!(answer(&[]).canonical().unwrap(), "0");
        assert_eq!(answer(&chain[..8]).canonical().unwrap(), "8");
        assert!(matches!(answer(&chain[..9]).canonical(), Err(DnsError::Loop { .. })));
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
        let caa = Caa { flags: 128, tag: "issue".to_owned(), value: b"a\"b\x1b; c".to_vec() };
        for (kind, data, shown) in [
            (RecordType::A, Data::Address([192, 0, 2, 7].into()), "A 192.0.2.7"),
            (RecordType::AAAA, Data::Address("2001:db8::7".parse().unwrap()), "AAAA 2001:db8::7"),
            (RecordType::CNAME, Data::Alias("a.example".to_owned()), "CNAME a.example"),
            (RecordType::NS, Data::NameServer("ns.example".to_owned()), "NS ns.example"),
            (RecordType::CAA, Data::Caa(caa), r#"CAA 128 issue "a\"b\027; c""#),
            (RecordType::MX, Data::Other, "MX"),
        ] {
            assert_eq!(Record { name: String::new(), kind, data }.to_string(), shown);
        }
    }
}
