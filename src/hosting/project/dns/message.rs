//! DNS messages (RFC 1035, section 4): encodes a question and decodes its response.

use simple_dns::{CLASS, Name, OPCODE, Packet, PacketFlag, QCLASS, QTYPE, RCODE};

use super::answer::{AnswerRecord, DnsAnswer, text};
use super::{DnsError, RecordType};

/// The most records in an answer. Real names do not have more of one type, and each record costs memory and time.
const MAX_RECORDS: u16 = 512;
/// The length of a message's head.
const HEAD: usize = 12;

/// One question, with a random id.
pub(super) struct Question<'a> {
    id: u16,
    name: Name<'a>,
    kind: RecordType,
    /// The encoded question.
    pub message: Vec<u8>,
}

/// The response to a question.
#[derive(Debug)]
pub(super) struct DnsResponse {
    /// The response did not fit into a datagram.
    pub truncated: bool,
    /// The server is an authority for the name.
    pub authoritative: bool,
    /// The server offers recursion (the flag RA, RFC 1035, section 4.1.1).
    pub recursive: bool,
    pub rcode: RCODE,
    pub answer: DnsAnswer,
}

impl<'a> Question<'a> {
    /// A question for the records of one type. `resolve` asks the server to query others (the flag RD).
    ///
    /// # Errors
    /// If DNS allows no such name, or the system gives no random id.
    pub fn new(name: &'a str, kind: RecordType, resolve: bool) -> Result<Self, DnsError> {
        let id = getrandom::u32()
            .map_err(|_| DnsError("the system gives no random bits".to_owned()))?
            as u16;
        let name = Name::new(name).map_err(|_| bad_name(name))?;
        let mut message = Packet::new_query(id);
        if resolve {
            message.set_flags(PacketFlag::RECURSION_DESIRED);
        }
        let (class, of_type) = (CLASS::IN.into(), QTYPE::TYPE(kind));
        message.questions.push(simple_dns::Question::new(
            name.clone(),
            of_type,
            class,
            false,
        ));
        let message = message
            .build_bytes_vec()
            .map_err(|_| bad_name(&text(&name)))?;
        Ok(Self {
            id,
            name,
            kind,
            message,
        })
    }

    /// Decodes a received message: only its question and its answers. Returns `None` if it is not a response to this
    /// question.
    pub fn read(&self, message: &[u8]) -> Option<DnsResponse> {
        let mut message = message.to_vec();
        let head = message.get_mut(..HEAD)?;
        let answers = u16::from_be_bytes([head[6], head[7]]);
        // More than one question would only cost memory.
        if head[4..6] != [0, 1] || answers > MAX_RECORDS {
            return None;
        }
        // Drop the other sections, and the answers too if the message is truncated, which may be in the middle of a
        // record.
        let truncated = head[2] & 0x02 != 0;
        head[if truncated { 6 } else { 8 }..].fill(0);
        let packet = Packet::parse(&message)
            .ok()
            .filter(|packet| self.is_answered_by(packet))?;
        let in_use = packet
            .answers
            .iter()
            .filter(|record| record.class == CLASS::IN && !record.cache_flush);
        Some(DnsResponse {
            truncated,
            authoritative: packet.has_flags(PacketFlag::AUTHORITATIVE_ANSWER),
            recursive: packet.has_flags(PacketFlag::RECURSION_AVAILABLE),
            rcode: packet.rcode(),
            answer: DnsAnswer {
                name: text(&self.name),
                records: in_use.map(AnswerRecord::of).collect(),
            },
        })
    }

    /// Returns whether the message has this id and exactly this question (RFC 5452, section 9.1).
    fn is_answered_by(&self, packet: &Packet) -> bool {
        let [question] = &packet.questions[..] else {
            return false;
        };
        packet.id() == self.id
            && packet.has_flags(PacketFlag::RESPONSE)
            && packet.opcode() == OPCODE::StandardQuery
            // Case-insensitive, because servers may return the name in their own spelling.
            && question.qname == self.name
            && question.qtype == QTYPE::TYPE(self.kind)
            && question.qclass == QCLASS::CLASS(CLASS::IN)
            && !question.unicast_response
    }
}

