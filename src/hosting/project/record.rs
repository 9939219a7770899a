//! The DNS record to create for a domain.

use serde::Serialize;

use crate::project::suffix::zone_of;

/// The time for which resolvers may cache the record, in seconds.
const TTL: u32 = 3600;
/// The remark on the record of an apex domain.
const APEX: &str = "Not every DNS provider has ALIAS or ANAME records. If yours does not, create an A or AAAA \
    record for each address of the platform instead. Remove all other A and AAAA records of the name: a leftover AAAA record is a common mistake.";

/// The DNS record to create for a domain, such as `www 3600 CNAME petstore.sites.example.net` in the zone of
/// `example.com`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct DnsRecord {
    /// The zone of the record, such as `example.com`: the domain with these DNS settings at the provider.
    pub zone: String,
    /// `CNAME`, or `ALIAS or ANAME` for an apex; `type` in JSON.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The name within the zone, such as `www`; `@` for the apex.
    pub name: String,
    /// The platform host.
    pub value: String,
    /// The time for which resolvers may cache the record, in seconds: 3600.
    pub ttl: u32,
    /// Advice to read before creating the record; `None` if there is none.
    pub remark: Option<&'static str>,
}

impl DnsRecord {
    /// The record that points a name to the platform host. The name has A-labels in lower case.
    pub(crate) fn of(name: &str, platform_host: &str) -> Self {
        let zone = zone_of(name);
        let label = name
            .strip_suffix(zone)
            .and_then(|label| label.strip_suffix('.'));
        Self {
            zone: zone.to_owned(),
            kind: if label.is_none() {
                "ALIAS or ANAME"
            } else {
                "CNAME"
            },
            name: label.unwrap_or("@").to_owned(),
            value: platform_host.to_owned(),
            ttl: TTL,
            remark: label.is_none().then_some(APEX),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::project::suffix::is_apex;

    #[test]
    fn subdomain_gets_a_cname_with_its_labels() {
        for (name, zone, label) in [
            ("www.example.com", "example.com", "www"),
            ("a.b.example.co.uk", "example.co.uk", "a.b"),
            (
                "www.xn--85x722f.xn--55qx5d.cn",
                "xn--85x722f.xn--55qx5d.cn",
                "www",
            ),
            ("www.city.kawasaki.jp", "city.kawasaki.jp", "www"),
            ("www.pets.unknown-suffix", "pets.unknown-suffix", "www"),
        ] {
            let record = DnsRecord::of(name, "petstore.sites.example.net");
            let expected = DnsRecord {
                zone: zone.to_owned(),
                kind: "CNAME",
                name: label.to_owned(),
                value: "petstore.sites.example.net".to_owned(),
                ttl: 3600,
                remark: None,
            };
            assert_eq!(record, expected);
            assert!(!is_apex(name));
        }
    }

    #[test]
    fn apex_gets_an_alias_and_a_remark() {
        for name in [
            "example.com",
            "example.co.uk",
            "city.kawasaki.jp",
            "pets.unknown-suffix",
            "co.uk",
        ] {
            let record = DnsRecord::of(name, "petstore.sites.example.net");
            assert_eq!(
                (record.kind, &*record.name, &*record.zone),
                ("ALIAS or ANAME", "@", name)
            );
            assert!(
                record
                    .remark
                    .is_some_and(|remark| remark.starts_with("Not every DNS provider"))
            );
            assert!(is_apex(name));
        }
    }
}
