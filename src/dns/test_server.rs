//! A DNS server for the tests within the crate and, since it needs nothing of the crate, for those of the executable.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use simple_dns::rdata::{AAAA, CAA, CNAME, MX, RData, TXT};
use simple_dns::{CLASS, Name, Packet, PacketFlag, QTYPE, RCODE, ResourceRecord, TYPE};

/// A record, as tests write it.
#[derive(Clone)]
pub enum Record {
    A([u8; 4]),
    Aaaa(&'static str),
    Cname(&'static str),
    Mx(&'static str),
    Txt(String),
    Caa(u8, &'static str, &'static str),
}

/// What a server knows: names, and their records.
pub type Records = Vec<(&'static str, Record)>;

impl Record {
    fn data(&self) -> RData<'_> {
        let name = |name| Name::new(name).unwrap();
        match self {
            Self::A(address) => RData::A(Ipv4Addr::from(*address).into()),
            Self::Aaaa(address) => RData::AAAA(AAAA::from(address.parse::<Ipv6Addr>().unwrap())),
            Self::Cname(target) => RData::CNAME(CNAME(name(target))),
            Self::Mx(exchange) => RData::MX(MX { preference: 10, exchange: name(exchange) }),
            Self::Txt(text) => RData::TXT(TXT::new().with_string(text).unwrap()),
            Self::Caa(flag, tag, value) => RData::CAA(CAA {
                flag: *flag,
                tag: (*tag).try_into().unwrap(),
                value: value.as_bytes().into(),
            }),
        }
    }
}

/// The response of a server that is the authority of these records, and follows aliases among them.
pub fn respond(query: &[u8], records: &Records) -> Vec<u8> {
    let mut packet = Packet::parse(query).unwrap().into_reply();
    packet.set_flags(PacketFlag::AUTHORITATIVE_ANSWER);
    let question = packet.questions[0].clone();
    let mut name = question.qname.to_string();
    // More rounds than a chain may have, so that a circle can be sent.
    for _ in 0..12 {
        let own: Vec<_> = records.iter().filter(|(owner, _)| owner.eq_ignore_ascii_case(&name)).collect();
        let is_asked = |record: &Record| question.qtype == QTYPE::TYPE(record.data().type_code());
        let asked: Vec<_> = own.iter().filter(|(_, record)| is_asked(record)).collect();
        let answers = if asked.is_empty() {
            own.iter().filter(|(_, record)| matches!(record, Record::Cname(_))).take(1).collect()
        } else {
            asked
        };
        for (owner, record) in &answers {
            packet.answers.push(ResourceRecord::new(
                Name::new(owner).unwrap(),
                CLASS::IN,
                3600,
                record.data(),
            ));
        }
        match &answers[..] {
            [(_, Record::Cname(target))] if question.qtype != QTYPE::TYPE(TYPE::CNAME) => {
                name = target.to_string();
            }
            _ => break,
        }
    }
    let below = |owner: &str| owner.eq_ignore_ascii_case(&name) || owner.ends_with(&format!(".{name}"));
    if !records.iter().any(|(owner, _)| below(owner)) {
        *packet.rcode_mut() = RCODE::NameError;
    }
    packet.build_bytes_vec_compressed().unwrap()
}

/// Changes the flags and the code in the head of a response.
pub fn with_flags(mut response: Vec<u8>, change: impl Fn(&mut u16)) -> Vec<u8> {
    let mut flags = u16::from_be_bytes([response[2], response[3]]);
    change(&mut flags);
    response[2..4].copy_from_slice(&flags.to_be_bytes());
    response
}

/// A question as it came to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    pub name: String,
    pub kind: TYPE,
    pub resolve: bool,
}

/// A DNS server. It ends when it is dropped.
pub struct Server {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    stopping: Arc<AtomicBool>,
}

impl Server {
    /// A server of these records.
    pub fn of(records: Records) -> Self {
        Self::responding(move |query| respond(query, &records))
    }

    /// A server that answers with whatever `make` returns.
    pub fn responding(mut make: impl FnMut(&[u8]) -> Vec<u8> + Send + 'static) -> Self {
        Self::with(move |stream, query| write(stream, &make(query)))
    }

    pub fn with(mut answer: impl FnMut(&mut TcpStream, &[u8]) + Send + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        let server = Self { address, asked: Arc::default(), stopping: Arc::default() };
        let (asked, stopping) = (Arc::clone(&server.asked), Arc::clone(&server.stopping));
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept()
                && !stopping.load(Ordering::SeqCst)
            {
                let mut length = [0; 2];
                stream.read_exact(&mut length).unwrap();
                let mut query = vec![0; u16::from_be_bytes(length).into()];
                stream.read_exact(&mut query).unwrap();
                note(&asked, &query);
                answer(&mut stream, &query);
            }
        });
        server
    }

    /// The questions so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stopping.store(true, Ordering::SeqCst);
        // Wakes its thread.
        let _ = TcpStream::connect(self.address);
    }
}

fn note(asked: &Mutex<Vec<Asked>>, query: &[u8]) {
    if let Ok(packet) = Packet::parse(query) {
        let QTYPE::TYPE(kind) = packet.questions[0].qtype else { panic!() };
        let name = packet.questions[0].qname.to_string();
        let resolve = packet.has_flags(PacketFlag::RECURSION_DESIRED);
        asked.lock().unwrap().push(Asked { name, kind, resolve });
    }
}

/// Sends a message.
pub fn write(stream: &mut TcpStream, message: &[u8]) {
    let length = u16::try_from(message.len()).unwrap();
    // The client may have gone.
    let _ = stream.write_all(&[&length.to_be_bytes(), message].concat());
}
