//! DNS messages (RFC 1035, section 4): encodes a question and decodes its response.

use simple_dns::{CLASS, Name, Packet, PacketFlag, QTYPE, RCODE};

use super::RecordType;
use super::answer::{Answer, Record, text};

/// The length of a message's head.
const HEAD: usize = 12;

/// One question.
pub(super) struct Question {
    name: String,
    /// The encoded message, which asks the server to query others (the flag RD).
    pub message: Vec<u8>,
}

/// The response to a question.
#[derive(Debug)]
pub(super) struct Response {
    pub rcode: RCODE,
    pub answer: Answer,
}

impl Question {
    /// A question for the records of one type.
    ///
    /// # Errors
    /// If DNS allows no such name.
    pub fn new(name: &str, kind: RecordType) -> Result<Self, String> {
        let bad_name = |_| format!("{name} cannot be a name in DNS");
        let name = Name::new(name).map_err(bad_name)?;
        let question = simple_dns::Question::new(name, QTYPE::TYPE(kind), CLASS::IN.into(), false);
        // Each question has a connection of its own, so all have the same id.
        let mut packet = Packet::new_query(0);
        packet.set_flags(PacketFlag::RECURSION_DESIRED);
        packet.questions.push(question);
        let message = packet.build_bytes_vec().map_err(bad_name)?;
        Ok(Self { name: text(&packet.questions[0].qname), message })
    }

    /// Decodes a received message: its question and its answers, nothing else. `None` if it is no whole response to this
    /// question.
    pub fn read(&self, message: &[u8]) -> Option<Response> {
        let mut message = message.to_vec();
        let question = message.get(HEAD..self.message.len())?;
        // Servers may return the name in their own spelling.
        let is_answer = question.eq_ignore_ascii_case(&self.message[HEAD..])
            && message[..2] == self.message[..2]
            // A response to a standard query, and not truncated.
            && message[2] & 0xfa == 0x80
            && message[4..6] == [0, 1];
        if !is_answer {
            return None;
        }
        // The sections that are not read.
        message[8..HEAD].fill(0);
        let packet = Packet::parse(&message).ok()?;
        let in_use = packet.answers.iter().filter(|record| record.class == CLASS::IN && !record.cache_flush);
        let answer = Answer { name: self.name.clone(), records: in_use.map(Record::of).collect() };
        Some(Response { rcode: packet.rcode(), answer })
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{Record, Records, respond};
    use super::*;

    fn response(question: &Question, records: &Records) -> Vec<u8> {
        respond(&question.message, records)
    }

    #[test]
    fn question_is_one_and_asks_for_recursion() {
        let question = Question::new("www.example.com", RecordType::MX).unwrap();
        let packet = Packet::parse(&question.message).unwrap();
        assert!(packet.has_flags(PacketFlag::RECURSION_DESIRED));
        assert_eq!(packet.questions.len(), 1);
        assert_eq!(packet.questions[0].qname.to_string(), "www.example.com");
    }

    #[test]
    fn names_that_dns_cannot_have_are_told() {
        for name in [&"a".repeat(64), &"a.".repeat(130), "a\\"] {
            let error = Question::new(name, RecordType::A).err();
            assert_eq!(error, Some(format!("{name} cannot be a name in DNS")));
        }
    }

    #[test]
    fn id_question_and_flags_make_a_response() {
        let question = Question::new("www.example.com", RecordType::A).unwrap();
        let good = response(&question, &vec![("WWW.example.COM", Record::A([192, 0, 2, 7]))]);
        let read = question.read(&good).unwrap();
        assert_eq!(read.answer.addresses().collect::<Vec<_>>(), [std::net::IpAddr::from([192, 0, 2, 7])]);

        // Id, QR, opcode, truncation, one question, a letter of its name, its type and its class.
        for (at, bit) in [(1, 1), (2, 0x80), (2, 0x08), (2, 0x02), (5, 1), (13, 1), (30, 2), (32, 2)] {
            let mut other = good.clone();
            other[at] ^= bit;
            assert!(question.read(&other).is_none(), "byte {at}");
        }
        for part in [&[][..], &[0xff; 40], &good[..20], &[&good[..4], &[0; 8]].concat()] {
            assert!(question.read(part).is_none(), "{part:?}");
        }
        let mut other_case = good.clone();
        other_case[13] ^= 0x20;
        assert!(question.read(&other_case).is_some());
    }

    #[test]
    fn sections_that_nobody_needs_are_not_read() {
        let question = Question::new("www.example.com", RecordType::A).unwrap();
        let mut message = response(&question, &vec![("www.example.com", Record::A([192, 0, 2, 7]))]);
        message[9] = 3;
        message.extend([0xff; 40]);
        assert!(question.read(&message).is_some());
        message[7] = 3;
        assert!(question.read(&message).is_none());
    }

    #[test]
    fn records_of_another_class_are_left_out() {
        let question = Question::new("www.example.com", RecordType::A).unwrap();
        let mut message = response(&question, &vec![("www.example.com", Record::A([192, 0, 2, 7]))]);
        // Internet, Chaos, and Internet with the bit of multicast DNS (RFC 6762, section 10.2).
        for (class, count) in [([0, 1], 1), ([0, 3], 0), ([0x80, 1], 0)] {
            message[37..39].copy_from_slice(&class);
            let read = question.read(&message).unwrap();
            assert_eq!(read.answer.records.len(), count, "{class:?}");
        }
    }
}
