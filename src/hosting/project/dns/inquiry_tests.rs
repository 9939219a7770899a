//! Questions to servers that behave well, and the search for authoritative servers.

use std::net::{IpAddr, SocketAddr, UdpSocket};

use super::tests::{AsDns, Asked, Record, Records, Server, WWW, respond, with_flags, www};
use super::{Dns, DnsError, RecordType};

fn addresses(dns: &Dns) -> Result<Vec<IpAddr>, DnsError> {
    dns.authorities(WWW)?.ask(WWW, RecordType::A)?.addresses()
}

#[test]
fn records_are_asked_of_the_given_server_which_may_ask_others() {
    let server = Server::of(www([192, 0, 2, 7]));
    assert_eq!(
        addresses(&server.dns()).unwrap(),
        [IpAddr::from([192, 0, 2, 7])]
    );
    let asked = Asked {
        name: WWW.to_owned(),
        kind: RecordType::A,
        resolve: true,
        over_tcp: false,
    };
    assert_eq!(server.asked(), [asked]);
}

#[test]
fn name_without_records_and_name_that_is_not_there_have_none() {
    let server = Server::of(vec![("a.www.example.com", Record::A([192, 0, 2, 7]))]);
    assert_eq!(addresses(&server.dns()).unwrap(), Vec::<IpAddr>::new());
    let server = Server::of(Vec::new());
    assert_eq!(addresses(&server.dns()).unwrap(), Vec::<IpAddr>::new());
}

#[test]
fn resolver_that_does_not_recurse_is_told_as_that() {
    const RECURSIVE: u16 = 0x80;
    const REFUSED: u16 = 5;
    let ask = |records: Records, flags: u16| {
        let server = Server::datagrams(move |query| {
            vec![with_flags(respond(query, &records), |to| {
                *to = *to & !0x0480 | flags;
            })]
        });
        addresses(&server.dns())
    };
    let empty = || vec![("a.www.example.com", Record::A([192, 0, 2, 7]))];
    for flags in [0, REFUSED] {
        let error = ask(empty(), flags).unwrap_err();
        let said = " does not recurse, as a resolver must; it knows its own zones only";
        assert!(error.to_string().ends_with(said), "{error}");
    }
    assert_eq!(ask(empty(), RECURSIVE).unwrap(), Vec::<IpAddr>::new());
    let refused = ask(empty(), RECURSIVE | REFUSED).unwrap_err();
    assert!(
        refused.to_string().ends_with(" refuses to answer"),
        "{refused}"
    );
    assert_eq!(
        ask(www([192, 0, 2, 7]), 0).unwrap().len(),
        1,
        "some forwarders do not set the flag"
    );
}

#[test]
fn aliases_are_followed_within_the_answer() {
    let alias = vec![
        (WWW, Record::Cname("a.example.net")),
        ("a.example.net", Record::Cname("b.example.net")),
        ("b.example.net", Record::A([192, 0, 2, 7])),
    ];
    assert_eq!(
        addresses(&Server::of(alias).dns()).unwrap(),
        [IpAddr::from([192, 0, 2, 7])]
    );
}

/// A resolver, and two authorities of example.com on a port of their own.
fn system(of_first: Records, of_second: Records) -> (Server, [Server; 2], Dns) {
    let second = Server::at("127.0.0.3:0".parse().unwrap(), of_second);
    let port = second.address.port();
    let first = Server::at(SocketAddr::new([127, 0, 0, 2].into(), port), of_first);
    let resolver = Server::of(vec![
        ("example.com", Record::Ns("ns1.example.net")),
        ("example.com", Record::Ns("ns2.example.net")),
        ("ns1.example.net", Record::A([127, 0, 0, 2])),
        ("ns1.example.net", Record::Aaaa("2001:db8::2")),
        ("ns2.example.net", Record::A([127, 0, 0, 3])),
        (WWW, Record::A([192, 0, 2, 99])),
    ]);
    let dns = Dns::of_system(vec![resolver.address], port);
    (resolver, [first, second], dns)
}

