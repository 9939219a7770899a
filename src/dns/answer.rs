//! What is kept of a response: plain values, checked and bounded.

use std::net::IpAddr;

use simple_dns::rdata::{CAA, RData};
use simple_dns::{Name, ResourceRecord};

use super::RecordType;

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
    data: RData<'static>,
}

impl Answer {
    /// The records of the name itself.
    pub fn own(&self) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(|record| record.name == self.name)
    }

    /// The addresses at the end of the aliases.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.records.iter().filter_map(Record::address)
    }
}

impl Record {
    /// Copies a record out of its message.
    pub(super) fn of(record: &ResourceRecord) -> Self {
        Self { name: text(&record.name), data: record.rdata.clone().into_owned() }
    }

    pub fn kind(&self) -> RecordType {
        self.data.type_code()
    }

    /// The target of an alias, as [`text`] writes it.
    pub fn alias(&self) -> Option<String> {
        if let RData::CNAME(target) = &self.data { Some(text(target)) } else { None }
    }

    /// The property of a CAA record (RFC 8659, section 4.1).
    pub fn caa(&self) -> Option<&CAA<'static>> {
        if let RData::CAA(property) = &self.data { Some(property) } else { None }
    }

    fn address(&self) -> Option<IpAddr> {
        match &self.data {
            RData::A(data) => Some(IpAddr::V4(data.address.into())),
            RData::AAAA(data) => Some(IpAddr::V6(data.address.into())),
            _ => None,
        }
    }
}

impl std::fmt::Display for Record {
    /// Writes type and content as in a zone file. Of types that the service does not need, it writes the type alone.
    fn fmt(&self, f: &mut std::fmt::Formatter) -> std::fmt::Result {
        write!(f, "{:?}", self.kind())?;
        if let Some(address) = self.address() {
            write!(f, " {address}")?;
        } else if let Some(CAA { flag, tag, value }) = self.caa() {
            write!(f, " {flag} {} \"{}\"", tag.to_string().as_bytes().escape_ascii(), value.escape_ascii())?;
        }
        Ok(())
    }
}

/// A name in lower case, without a trailing dot, and in ASCII that can be shown, whatever the server sent.
pub(super) fn text(name: &Name) -> String {
    let labels = name.as_bytes().map(|label| label.escape_ascii().to_string().replace('.', "\\."));
    labels.collect::<Vec<_>>().join(".").to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, Ipv6Addr};

    use simple_dns::rdata::MX;

    use super::*;

    #[test]
    fn names_are_graphic_whatever_they_hold() {
        let name = Name::new(r#"WwW.a\.b\"\\.\027[31m\200 c.example"#).unwrap();
        assert_eq!(text(&name), r#"www.a\.b\"\\.\x1b[31m\xc8 c.example"#);
    }

    #[test]
    fn records_are_shown_in_graphic_ascii() {
        let name = |text| Name::new(text).unwrap();
        let caa = CAA { flag: 128, tag: "issue".try_into().unwrap(), value: b"a\"b\x1b; c".into() };
        for (data, shown) in [
            (RData::A(Ipv4Addr::new(192, 0, 2, 7).into()), "A 192.0.2.7"),
            (RData::AAAA("2001:db8::7".parse::<Ipv6Addr>().unwrap().into()), "AAAA 2001:db8::7"),
            (RData::CNAME(name("a.example").into()), "CNAME"),
            (RData::CAA(caa), r#"CAA 128 issue "a\"b\x1b; c""#),
            (RData::MX(MX { preference: 1, exchange: name("mail.example") }), "MX"),
        ] {
            assert_eq!(Record { name: String::new(), data }.to_string(), shown);
        }
    }
}
