//! A response on a lane: how the worker writes it, and how the gate reads it.
//!
//! | bytes | what |
//! |---|---|
//! | 16 | the ticket of its request |
//! | 4 each | the status, and the lengths of the last three rows |
//! | 1 | what the gate does with it |
//! | any | the name of the request's key, `-` if there is none |
//! | any | the lines of the header fields, and the empty line |
//! | any | the body |

use crate::http::response::{Course, write_end_of_head};
use crate::http::{Response, find_field};
use crate::lane::Ticket;

/// The bytes of the ticket, status, key name, fields, body and flag.
const HEAD_LENGTH: usize = Ticket::LENGTH + 4 * 4 + 1;

/// What the gate does with a response, as one byte.
const SEND: u8 = 0;
/// To be sent, and the fields have a Cache-Control.
const SEND_WITH_CACHE_CONTROL: u8 = 1;
const PASS_ON: u8 = 2;
const BREAK_OFF: u8 = 3;

/// Writes a response for the gate.
///
/// # Errors
/// If a header field may not be sent. Nothing is written then.
pub fn write_response(response: &Response, ticket: Ticket, out: &mut Vec<u8>) -> Result<(), &'static str> {
    response.fields.flaw.map_or(Ok(()), Err)?;
    let (key_name, body) = (response.key_name.as_deref().unwrap_or("-"), response.body().len());
    let start = out.len();
    out.extend_from_slice(&ticket.to_bytes());
    // The length of the fields is known once they are written.
    for number in [usize::from(response.status), key_name.len(), 0, body] {
        out.extend_from_slice(&(number as u32).to_be_bytes());
    }
    out.push(match response.course {
        Course::Send if response.fields.has_cache_control => SEND_WITH_CACHE_CONTROL,
        Course::Send => SEND,
        Course::PassOn => PASS_ON,
        Course::BreakOff => BREAK_OFF,
    });
    out.extend_from_slice(key_name.as_bytes());
    let before = out.len();
    write_rest(response, out);
    let fields = (out.len() - before - body) as u32;
    out[start + Ticket::LENGTH + 8..][..4].copy_from_slice(&fields.to_be_bytes());
    Ok(())
}

/// Writes what the gate passes on unchanged.
fn write_rest(response: &Response, out: &mut Vec<u8>) {
    out.extend_from_slice(&response.fields.lines);
    write_end_of_head(out, response.status, response.body().len());
    out.extend_from_slice(response.body());
}

/// A status, header fields and a body, for a client.
#[derive(Debug, PartialEq)]
pub struct Answer<'a> {
    pub status: u16,
    /// The lines of the fields, what frames the body, and the empty line.
    pub fields: &'a [u8],
    pub body: &'a [u8],
    /// Whether the fields include Cache-Control.
    pub has_cache_control: bool,
    /// The name of the request's key; `-` if there is none.
    pub key_name: &'a [u8],
}

impl<'a> Answer<'a> {
    /// Converts a response, with a buffer for its fields.
    pub fn of(response: &Response, buffer: &'a mut Vec<u8>) -> Self {
        buffer.clear();
        write_rest(response, buffer);
        let (fields, body) = buffer.split_at(buffer.len() - response.body().len());
        let has_cache_control = response.fields.has_cache_control;
        Self { status: response.status, fields, body, has_cache_control, key_name: b"-" }
    }

    /// The value of a header field; the name is case-sensitive here.
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        find_field(self.fields, name)
    }
}

/// A complete response of a lane, still in the lane's buffer.
#[derive(Debug, PartialEq)]
pub struct LaneResponse<'a> {
    pub answer: Answer<'a>,
    /// The ticket of its request.
    pub ticket: Ticket,
    /// What to do with it.
    pub course: Course,
    /// Its length in bytes.
    pub length: usize,
}

/// The bytes are not a response.
#[derive(Debug, PartialEq)]
pub struct Malformed;

