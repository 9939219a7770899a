//! DNS messages, for the fuzzers: only an answer to the question is accepted, whatever a server sends.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use super::RecordType;
use super::message::Question;

const NAME: &str = "www.example.com";
const TYPES: [RecordType; 5] = [
    RecordType::A,
    RecordType::AAAA,
    RecordType::CNAME,
    RecordType::NS,
    RecordType::CAA,
];

/// Reads a message as the response to a question. Its first byte chooses the type of the question, and it gets the
/// right id, which a fuzzer cannot guess.
pub fn dns(bytes: &[u8]) {
    let Some((kind, message)) = bytes.split_first() else {
        return;
    };
    let question = Question::new(NAME, TYPES[usize::from(*kind) % TYPES.len()], true).unwrap();
    let query = &question.message;
    let mut message = message.to_vec();
    if let Some(id) = message.get_mut(..2) {
        id.copy_from_slice(&query[..2]);
    }
    let Some(response) = question.read(&message) else {
        return;
    };
    // It is a response with exactly one question.
    assert!(message[2] & 0x80 > 0 && message[4..6] == [0, 1]);
    let asked = message.get(12..query.len());
    assert!(
        asked.is_some_and(|asked| asked.eq_ignore_ascii_case(&query[12..])),
        "{asked:?}"
    );
    let answer = &response.answer;
    assert!(answer.records.len() <= 512 && answer.name == NAME);
    assert!(answer.canonical().is_err() || answer.addresses().is_ok());
    for record in &answer.records {
        let shown = format!("{} {record}", record.name);
        assert!(
            shown.bytes().all(|byte| (b' '..=b'~').contains(&byte)),
            "{shown:?}"
        );
    }
}
