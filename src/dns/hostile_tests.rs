//! Name servers that work, and those that fail, lie, or break the rules: each question ends, with an error that tells why.

use std::io::{Read, Write};
use std::net::{IpAddr, TcpStream};
use std::sync::mpsc::channel;
use std::time::Duration;

use super::message::Question;
use super::tests::{Asked, Record, Server, WWW, respond, with_flags, write, www};
use super::{Dns, RecordType};
use crate::testing::{PATIENCE, Random};

const GOOD: [u8; 4] = [192, 0, 2, 7];
const FORGED: [u8; 4] = [192, 0, 2, 66];
const NO_ANSWER: &str = "the name server sent a response that does not answer the question";

/// Asks for the address. Fails if no answer comes at all.
fn ask(mut dns: Dns) -> Result<Vec<IpAddr>, String> {
    let (done, answer) = channel();
    std::thread::spawn(move || {
        let asked = dns.ask(WWW, RecordType::A);
        done.send(asked.map(|answer| answer.addresses().collect()))
    });
    answer.recv_timeout(PATIENCE).expect("the inquiry ends")
}

fn good() -> Result<Vec<IpAddr>, String> {
    Ok(vec![GOOD.into()])
}

/// The words of the error, without the server.
fn words(answer: Result<Vec<IpAddr>, String>) -> String {
    let text = answer.unwrap_err();
    text.split_whitespace()
        .filter(|word| !word.contains(|c: char| c.is_ascii_digit()))
        .collect::<Vec<_>>()
        .join(" ")
}

#[test]
fn resolver_is_asked_and_follows_aliases() {
    let server = Server::of(vec![
        (WWW, Record::Cname("a.example.net")),
        ("a.example.net", Record::Cname("b.example.net")),
        ("b.example.net", Record::A(GOOD)),
    ]);
    assert_eq!(ask(server.dns()), good());
    assert_eq!(server.asked(), [Asked { name: WWW.to_owned(), kind: RecordType::A, resolve: true }]);
}

#[test]
fn name_without_records_and_name_that_is_not_there_have_none() {
    for records in [vec![("a.www.example.com", Record::A(GOOD))], Vec::new()] {
        assert_eq!(ask(Server::of(records).dns()), Ok(Vec::new()));
    }
}

