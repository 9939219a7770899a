//! Domains with right and wrong records, on a DNS server of the tests.

use super::finding::Finding;
use super::verify::*;
use crate::model::DomainEvent;
use crate::project::dns::tests::{AsDns, Record, Records, Server, WWW, respond, with_flags};
use crate::project::dns::{Dns, RecordType};

const HOST: &str = "petstore.sites.example.net";
const APEX: &str = "example.com";

fn status(name: &str, records: Records) -> Finding {
    verify(name, HOST, &Server::of(records).dns())
}

fn reason(found: Finding, event: DomainEvent) -> (String, String) {
    assert_eq!(found.event, event, "{found:?}");
    let reason = found.reason.unwrap();
    (reason.code, reason.message)
}

fn wrong(name: &str, records: Records) -> (String, String) {
    reason(status(name, records), DomainEvent::Wrong)
}

/// The platform host has two addresses of either kind.
fn apex(mut records: Records) -> Records {
    records.extend([
        (HOST, Record::Cname("balancer.example.net")),
        ("balancer.example.net", Record::A([192, 0, 2, 1])),
        ("balancer.example.net", Record::A([192, 0, 2, 2])),
        ("balancer.example.net", Record::Aaaa("2001:db8::1")),
    ]);
    records
}

#[test]
fn cname_to_the_platform_host_is_right_in_any_case() {
    assert_eq!(
        status(WWW, vec![(WWW, Record::Cname(HOST))]),
        Finding::RIGHT
    );
    let records = vec![(
        "WWW.Example.com",
        Record::Cname("PetStore.Sites.example.NET"),
    )];
    let server = Server::of(records);
    assert_eq!(
        verify(WWW, "Petstore.sites.example.net.", &server.dns()),
        Finding::RIGHT
    );
    // Records of the platform host are no conflict.
    let records = vec![
        (WWW, Record::Cname(HOST)),
        (HOST, Record::A([192, 0, 2, 1])),
    ];
    assert_eq!(status(WWW, records), Finding::RIGHT);
}

#[test]
fn nothing_is_not_found_yet() {
    let (code, message) = wrong(WWW, Vec::new());
    assert_eq!(code, "not_found_yet");
    assert_eq!(
        message,
        "www.example.com has no CNAME record yet. Create one with the value petstore.sites.example.net. DNS changes \
         can take up to 48 hours."
    );
    // The name exists, since a name below it has a record.
    let (code, _) = wrong(WWW, vec![("a.www.example.com", Record::A([192, 0, 2, 7]))]);
    assert_eq!(code, "not_found_yet");
}

#[test]
fn cname_to_elsewhere_is_a_wrong_target() {
    let (code, message) = wrong(WWW, vec![(WWW, Record::Cname("old.example.org"))]);
    assert_eq!(code, "wrong_target");
    assert_eq!(
        message,
        "The CNAME record of www.example.com points to old.example.org. It must point to petstore.sites.example.net."
    );
    let two = vec![
        (WWW, Record::Cname(HOST)),
        (WWW, Record::Cname("old.example.org")),
    ];
    assert_eq!(wrong(WWW, two).0, "wrong_target");
    let circle = vec![
        (WWW, Record::Cname("a.example.com")),
        ("a.example.com", Record::Cname(WWW)),
    ];
    assert_eq!(wrong(WWW, circle).0, "wrong_target");
}

#[test]
fn other_records_of_the_name_conflict() {
    let (code, message) = wrong(WWW, vec![(WWW, Record::A([192, 0, 2, 7]))]);
    assert_eq!(code, "conflicting_record");
    assert_eq!(
        message,
        "Delete this record of www.example.com: A 192.0.2.7. A name with a CNAME can't have others. If your DNS settings already point the record to petstore.sites.example.net, a proxy \
         such as Cloudflare's hides it: turn the proxy off for this record ('DNS only')."
    );
    for (record, shown) in [
        (Record::Aaaa("2001:db8::7"), "AAAA 2001:db8::7"),
        (Record::Mx("mail.example.com"), "MX"),
        (Record::Txt("text".to_owned()), "TXT"),
    ] {
        for (mut records, next) in [
            (vec![], "If your DNS"),
            (
                vec![(WWW, Record::Cname(HOST))],
                "Its CNAME record is right.",
            ),
        ] {
            records.push((WWW, record.clone()));
            let (code, message) = wrong(WWW, records);
            assert_eq!(code, "conflicting_record", "{shown}");
            let start = format!(
                "Delete this record of www.example.com: {shown}. A name with a CNAME can't have others. {next}"
            );
            assert!(message.starts_with(&start), "{message}");
        }
    }
}