impl<'a> LaneResponse<'a> {
    /// Reads the response at the start of `bytes`; `None` while it is incomplete. Other bytes than those of
    /// [`write_response`] do not begin with the ticket that is expected ([`Ticket::begins`]).
    ///
    /// # Errors
    /// If there is no such flag.
    pub fn read(bytes: &'a [u8]) -> Result<Option<Self>, Malformed> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD_LENGTH>() else { return Ok(None) };
        let Some((ticket, head)) = Ticket::read(head) else { return Ok(None) };
        let (numbers, flags) = head.as_chunks();
        let mut numbers = numbers.iter().map(|number| u32::from_be_bytes(*number) as usize);
        let mut number = || numbers.next().unwrap_or_default();
        let (status, key_name, fields, body) = (number() as u16, number(), number(), number());
        let course = match flags {
            [SEND | SEND_WITH_CACHE_CONTROL] => Course::Send,
            [PASS_ON] => Course::PassOn,
            [BREAK_OFF] => Course::BreakOff,
            _ => return Err(Malformed),
        };
        let Some(rest) = rest.get(..key_name + fields + body) else { return Ok(None) };
        let (key_name, rest) = rest.split_at(key_name);
        let (fields, body) = rest.split_at(fields);
        let has_cache_control = flags == [SEND_WITH_CACHE_CONTROL];
        let answer = Answer { status, fields, body, has_cache_control, key_name };
        let length = HEAD_LENGTH + key_name.len() + rest.len();
        Ok(Some(Self { answer, ticket, course, length }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKET: Ticket = Ticket { epoch: 1, place: 2 };

    fn written(response: &Response) -> Result<Vec<u8>, &'static str> {
        let mut out = Vec::new();
        let written = write_response(response, TICKET, &mut out);
        assert!(written.is_ok() || out.is_empty());
        written.map(|()| out)
    }

    #[test]
    fn fields_are_framed_by_content_length() {
        let bytes = written(&Response::json(200, &[1, 2]).header("Location", "/v1/pets/1")).unwrap();
        let read = LaneResponse::read(&bytes).unwrap().unwrap();
        let fields = "Content-Type: application/json\r\nLocation: /v1/pets/1\r\nContent-Length: 5\r\n\r\n";
        assert_eq!((read.answer.fields, read.answer.body), (fields.as_bytes(), &b"[1,2]"[..]));
    }

    #[test]
    fn response_is_read_as_it_is_written_and_only_whole() {
        for response in [
            Response::new(200, b"abc").header("Link", "x").header("Allow", "GET, HEAD"),
            Response::new(304, b"").header("ETag", "\"x\"").header("cache-control", "no-cache"),
            Response::new(204, b"").for_key("a\r\nb \u{e9}"),
            Response::only(Course::PassOn),
            Response::only(Course::BreakOff),
            Response::json(200, &"x").header("X", "y").for_key(&"x".repeat(1024)),
            Response::new(599, vec![b'x'; 100_000]),
        ] {
            let mut bytes = written(&response).unwrap();
            let whole = bytes.len();
            for length in (0..whole).take(500) {
                assert_eq!(LaneResponse::read(&bytes[..length]), Ok(None), "{length} of {response:?}");
            }
            bytes.extend_from_slice(b"HTTP");
            let read = LaneResponse::read(&bytes).unwrap().unwrap();
            assert_eq!((read.ticket, read.course, read.length), (TICKET, response.course, whole));
            let mut buffer = Vec::new();
            let key_name = response.key_name.as_deref().unwrap_or("-").as_bytes();
            assert_eq!(read.answer, Answer { key_name, ..Answer::of(&response, &mut buffer) });
            assert_eq!((read.answer.status, read.answer.body), (response.status, response.body()));
            for name in ["Link", "ETag", "X"] {
                assert_eq!(read.answer.field(name), response.field(name).map(str::as_bytes));
            }
            assert_eq!(read.answer.field("Lin"), None);
        }
    }

    #[test]
    fn unknown_flag_is_malformed() {
        let mut bytes = written(&Response::new(204, b"")).unwrap();
        bytes[HEAD_LENGTH - 1] = 4;
        assert_eq!(LaneResponse::read(&bytes), Err(Malformed));
    }

    #[test]
    fn field_that_may_not_be_sent_is_not_written() {
        let ok = || Response::json(200, &());
        assert!(written(&ok().header("X", "\ty z~")).is_ok());
        for response in [
            ok().header("X", "a\r\nY: b"),
            ok().header("X", "a\nb"),
            ok().header("X", "a\0b"),
            ok().header("X", "\x7f"),
            ok().header("X", "\u{e9}"),
        ] {
            assert!(written(&response).is_err(), "{response:?}");
        }
    }
}
