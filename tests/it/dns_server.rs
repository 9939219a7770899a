//! A DNS server with a zone that a test can change while it runs.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::{Arc, Mutex};

use simple_dns::rdata::{A, CAA, CNAME, RData};
use simple_dns::{CLASS, Name, Packet, PacketFlag, QTYPE, RCODE, ResourceRecord};

/// A record that the server has.
#[derive(Clone)]
pub enum Record {
    Address(Ipv4Addr),
    Alias(&'static str),
    /// A CAA record with the tag `issue`.
    Issue(&'static str),
}

/// A running server. It ends with the process of the tests.
pub struct DnsServer {
    pub address: SocketAddr,
    zone: Arc<Mutex<Vec<(&'static str, Record)>>>,
}

impl DnsServer {
    pub fn start() -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
        let (address, zone) = (socket.local_addr().unwrap(), Arc::new(Mutex::new(Vec::new())));
        let server = Self { address, zone: Arc::clone(&zone) };
        std::thread::spawn(move || {
            let mut buffer = [0; 512];
            while let Ok((length, from)) = socket.recv_from(&mut buffer) {
                let zone: Vec<_> = zone.lock().unwrap().clone();
                let _ = socket.send_to(&answer(&buffer[..length], &zone), from);
            }
        });
        server
    }

    /// Replaces the records.
    pub fn set(&self, records: &[(&'static str, Record)]) {
        *self.zone.lock().unwrap() = records.to_vec();
    }
}

fn answer(query: &[u8], zone: &[(&'static str, Record)]) -> Vec<u8> {
    let query = Packet::parse(query).unwrap();
    let mut reply = query.clone().into_reply();
    reply.set_flags(PacketFlag::AUTHORITATIVE_ANSWER);
    let question = &query.questions[0];
    let asked = question.qname.to_string();
    let own: Vec<_> = zone.iter().filter(|(name, _)| name.eq_ignore_ascii_case(&asked)).collect();
    if own.is_empty() {
        *reply.rcode_mut() = RCODE::NameError;
    }
    for (name, record) in own {
        let data = match record {
            Record::Address(address) => RData::A(A::from(*address)),
            Record::Alias(target) => RData::CNAME(CNAME(Name::new_unchecked(target))),
            Record::Issue(authority) => RData::CAA(CAA {
                flag: 0,
                tag: "issue".try_into().unwrap(),
                value: authority.as_bytes().into(),
            }),
        };
        if question.qtype == QTYPE::TYPE(data.type_code()) || matches!(record, Record::Alias(_)) {
            reply.answers.push(ResourceRecord::new(Name::new_unchecked(name), CLASS::IN, 60, data));
        }
    }
    reply.build_bytes_vec().unwrap()
}
