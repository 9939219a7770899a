//! DNS servers of a test: with fixed records, with a zone that changes, and ones that break the rules.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use simple_dns::rdata::{AAAA, CAA, CNAME, MX, NS, RData, SOA, TXT};
use simple_dns::{CLASS, Name, Packet, PacketFlag, QTYPE, RCODE, ResourceRecord, TYPE};

/// A record, as tests write it.
#[derive(Clone)]
pub enum Record {
    A([u8; 4]),
    Aaaa(&'static str),
    Cname(&'static str),
    Ns(&'static str),
    Soa,
    Mx(&'static str),
    Txt(String),
    Caa(u8, &'static str, &'static str),
}

/// The names that a server knows, and their records.
pub type Records = Vec<(&'static str, Record)>;

impl Record {
    fn data(&self) -> RData<'_> {
        let name = |name| Name::new(name).unwrap();
        match self {
            Self::A(address) => RData::A(Ipv4Addr::from(*address).into()),
            Self::Aaaa(address) => RData::AAAA(AAAA::from(address.parse::<Ipv6Addr>().unwrap())),
            Self::Cname(target) => RData::CNAME(CNAME(name(target))),
            Self::Ns(server) => RData::NS(NS(name(server))),
            Self::Soa => RData::SOA(SOA {
                mname: name("ns.example.net"),
                rname: name("hostmaster.example.net"),
                serial: 1,
                refresh: 3600,
                retry: 3600,
                expire: 3600,
                minimum: 3600,
            }),
            Self::Mx(exchange) => RData::MX(MX {
                preference: 10,
                exchange: name(exchange),
            }),
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
        let own: Vec<_> = records
            .iter()
            .filter(|(owner, _)| owner.eq_ignore_ascii_case(&name))
            .collect();
        let is_asked = |record: &Record| question.qtype == QTYPE::TYPE(record.data().type_code());
        let asked: Vec<_> = own.iter().filter(|(_, record)| is_asked(record)).collect();
        let answers = if asked.is_empty() {
            own.iter()
                .filter(|(_, record)| matches!(record, Record::Cname(_)))
                .take(1)
                .collect()
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
    let below =
        |owner: &str| owner.eq_ignore_ascii_case(&name) || owner.ends_with(&format!(".{name}"));
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
    pub over_tcp: bool,
}

/// A DNS server on UDP and TCP. It ends when it is dropped.
pub struct Server {
    pub address: SocketAddr,
    asked: Arc<Mutex<Vec<Asked>>>,
    stopping: Arc<AtomicBool>,
}

impl Server {
    /// The authority of these records.
    pub fn of(records: Records) -> Self {
        Self::at((Ipv4Addr::LOCALHOST, 0).into(), records)
    }

    pub fn at(address: SocketAddr, records: Records) -> Self {
        let also = records.clone();
        Self::with(
            address,
            move |socket, query, client| {
                let _ = socket.send_to(&respond(query, &records), client);
            },
            move |stream, query| write(stream, &respond(query, &also)),
        )
    }

    /// A server that answers over UDP with whatever `make` returns.
    pub fn datagrams(mut make: impl FnMut(&[u8]) -> Vec<Vec<u8>> + Send + 'static) -> Self {
        Self::with(
            (Ipv4Addr::LOCALHOST, 0).into(),
            move |socket, query, client| {
                for datagram in make(query) {
                    let _ = socket.send_to(&datagram, client);
                }
            },
            |_, _| (),
        )
    }

    /// A server that truncates over UDP and runs `over_tcp` over TCP.
    pub fn truncating(over_tcp: impl FnMut(&mut TcpStream, &[u8]) + Send + 'static) -> Self {
        let truncated =
            |query: &[u8]| with_flags(respond(query, &Vec::new()), |flags| *flags |= 0x0200);
        Self::with(
            (Ipv4Addr::LOCALHOST, 0).into(),
            move |socket, query, client| drop(socket.send_to(&truncated(query), client)),
            over_tcp,
        )
    }

    pub fn with(
        address: SocketAddr,
        mut over_udp: impl FnMut(&UdpSocket, &[u8], SocketAddr) + Send + 'static,
        mut over_tcp: impl FnMut(&mut TcpStream, &[u8]) + Send + 'static,
    ) -> Self {
        let (socket, listener) = bind(address);
        let server = Self {
            address: socket.local_addr().unwrap(),
            asked: Arc::default(),
            stopping: Arc::default(),
        };
        let (asked, stopping) = (Arc::clone(&server.asked), Arc::clone(&server.stopping));
        std::thread::spawn(move || {
            let mut buffer = [0; 512];
            while let Ok((length, client)) = socket.recv_from(&mut buffer)
                && !stopping.load(Ordering::SeqCst)
            {
                note(&asked, &buffer[..length], false);
                over_udp(&socket, &buffer[..length], client);
            }
        });
        let (asked, stopping) = (Arc::clone(&server.asked), Arc::clone(&server.stopping));
        std::thread::spawn(move || {
            while let Ok((mut stream, _)) = listener.accept()
                && !stopping.load(Ordering::SeqCst)
            {
                let mut length = [0; 2];
                stream.read_exact(&mut length).unwrap();
                let mut query = vec![0; u16::from_be_bytes(length).into()];
                stream.read_exact(&mut query).unwrap();
                note(&asked, &query, true);
                over_tcp(&mut stream, &query);
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
        // Wakes both threads.
        let _ = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
            .unwrap()
            .send_to(&[], self.address);
        let _ = TcpStream::connect(self.address);
    }
}

/// Both kinds of sockets on one port.
fn bind(address: SocketAddr) -> (UdpSocket, TcpListener) {
    for _ in 0..100 {
        let listener = TcpListener::bind(address).unwrap();
        if let Ok(socket) = UdpSocket::bind(listener.local_addr().unwrap()) {
            return (socket, listener);
        }
    }
    panic!("no port is free for both UDP and TCP");
}

fn note(asked: &Mutex<Vec<Asked>>, query: &[u8], over_tcp: bool) {
    if let Ok(packet) = Packet::parse(query) {
        let QTYPE::TYPE(kind) = packet.questions[0].qtype else {
            panic!()
        };
        let name = packet.questions[0].qname.to_string();
        let resolve = packet.has_flags(PacketFlag::RECURSION_DESIRED);
        asked.lock().unwrap().push(Asked {
            name,
            kind,
            resolve,
            over_tcp,
        });
    }
}

/// Sends a message over TCP.
pub fn write(stream: &mut TcpStream, message: &[u8]) {
    let length = u16::try_from(message.len()).unwrap();
    // The client may have gone.
    let _ = stream.write_all(&[&length.to_be_bytes(), message].concat());
}

/// A server with a zone that a test can change while it runs. It ends when it is dropped.
pub struct ChangingZone {
    server: Server,
    zone: Arc<Mutex<Records>>,
}

impl ChangingZone {
    /// Starts one without records.
    pub fn start() -> Self {
        let zone = Arc::new(Mutex::new(Records::new()));
        let of_server = Arc::clone(&zone);
        let server =
            Server::datagrams(move |query| vec![respond(query, &of_server.lock().unwrap())]);
        Self { server, zone }
    }

    pub fn address(&self) -> SocketAddr {
        self.server.address
    }

    /// Replaces the records.
    pub fn set(&self, records: &[(&'static str, Record)]) {
        *self.zone.lock().unwrap() = records.to_vec();
    }
}
