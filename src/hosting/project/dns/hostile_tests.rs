//! Name servers that fail, lie, or break the rules: each question ends with an error that gives the reason.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream, UdpSocket};
use std::sync::mpsc::channel;
use std::time::{Duration, Instant};

use super::message::Question;
use super::tests::{AsDns, Record, Server, WWW, respond, with_flags, write, www};
use super::{Dns, DnsError, RecordType};
use petstore_base::testing::PATIENCE;
use petstore_base::testing::random::Random;

const GOOD: [u8; 4] = [192, 0, 2, 7];
const FORGED: [u8; 4] = [192, 0, 2, 66];
const NO_ANSWER: &str = "the name server sent a response that does not answer the question";

/// Asks for the addresses.
fn ask(dns: Dns) -> Result<Vec<IpAddr>, DnsError> {
    let (done, answer) = channel();
    std::thread::spawn(move || {
        let asked = dns.resolvers().ask(WWW, RecordType::A);
        done.send(asked.and_then(|answer| answer.addresses()))
    });
    answer.recv_timeout(PATIENCE).expect("the inquiry ends")
}

fn good() -> Result<Vec<IpAddr>, DnsError> {
    Ok(vec![GOOD.into()])
}

/// Returns the text of the error, without the server.
fn words(answer: Result<Vec<IpAddr>, DnsError>) -> String {
    let text = answer.unwrap_err().to_string();
    text.split_whitespace()
        .filter(|word| !word.contains(|c: char| c.is_ascii_digit()))
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn silence_ends_with_the_deadline() {
    let server = Server::datagrams(|_| Vec::new());
    assert_eq!(
        words(ask(server.dns().within(60, 20))),
        "the name server did not answer in time"
    );
    let begun = Instant::now();
    assert_eq!(
        words(ask(server.dns().within(60_000, 20))),
        "the name server did not answer in time"
    );
    let waited = begun.elapsed();
    assert!(
        waited >= Duration::from_millis(20 + 40),
        "the second try takes twice as long: {waited:?}"
    );
    // The deadline of the whole is shorter than the timeout of the first try.
    assert_eq!(
        words(ask(server.dns().within(20, 60_000))),
        "the name server did not answer in time"
    );
}

#[test]
fn closed_port_is_an_error_at_once() {
    // Nobody uses this port (tcpmux).
    let address = "127.0.0.1:1".parse().unwrap();
    assert_eq!(
        words(ask(Dns::new(Some(address)))),
        "the name server cannot be reached: Connection refused (os error"
    );
}

#[test]
fn late_answer_does_not_count_for_the_second_try() {
    let mut first = None;
    let server = Server::with(
        "127.0.0.1:0".parse().unwrap(),
        move |socket, query, client| match first.take() {
            None => first = Some((query.to_vec(), client)),
            Some((before, its_port)) => {
                for (query, to, address) in [
                    (&before[..], its_port, FORGED),
                    (&before[..], client, FORGED),
                    (query, client, GOOD),
                ] {
                    let _ = socket.send_to(&respond(query, &www(address)), to);
                }
                assert_ne!((client, &query[..2]), (its_port, &before[..2]));
            }
        },
        |_, _| (),
    );
    assert_eq!(ask(server.dns().within(60_000, 500)), good());
    assert_eq!(server.asked().len(), 2);
}

#[test]
fn what_does_not_answer_is_ignored() {
    let server = Server::datagrams(move |query| {
        let mut other_id = respond(query, &www(FORGED));
        other_id[1] ^= 1;
        vec![
            other_id,
            Vec::new(),
            vec![0xff; 40],
            respond(query, &www(GOOD)),
        ]
    });
    assert_eq!(ask(server.dns()), good());
}

#[test]
fn garbage_alone_is_an_error() {
    let server = Server::datagrams(|query| vec![respond(query, &www(FORGED))[..20].to_vec()]);
    assert_eq!(words(ask(server.dns().within(60_000, 500))), NO_ANSWER);
}

#[test]
fn answer_from_another_address_is_ignored() {
    let other = UdpSocket::bind("127.0.0.1:0").unwrap();
    let mut is_first = true;
    let server = Server::with(
        "127.0.0.1:0".parse().unwrap(),
        move |socket, query, client| {
            other
                .send_to(&respond(query, &www(FORGED)), client)
                .unwrap();
            if !std::mem::take(&mut is_first) {
                socket.send_to(&respond(query, &www(GOOD)), client).unwrap();
            }
        },
        |_, _| (),
    );
    assert_eq!(ask(server.dns().within(60_000, 500)), good());
    assert_eq!(server.asked().len(), 2);
}

#[test]
fn compression_in_a_circle_is_no_answer() {
    // Pointers to themselves, to each other, forward, and to a name that leads back to the pointer.
    for pointers in [
        &[0xc0, 33][..],
        &[0xc0, 35, 0xc0, 33],
        &[0xc0, 200],
        &[1, b'a', 0xc0, 33],
        &[0xff, 0xff],
    ] {
        let server = Server::datagrams(move |query| {
            let response = respond(query, &www(FORGED));
            assert_eq!(
                response[33..35],
                [0xc0, 12],
                "here the name of the first record begins"
            );
            vec![[&response[..33], pointers, &response[35..]].concat()]
        });
        assert_eq!(
            words(ask(server.dns().within(500, 500))),
            NO_ANSWER,
            "{pointers:?}"
        );
    }
}

#[test]
fn aliases_in_a_circle_are_an_error() {
    let server = Server::of(vec![
        (WWW, Record::Cname("a.example")),
        ("a.example", Record::Cname(WWW)),
    ]);
    let error = ask(server.dns()).unwrap_err();
    let expected = "the CNAME records of www.example.com lead in a circle, or to more than 8 names";
    assert_eq!(error.to_string(), expected);
}

#[test]
fn refusals_and_failures_are_errors_after_two_tries() {
    let expected = [
        (1, "the name server failed to answer (FormatError)"),
        (2, "the name server failed to answer (SERVFAIL)"),
        (4, "the name server failed to answer (NotImplemented)"),
        (5, "the name server refuses to answer"),
        (9, "the name server failed to answer (NOTAUTH)"),
    ];
    for (code, expected) in expected {
        let response = move |query: &[u8]| {
            with_flags(respond(query, &www(FORGED)), |flags| {
                *flags = *flags & !15 | code;
            })
        };
        let server = Server::datagrams(move |query| vec![response(query)]);
        assert_eq!(words(ask(server.dns())), expected);
        assert_eq!(server.asked().len(), 2);
    }
}

#[test]
fn next_server_is_asked_if_one_fails() {
    let failing = Server::datagrams(|query| {
        vec![with_flags(respond(query, &www(FORGED)), |flags| {
            *flags |= 2;
        })]
    });
    let silent = Server::datagrams(|_| Vec::new());
    let working = Server::of(www(GOOD));
    let dns = Dns::of_system(vec![failing.address, silent.address, working.address], 53)
        .within(60_000, 500);
    let mut servers = dns.resolvers();
    for _ in 0..3 {
        let answer = servers.ask(WWW, RecordType::A).unwrap();
        assert_eq!(answer.addresses().unwrap(), [IpAddr::from(GOOD)]);
    }
    assert_eq!(
        [
            failing.asked().len(),
            silent.asked().len(),
            working.asked().len()
        ],
        [1, 1, 3]
    );
}

#[test]
fn truncated_answer_is_requested_over_tcp() {
    let server = Server::truncating(|stream, query| write(stream, &respond(query, &www(GOOD))));
    assert_eq!(ask(server.dns()), good());
    assert_eq!(
        server
            .asked()
            .iter()
            .map(|asked| asked.over_tcp)
            .collect::<Vec<_>>(),
        [false, true]
    );
}

#[test]
fn longest_message_is_read() {
    let long = |query: &[u8]| {
        let mut records = www(GOOD);
        records.extend(vec![(WWW, Record::A(GOOD)); 511]);
        let mut response = respond(query, &records);
        response.resize(65_535, 0);
        response
    };
    let server = Server::truncating(move |stream, query| write(stream, &long(query)));
    assert_eq!(ask(server.dns()).unwrap(), [IpAddr::from(GOOD); 512]);
}

/// Waits until the client has gone.
fn wait(stream: &mut TcpStream) {
    let _ = stream.read(&mut [0]);
}

#[test]
fn hanging_tcp_ends_with_the_deadline() {
    let expected = "the name server did not answer in time";
    // Nothing, half of the length, only the length, and a part of the message. All run at the same time.
    let servers = [0, 1, 2, 30].map(|part| {
        Server::truncating(move |stream, query| {
            let response = respond(query, &www(GOOD));
            let length = u16::try_from(response.len()).unwrap().to_be_bytes();
            stream
                .write_all(&[&length[..], &response].concat()[..part])
                .unwrap();
            wait(stream);
        })
    });
    std::thread::scope(|scope| {
        for server in &servers {
            scope.spawn(|| assert_eq!(words(ask(server.dns().within(1_000, 60_000))), expected));
        }
    });
}

#[test]
fn drip_over_tcp_ends_with_the_deadline() {
    let server = Server::truncating(|stream, _| {
        stream.write_all(&[0xff, 0xff]).unwrap();
        stream
            .set_read_timeout(Some(Duration::from_millis(5)))
            .unwrap();
        // The client closes the connection at its deadline; to send everything would take minutes.
        while stream.write_all(&[0]).is_ok() && !matches!(stream.read(&mut [0]), Ok(0)) {}
    });
    let expected = "the name server did not answer in time";
    assert_eq!(words(ask(server.dns().within(1_000, 60_000))), expected);
}

#[test]
fn reset_tcp_is_an_error_at_once() {
    let server = Server::truncating(|stream, _| {
        socket2::SockRef::from(&*stream)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
    });
    assert_eq!(
        words(ask(server.dns())),
        "the name server cannot be reached: Connection reset by peer (os error"
    );
}

#[test]
fn broken_tcp_is_an_error() {
    type Breaker = fn(&mut TcpStream, &[u8]);
    let breakers: [Breaker; 4] = [
        |_, _| (),
        |stream, _| write(stream, &[]),
        |stream, query| write(stream, &respond(query, &www(FORGED))[..30]),
        // Truncated again.
        |stream, query| {
            write(
                stream,
                &with_flags(respond(query, &www(FORGED)), |flags| *flags |= 0x0200),
            );
        },
    ];
    for (number, breaker) in breakers.into_iter().enumerate() {
        let server = Server::truncating(breaker);
        let expected = "the name server sent a response that does not answer the question";
        assert_eq!(words(ask(server.dns())), expected, "breaker {number}");
    }
}

#[test]
fn mutated_responses_never_panic() {
    let question = Question::new(WWW, RecordType::A, true).unwrap();
    let records = vec![
        (WWW, Record::A(GOOD)),
        (WWW, Record::Aaaa("2001:db8::7")),
        (WWW, Record::Caa(0, "issue", "letsencrypt.org")),
        (WWW, Record::Mx("mail.example.com")),
        (WWW, Record::Txt("some text".to_owned())),
    ];
    let mut base = respond(
        &question.message,
        &vec![
            (WWW, Record::Cname("a.example.com")),
            ("a.example.com", Record::A(GOOD)),
        ],
    );
    // All types of records in one answer, for a question of each type.
    for kind in [
        RecordType::A,
        RecordType::AAAA,
        RecordType::CAA,
        RecordType::MX,
        RecordType::TXT,
    ] {
        let other = respond(&Question::new(WWW, kind, true).unwrap().message, &records);
        base.extend(&other[33..]);
        base[7] += 1;
    }
    assert!(question.read(&base).is_some());

    let mut random = Random::new(1);
    let mut counts = [0; 2];
    for _ in 0..20_000 {
        let mut message = base.clone();
        // Mostly after the question, so that the message is read to its end.
        let from = if random.index(8) == 0 { 0 } else { 33 };
        for _ in 0..=random.index(6) {
            let at = from + random.index(message.len() - from);
            match random.index(5) {
                0 => message[at] ^= 1 << random.index(8),
                1 => message[at] = [0, 0xc0, 0xff, 0x3f, 41][random.index(5)],
                2 => message.insert(at, random.index(256) as u8),
                3 => message.truncate(at + 1),
                _ => message[at] = random.index(256) as u8,
            }
            if message.len() <= from {
                break;
            }
        }
        let response = question.read(&message);
        counts[usize::from(response.is_some())] += 1;
        // Every response that is accepted can be followed and printed.
        if let Some(response) = response {
            let _ = response.answer.canonical();
            response
                .answer
                .records
                .iter()
                .for_each(|record| drop(record.to_string()));
        }
    }
    assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
}