#[test]
fn only_the_first_of_many_records_are_named() {
    let records = (1..=6)
        .map(|number| (WWW, Record::A([192, 0, 2, number])))
        .collect();
    let (_, message) = wrong(WWW, records);
    let start = "Delete these records of www.example.com: A 192.0.2.1, A 192.0.2.2, A 192.0.2.3, A 192.0.2.4 and 2 more. A name";
    assert!(message.starts_with(start), "{message}");
}

#[test]
fn apex_with_addresses_of_the_platform_host_is_right() {
    for own in [
        vec![Record::A([192, 0, 2, 1])],
        vec![Record::Aaaa("2001:db8::1")],
        vec![
            Record::A([192, 0, 2, 2]),
            Record::A([192, 0, 2, 1]),
            Record::Aaaa("2001:db8::1"),
        ],
    ] {
        let records = own.into_iter().map(|record| (APEX, record)).collect();
        assert_eq!(status(APEX, apex(records)), Finding::RIGHT);
    }
}

#[test]
fn apex_without_addresses_is_not_found_yet() {
    let (code, message) = wrong(APEX, apex(vec![(APEX, Record::Mx("mail.example.com"))]));
    assert_eq!(code, "not_found_yet");
    let second_way = ", or these records: A 192.0.2.1, A 192.0.2.2, AAAA 2001:db8::1.";
    assert!(
        message.contains(second_way) && message.contains("48 hours"),
        "{message}"
    );
    let (_, message) = wrong(APEX, Vec::new());
    assert!(
        message.contains("record with the value petstore.sites.example.net. DNS"),
        "{message}"
    );
}

#[test]
fn apex_with_other_addresses_is_a_wrong_target() {
    let other = vec![(APEX, Record::A([192, 0, 2, 9]))];
    let start = "Delete this record of example.com: A 192.0.2.9. The platform has no such address. Create an ALIAS or \
                 ANAME record with the value petstore.sites.example.net";
    for (records, known) in [
        (
            apex(other.clone()),
            ", or these records: A 192.0.2.1, A 192.0.2.2, AAAA 2001:db8::1.",
        ),
        (other.clone(), "."),
    ] {
        let (code, message) = wrong(APEX, records);
        assert_eq!(code, "wrong_target");
        assert!(
            message.starts_with(&format!("{start}{known} If your DNS settings")),
            "{message}"
        );
    }
    let (code, message) = wrong(
        APEX,
        apex([vec![(APEX, Record::A([192, 0, 2, 1]))], other].concat()),
    );
    assert_eq!(code, "wrong_target");
    assert_eq!(
        message,
        "Delete this record of example.com: A 192.0.2.9. The platform has no such address."
    );
}

#[test]
fn stray_aaaa_record_is_named_as_the_fault() {
    let records = vec![
        (APEX, Record::A([192, 0, 2, 1])),
        (APEX, Record::Aaaa("2001:db8::99")),
    ];
    let (code, message) = wrong(APEX, apex(records));
    assert_eq!(code, "wrong_target");
    assert!(
        message.ends_with(
            "AAAA 2001:db8::99. The platform has no such address, and IPv6 clients try it first."
        ),
        "{message}"
    );
}