#[test]
fn authorities_are_found_by_the_resolver_and_asked_without_recursion() {
    let (resolver, [first, second], dns) = system(www([192, 0, 2, 7]), Vec::new());
    assert_eq!(addresses(&dns).unwrap(), [IpAddr::from([192, 0, 2, 7])]);
    let asked = Asked {
        name: WWW.to_owned(),
        kind: RecordType::A,
        resolve: false,
        over_tcp: false,
    };
    assert_eq!((first.asked(), second.asked()), (vec![asked], vec![]));
    let questions = |(name, kind): (&str, RecordType)| Asked {
        name: name.to_owned(),
        kind,
        resolve: true,
        over_tcp: false,
    };
    let names = ["ns1.example.net", "ns2.example.net"];
    let mut expected = vec![
        questions((WWW, RecordType::NS)),
        questions(("example.com", RecordType::NS)),
    ];
    expected.extend(
        [RecordType::A, RecordType::AAAA]
            .iter()
            .flat_map(|kind| names.map(|name| questions((name, *kind)))),
    );
    assert_eq!(resolver.asked(), expected);
}

#[test]
fn answer_of_who_is_no_authority_does_not_count() {
    let (_resolver, [first, second], _) = system(Vec::new(), www([192, 0, 2, 7]));
    let port = second.address.port();
    drop(first);
    let lame = |socket: &UdpSocket, query: &[u8], client| {
        let response = with_flags(respond(query, &www([192, 0, 2, 66])), |flags| {
            *flags &= !0x0400;
        });
        socket.send_to(&response, client).unwrap();
    };
    let first = Server::with("127.0.0.4:0".parse().unwrap(), lame, |_, _| ());
    let servers = vec![first.address, SocketAddr::new([127, 0, 0, 3].into(), port)];
    let dns = Dns::of_system(Vec::new(), 0);
    let mut both = dns.servers(servers, false);
    let found: Vec<IpAddr> = both.ask(WWW, RecordType::A).unwrap().addresses().unwrap();
    assert_eq!(found, [IpAddr::from([192, 0, 2, 7])]);
    // A server that failed is no longer asked first.
    both.ask(WWW, RecordType::A).unwrap();
    assert_eq!((first.asked().len(), second.asked().len()), (1, 2));

    let alone = dns
        .servers(vec![first.address], false)
        .ask(WWW, RecordType::A)
        .unwrap_err();
    assert!(
        alone
            .to_string()
            .ends_with(" is not an authority of www.example.com"),
        "{alone}"
    );
}

#[test]
fn zone_without_servers_that_can_be_found_is_told() {
    let nobody = Server::of(Vec::new());
    let dns = Dns::of_system(vec![nobody.address], 53);
    let error = addresses(&dns).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no name server with an address is named for www.example.com"
    );

    let without_address = Server::of(vec![("example.com", Record::Ns("ns1.example.net"))]);
    let error = addresses(&Dns::of_system(vec![without_address.address], 53)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "no name server with an address is named for example.com"
    );
}

#[test]
fn parents_are_asked_if_the_resolver_fails_for_the_name_itself_only() {
    let failing = |fails: fn(&str) -> bool| {
        let server = Server::datagrams(move |query| {
            let response = respond(query, &vec![("example.com", Record::Ns("ns1.example.net"))]);
            let name = simple_dns::Packet::parse(query).unwrap().questions[0]
                .qname
                .to_string();
            vec![with_flags(response, |flags| {
                *flags = if fails(&name) {
                    *flags & !15 | 2
                } else {
                    *flags
                }
            })]
        });
        let dns = Dns::of_system(vec![server.address], 53);
        let error = dns.authorities(WWW).err().unwrap();
        let mut names: Vec<String> = server.asked().into_iter().map(|asked| asked.name).collect();
        names.dedup();
        (error, names)
    };
    let (error, names) = failing(|name| name == WWW);
    assert!(
        error
            .to_string()
            .starts_with("no name server with an address"),
        "{error}"
    );
    assert_eq!(names, [WWW, "example.com", "ns1.example.net"]);
    let (error, names) = failing(|_| true);
    assert!(
        error.to_string().ends_with(" failed to answer (SERVFAIL)"),
        "{error}"
    );
    assert_eq!(names, [WWW, "example.com"]);
}