fn bad_name(name: &str) -> DnsError {
    DnsError(format!("{name} cannot be a name in DNS"))
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Record, Records, respond};
    use super::*;

    fn response(question: &Question, records: &Records) -> Vec<u8> {
        respond(&question.message, records)
    }

    #[test]
    fn question_is_one_and_asks_for_recursion_if_told() {
        for resolve in [false, true] {
            let question = Question::new("www.example.com", RecordType::MX, resolve).unwrap();
            let packet = Packet::parse(&question.message).unwrap();
            assert_eq!(packet.has_flags(PacketFlag::RECURSION_DESIRED), resolve);
            assert_eq!((packet.id(), packet.questions.len()), (question.id, 1));
            assert_eq!(packet.questions[0].qname.to_string(), "www.example.com");
        }
    }

    #[test]
    fn names_that_dns_cannot_have_are_told() {
        for name in [&"a".repeat(64), &"a.".repeat(130), "a\\"] {
            assert_eq!(
                Question::new(name, RecordType::A, true).err(),
                Some(bad_name(name))
            );
        }
    }

    #[test]
    fn id_question_and_flags_make_a_response() {
        let question = Question::new("www.example.com", RecordType::A, true).unwrap();
        let good = response(
            &question,
            &vec![("WWW.example.COM", Record::A([192, 0, 2, 7]))],
        );
        let read = question.read(&good).unwrap();
        assert_eq!(
            read.answer.addresses().unwrap(),
            [std::net::IpAddr::from([192, 0, 2, 7])]
        );

        // Id, QR, opcode, one question, a letter of its name, its type and its class.
        for (at, bit) in [
            (1, 1),
            (2, 0x80),
            (2, 0x08),
            (5, 1),
            (13, 1),
            (30, 2),
            (32, 2),
        ] {
            let mut other = good.clone();
            other[at] ^= bit;
            assert!(question.read(&other).is_none(), "byte {at}");
        }
        for part in [
            &[][..],
            &[0xff; 40],
            &good[..20],
            &[&good[..4], &[0; 8]].concat(),
        ] {
            assert!(question.read(part).is_none(), "{part:?}");
        }
        let mut other_case = good.clone();
        other_case[13] ^= 0x20;
        assert!(question.read(&other_case).is_some());
    }

    #[test]
    fn sections_that_nobody_needs_are_not_read() {
        let question = Question::new("www.example.com", RecordType::A, true).unwrap();
        let mut message = response(
            &question,
            &vec![("www.example.com", Record::A([192, 0, 2, 7]))],
        );
        message[9] = 3;
        message.extend([0xff; 40]);
        assert!(question.read(&message).is_some());
        message[7] = 3;
        assert!(question.read(&message).is_none());
    }

    #[test]
    fn records_of_another_class_are_left_out() {
        let question = Question::new("www.example.com", RecordType::A, true).unwrap();
        let mut message = response(
            &question,
            &vec![("www.example.com", Record::A([192, 0, 2, 7]))],
        );
        // Internet, Chaos, and Internet with the bit of multicast DNS (RFC 6762, section 10.2).
        for (class, count) in [([0, 1], 1), ([0, 3], 0), ([0x80, 1], 0)] {
            message[37..39].copy_from_slice(&class);
            let read = question.read(&message).unwrap();
            assert_eq!(read.answer.records.len(), count, "{class:?}");
        }
    }

    #[test]
    fn truncated_response_may_be_cut_anywhere() {
        let question = Question::new("www.example.com", RecordType::A, true).unwrap();
        let mut message = response(
            &question,
            &vec![("www.example.com", Record::A([192, 0, 2, 7]))],
        );
        message[2] |= 0x02;
        message.truncate(message.len() - 3);
        assert!(question.read(&message).unwrap().truncated);
    }

    #[test]
    fn more_records_than_anybody_has_are_refused() {
        let question = Question::new("www.example.com", RecordType::A, true).unwrap();
        let records = |number| vec![("www.example.com", Record::A([192, 0, 2, 7])); number];
        assert!(question.read(&response(&question, &records(512))).is_some());
        assert!(question.read(&response(&question, &records(513))).is_none());
    }
}