#[test]
fn cname_at_an_apex_conflicts() {
    let (code, message) = wrong(
        APEX,
        apex(vec![(APEX, Record::Cname(HOST)), (APEX, Record::Soa)]),
    );
    assert_eq!(code, "conflicting_record");
    assert_eq!(
        message,
        "example.com has a CNAME record to petstore.sites.example.net. Delete it: an apex domain can't have one, because \
         it has NS and SOA records. Create an ALIAS or ANAME record with the value petstore.sites.example.net."
    );
}

#[test]
fn silent_server_leaves_the_status_unknown() {
    let server = Server::datagrams(|_| Vec::new());
    let found = verify(WWW, HOST, &server.dns().within(60, 20));
    let (_, reason) = reason(found, DomainEvent::Unknown);
    let start = format!(
        "Couldn't look up www.example.com: the name server {} did not answer in time. Trying again within 10 minutes.",
        server.address
    );
    assert!(reason.starts_with(&start), "{reason}");
}

#[test]
fn name_without_servers_is_told_what_its_owner_can_do() {
    let nobody = Server::of(Vec::new());
    let found = verify(WWW, HOST, &Dns::of_system(vec![nobody.address], 53));
    let (code, message) = reason(found, DomainEvent::Unknown);
    assert_eq!(code, "dns_unavailable");
    let advice = "no name server with an address is named for www.example.com. Trying again within 10 minutes. If this \
                  doesn't go away, check that the domain is registered";
    assert!(message.contains(advice), "{message}");
}

/// A server that cannot look up records of other types than these.
fn server_for(kinds: &'static [RecordType], records: Records) -> Server {
    Server::datagrams(move |query| {
        let response = respond(query, &records);
        let [.., high, low, _, _] = *query else {
            panic!()
        };
        let asked = u16::from_be_bytes([high, low]);
        vec![if kinds.iter().any(|kind| u16::from(*kind) == asked) {
            response
        } else {
            with_flags(response, |flags| *flags = *flags & !15 | 2)
        }]
    })
}

#[test]
fn wrong_target_is_found_even_if_a_resolver_cannot_follow_it() {
    let records = vec![(WWW, Record::Cname("old.example.org"))];
    let server = server_for(&[RecordType::CNAME], records);
    let found = verify(WWW, HOST, &server.dns());
    assert_eq!(reason(found, DomainEvent::Wrong).0, "wrong_target");
}

#[test]
fn what_cannot_be_looked_up_makes_no_right_record_wrong_or_unknown() {
    use RecordType::{A, AAAA, CNAME, MX, SOA};
    let [first, second] = [[192, 0, 2, 1], [192, 0, 2, 2]].map(Record::A);
    let right = || Record::Cname(HOST);
    for (kinds, name, records) in [
        (&[CNAME, SOA, A, AAAA][..], WWW, vec![(WWW, right())]),
        (&[CNAME], WWW, vec![(WWW, right())]),
        (&[CNAME], "pets.js.org", vec![("pets.js.org", right())]),
        (&[CNAME, SOA, A], APEX, apex(vec![(APEX, first.clone())])),
    ] {
        let server = server_for(kinds, records);
        assert_eq!(
            verify(name, HOST, &server.dns()),
            Finding::RIGHT,
            "{kinds:?}"
        );
    }
    // Nor does it make a name without a record wrong, or an address that the platform may have.
    let ipv6 = (APEX, Record::Aaaa("2001:db8::1"));
    for (kinds, name, records) in [
        (&[CNAME, SOA, A, MX][..], WWW, Vec::new()),
        (&[CNAME, SOA, AAAA], APEX, apex(vec![(APEX, second)])),
        (&[CNAME, SOA], APEX, apex(vec![ipv6])),
    ] {
        let server = server_for(kinds, records);
        reason(verify(name, HOST, &server.dns()), DomainEvent::Unknown);
    }
}