#[test]
fn silence_ends_with_the_deadline() {
    let server = Server::with(|stream, _| wait(stream));
    // That of one server, and that of all questions.
    for (whole, patience) in [(60_000, 20), (20, 60_000)] {
        let answer = ask(server.dns().within(whole, patience));
        assert_eq!(words(answer), "the name server did not answer in time");
    }
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
fn garbage_alone_is_an_error() {
    let server = Server::responding(|query| respond(query, &www(FORGED))[..20].to_vec());
    assert_eq!(words(ask(server.dns())), NO_ANSWER);
}

#[test]
fn compression_in_a_circle_is_no_answer() {
    // Pointers to themselves, to each other, forward, and to a name that leads back to the pointer.
    for pointers in
        [&[0xc0, 33][..], &[0xc0, 35, 0xc0, 33], &[0xc0, 200], &[1, b'a', 0xc0, 33], &[0xff, 0xff]]
    {
        let server = Server::responding(move |query| {
            let response = respond(query, &www(FORGED));
            assert_eq!(response[33..35], [0xc0, 12], "here the name of the first record begins");
            [&response[..33], pointers, &response[35..]].concat()
        });
        assert_eq!(words(ask(server.dns())), NO_ANSWER, "{pointers:?}");
    }
}

#[test]
fn refusals_and_failures_are_errors() {
    let expected = [
        (1, "the name server failed to answer (FormatError)"),
        (2, "the name server failed to answer (ServerFailure)"),
        (4, "the name server failed to answer (NotImplemented)"),
        (5, "the name server failed to answer (Refused)"),
        (9, "the name server failed to answer (NOTAUTH)"),
    ];
    for (code, expected) in expected {
        let response = move |query: &[u8]| {
            with_flags(respond(query, &www(FORGED)), |flags| *flags = *flags & !15 | code)
        };
        assert_eq!(words(ask(Server::responding(response).dns())), expected);
    }
}

#[test]
fn next_server_is_asked_if_one_fails() {
    let failing = Server::responding(|query| with_flags(respond(query, &www(FORGED)), |flags| *flags |= 2));
    let silent = Server::with(|stream, _| wait(stream));
    let working = Server::of(www(GOOD));
    let resolvers = vec![failing.address, silent.address, working.address];
    let mut dns = Dns::of(resolvers).within(60_000, 500);
    for _ in 0..3 {
        let answer = dns.ask(WWW, RecordType::A).unwrap();
        assert_eq!(answer.addresses().collect::<Vec<_>>(), [IpAddr::from(GOOD)]);
    }
    assert_eq!([failing.asked().len(), silent.asked().len(), working.asked().len()], [1, 1, 3]);
}

#[test]
fn longest_message_is_read() {
    let server = Server::responding(|query| {
        let mut response = respond(query, &vec![(WWW, Record::A(GOOD)); 512]);
        response.resize(65_535, 0);
        response
    });
    assert_eq!(ask(server.dns()).unwrap(), [IpAddr::from(GOOD); 512]);
}

/// Waits until the client has gone.
fn wait(stream: &mut TcpStream) {
    let _ = stream.read(&mut [0]);
}

#[test]
fn hanging_server_ends_with_the_deadline() {
    let expected = "the name server did not answer in time";
    // Nothing, half of the length, a length alone, and a part of the message. All wait at the same time.
    let servers = [0, 1, 2, 30].map(|part| {
        Server::with(move |stream, query| {
            let response = respond(query, &www(GOOD));
            let length = u16::try_from(response.len()).unwrap().to_be_bytes();
            stream.write_all(&[&length[..], &response].concat()[..part]).unwrap();
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
fn reset_connection_is_an_error_at_once() {
    let server = Server::with(|stream, _| {
        socket2::SockRef::from(&*stream).set_linger(Some(Duration::ZERO)).unwrap();
    });
    assert_eq!(
        words(ask(server.dns())),
        "the name server cannot be reached: Connection reset by peer (os error"
    );
}

#[test]
fn what_does_not_answer_is_an_error() {
    type Breaker = fn(&mut TcpStream, &[u8]);
    let breakers: [Breaker; 5] = [
        |_, _| (),
        |stream, _| write(stream, &[]),
        |stream, query| write(stream, &respond(query, &www(FORGED))[..30]),
        // Another id.
        |stream, query| write(stream, &[&[7, 7], &respond(query, &www(FORGED))[2..]].concat()),
        // Truncated.
        |stream, query| write(stream, &with_flags(respond(query, &www(FORGED)), |flags| *flags |= 0x0200)),
    ];
    for (number, breaker) in breakers.into_iter().enumerate() {
        let server = Server::with(breaker);
        let expected = "the name server sent a response that does not answer the question";
        assert_eq!(words(ask(server.dns())), expected, "breaker {number}");
    }
}

#[test]
fn mutated_responses_never_panic() {
    let question = Question::new(WWW, RecordType::A).unwrap();
    let query = &question.message;
    let records = vec![
        (WWW, Record::A(GOOD)),
        (WWW, Record::Aaaa("2001:db8::7")),
        (WWW, Record::Caa(0, "issue", "letsencrypt.org")),
        (WWW, Record::Mx("mail.example.com")),
        (WWW, Record::Txt("some text".to_owned())),
    ];
    let mut base =
        respond(query, &vec![(WWW, Record::Cname("a.example.com")), ("a.example.com", Record::A(GOOD))]);
    // All types of records in one answer, whatever was asked for.
    for kind in [RecordType::A, RecordType::AAAA, RecordType::CAA, RecordType::MX, RecordType::TXT] {
        let other = respond(&Question::new(WWW, kind).unwrap().message, &records);
        base.extend(&other[33..]);
        base[7] += 1;
    }
    assert!(question.read(&base).is_some());

    let mut random = Random::new();
    let mut counts = [0; 2];
    for _ in 0..20_000 {
        let mut message = base.clone();
        // Mostly after the question, so that the message is read to its end.
        let from = if random.below(8) == 0 { 0 } else { 33 };
        for _ in 0..=random.below(6) {
            let at = from + random.below(message.len() - from);
            match random.below(5) {
                0 => message[at] ^= 1 << random.below(8),
                1 => message[at] = [0, 0xc0, 0xff, 0x3f, 41][random.below(5)],
                2 => message.insert(at, random.below(256) as u8),
                3 => message.truncate(at + 1),
                _ => message[at] = random.below(256) as u8,
            }
            if message.len() <= from {
                break;
            }
        }
        let response = question.read(&message);
        counts[usize::from(response.is_some())] += 1;
        // Whatever was read can be shown.
        if let Some(response) = response {
            let _ = response.answer.addresses().count();
            response.answer.records.iter().for_each(|record| drop(record.to_string()));
        }
    }
    assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
}