#[test]
fn subdomain_that_is_a_zone_needs_addresses_as_every_apex() {
    let zone = |mut records: Records| {
        records.extend([(WWW, Record::Soa), (WWW, Record::Ns("ns.example.net"))]);
        apex(records)
    };
    // Records that a zone may have at its apex are no conflict.
    let own = vec![
        (WWW, Record::A([192, 0, 2, 1])),
        (WWW, Record::Mx("mail.example.com")),
    ];
    assert_eq!(status(WWW, zone(own)), Finding::RIGHT);
    let (code, message) = wrong(WWW, zone(Vec::new()));
    assert_eq!(code, "not_found_yet");
    let start = "www.example.com has no addresses yet. It can't have a CNAME record, because it is the apex of a zone. \
                 Create an ALIAS or ANAME record with the value petstore.sites.example.net, or these records: A";
    assert!(message.starts_with(start), "{message}");
    let (code, message) = wrong(WWW, zone(vec![(WWW, Record::A([192, 0, 2, 9]))]));
    assert!(
        code == "wrong_target" && message.starts_with("Delete this record"),
        "{message}"
    );
    // A zone above or below the name does not make the name a zone.
    let records = vec![
        (APEX, Record::Soa),
        ("a.www.example.com", Record::Soa),
        (WWW, Record::Cname(HOST)),
    ];
    assert_eq!(status(WWW, records), Finding::RIGHT);
    // The target of a CNAME record may be a zone.
    assert_eq!(
        status(WWW, vec![(WWW, Record::Cname(HOST)), (HOST, Record::Soa)]),
        Finding::RIGHT
    );
}

#[test]
fn registered_name_that_is_no_zone_may_have_a_cname() {
    // `js.org` is a public suffix whose owner gives names away by CNAME records.
    assert_eq!(
        status("pets.js.org", vec![("pets.js.org", Record::Cname(HOST))]),
        Finding::RIGHT
    );
    let (code, message) = wrong(
        "pets.js.org",
        vec![("pets.js.org", Record::Cname("old.example.org"))],
    );
    assert!(
        code == "wrong_target" && message.ends_with("It must point to petstore.sites.example.net."),
        "{message}"
    );
}

#[test]
fn subdomain_with_the_addresses_of_the_platform_is_not_told_to_remove_them() {
    for own in [
        vec![Record::A([192, 0, 2, 1])],
        vec![
            Record::A([192, 0, 2, 1]),
            Record::A([192, 0, 2, 2]),
            Record::Aaaa("2001:db8::1"),
        ],
        vec![Record::Aaaa("2001:db8::1"), Record::Txt("text".to_owned())],
    ] {
        let (code, message) = wrong(
            WWW,
            apex(own.into_iter().map(|record| (WWW, record)).collect()),
        );
        assert_eq!(code, "conflicting_record");
        assert!(
            message.contains("the provider flattens it") && !message.contains("Delete"),
            "{message}"
        );
    }
    for own in [
        vec![Record::A([192, 0, 2, 9])],
        vec![Record::A([192, 0, 2, 1]), Record::A([192, 0, 2, 9])],
    ] {
        let (_, message) = wrong(
            WWW,
            apex(own.into_iter().map(|record| (WWW, record)).collect()),
        );
        assert!(!message.contains("flattens"), "{message}");
    }
}

#[test]
fn zone_that_the_provider_appended_to_the_value_is_named() {
    let said = |name, target| wrong(name, vec![(name, Record::Cname(target))]).1;
    for (name, zone, target) in [
        (WWW, "example.com", "petstore.sites.example.net.example.com"),
        (
            "a.b.example.com",
            "example.com",
            "petstore.sites.example.net.EXAMPLE.com",
        ),
        (
            "a.b.example.com",
            "b.example.com",
            "petstore.sites.example.net.b.example.com",
        ),
        (
            "pets.example.co.uk",
            "example.co.uk",
            "petstore.sites.example.net.example.co.uk",
        ),
    ] {
        let advice = format!(
            " The DNS provider appended the zone {zone} to the value: enter \
             'petstore.sites.example.net.', with the dot at its end."
        );
        assert!(
            said(name, target).ends_with(&advice),
            "{}",
            said(name, target)
        );
    }
    for other in [
        "petstore.sites.example.net.com",
        "petstore.sites.example.net.example.org",
        "old.example.com",
    ] {
        assert!(!said(WWW, other).contains("appended"), "{other}");
    }
}
