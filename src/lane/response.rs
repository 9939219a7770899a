//! A response on a lane: how the worker writes it, and how the gate reads it.
//!
//! ```text
//! HTTP/1.1 200 OK\r\n
//! T: 2.17 64 13 ck the-key's-name\r\n
//! Content-Type: application/json\r\n
//! Cache-Control: no-cache\r\n
//! Content-Length: 13\r\n
//! \r\n
//! the body
//! ```
//!
//! After the ticket come the length of the rest of the head and the length of the body, then flags (`-`: none;
//! `c`: the fields have a Cache-Control; `w`: no response yet, pass the request on to the write lane; `e`: no
//! response, end the client's connection), then the name of the request's key. So the gate parses one line, and passes on the rest unchanged.

use crate::http::limits::MAX_RESPONSE_FIELDS;
use crate::http::response::Course;
use crate::http::response::{
    decimal_digits, has_no_body, write_decimal, write_end_of_head, write_status_line,
};
use crate::http::{Response, find_field};
use crate::lane::position;
use crate::lane::ticket::{Ticket, read_number};

/// Space for what precedes the fields of a response.
const HEAD_ROOM: usize = 256;
/// The longest line with a ticket, of which the name of a key takes at most a quarter.
const MAX_LINE: usize = 1024;
const START: &[u8] = b"HTTP/1.1 ";
const TICKET: &[u8] = b"T: ";

/// The response breaks a rule that its reader relies on.
#[derive(Debug, PartialEq)]
pub struct Unprintable(pub &'static str);

/// Writes a response for the gate.
///
/// # Errors
/// If the gate could not read it correctly. Nothing is written then.
pub fn write_response(response: &Response, ticket: Ticket, out: &mut Vec<u8>) -> Result<(), Unprintable> {
    check(response)?;
    let fields = response.fields().lines().len();
    let (status, length) = (response.status(), response.body().len());
    let digits = decimal_digits(response.length());
    let end = if has_no_body(status) { 2 } else { "Content-Length: \r\n\r\n".len() + digits };
    out.reserve(HEAD_ROOM + fields + length);
    write_status_line(out, status);
    out.extend_from_slice(TICKET);
    ticket.write(out);
    out.push(b' ');
    write_decimal(out, fields + end);
    out.push(b' ');
    write_decimal(out, length);
    out.extend_from_slice(match response.course() {
        Course::Send if response.fields().has_cache_control() => b" c ",
        Course::Send => b" - ",
        Course::PassOn => b" w ",
        Course::BreakOff => b" e ",
    });
    out.extend_from_slice(response.key_name().unwrap_or("-").as_bytes());
    out.extend_from_slice(b"\r\n");
    write_rest(response, out);
    Ok(())
}

/// Writes what the gate passes on unchanged.
fn write_rest(response: &Response, out: &mut Vec<u8>) {
    out.extend_from_slice(response.fields().lines());
    write_end_of_head(out, response.status(), response.length());
    out.extend_from_slice(response.body());
}

/// Checks the bounds of a response.
fn check(response: &Response) -> Result<(), Unprintable> {
    if !(200..=599).contains(&response.status()) {
        return Err(Unprintable("its status is not final"));
    }
    if has_no_body(response.status()) && !response.body().is_empty() {
        return Err(Unprintable("it has a body that its status does not allow"));
    }
    if response.fields().count() > MAX_RESPONSE_FIELDS {
        return Err(Unprintable("it has too many header fields"));
    }
    response.fields().flaw().map_or(Ok(()), |flaw| Err(Unprintable(flaw)))
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
        let has_cache_control = response.fields().has_cache_control();
        Self { status: response.status(), fields, body, has_cache_control, key_name: b"-" }
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
    /// Reads the response at the start of `bytes`; `None` while it is incomplete.
    ///
    /// # Errors
    /// If the bytes are not from [`write_response`], such as an error of tiny_http's own.
    pub fn read(bytes: &'a [u8]) -> Result<Option<Self>, Malformed> {
        let mut rest = bytes;
        let Some(line) = take_line(&mut rest)? else { return Ok(None) };
        let status = line.strip_prefix(START).and_then(|line| line.get(..3)).ok_or(Malformed)?;
        let digit =
            |number: u16, byte: &u8| byte.is_ascii_digit().then(|| number * 10 + u16::from(byte - b'0'));
        let status = status.iter().try_fold(0, digit).ok_or(Malformed)?;
        let Some(line) = take_line(&mut rest)? else { return Ok(None) };
        let mut line = line.strip_prefix(TICKET).ok_or(Malformed)?;
        let ticket = Ticket::read(&mut line).ok_or(Malformed)?;
        let fields = read_number(&mut line, b' ').ok_or(Malformed)?;
        let length = read_number(&mut line, b' ').ok_or(Malformed)?;
        let (flag, key_name) = match line {
            [flag @ (b'-' | b'c' | b'w' | b'e'), b' ', key_name @ ..] => (*flag, key_name),
            _ => return Err(Malformed),
        };
        let whole = fields.checked_add(length).ok_or(Malformed)?;
        let Some(whole) = rest.get(..whole) else { return Ok(None) };
        let (fields, body) = whole.split_at(fields);
        let answer = Answer { status, fields, body, has_cache_control: flag == b'c', key_name };
        let length = bytes.len() - rest.len() + whole.len();
        let course = match flag {
            b'w' => Course::PassOn,
            b'e' => Course::BreakOff,
            _ => Course::Send,
        };
        Ok(Some(Self { answer, ticket, course, length }))
    }
}

/// The line at the start of `bytes`, without its end; `None` while it is incomplete.
fn take_line<'a>(bytes: &mut &'a [u8]) -> Result<Option<&'a [u8]>, Malformed> {
    let start = &bytes[..bytes.len().min(MAX_LINE)];
    let Some(end) = position(start, b'\n') else {
        return if start.len() < MAX_LINE { Ok(None) } else { Err(Malformed) };
    };
    let line = bytes[..end].strip_suffix(b"\r").ok_or(Malformed)?;
    *bytes = &bytes[end + 1..];
    Ok(Some(line))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKET: Ticket = Ticket { epoch: 1, place: 2 };

    fn written(response: &Response) -> Result<String, Unprintable> {
        let mut out = Vec::new();
        let written = write_response(response, TICKET, &mut out);
        assert!(written.is_ok() || out.is_empty());
        written.map(|()| String::from_utf8(out).unwrap())
    }

    #[test]
    fn response_is_framed_by_content_length() {
        let text = written(&Response::json(200, &[1, 2]).header("Location", "/v1/pets/1")).unwrap();
        assert_eq!(
            text,
            "HTTP/1.1 200 OK\r\nT: 1.2 75 5 - -\r\nContent-Type: application/json\r\nLocation: /v1/pets/1\r\n\
             Content-Length: 5\r\n\r\n[1,2]"
        );
    }

    #[test]
    fn name_of_a_key_is_one_word_whatever_it_is() {
        let text = written(&Response::new(204, b"").for_key("a\r\nb \u{e9}")).unwrap();
        assert_eq!(text, "HTTP/1.1 204 No Content\r\nT: 1.2 2 0 - a??b??\r\n\r\n");
    }

    #[test]
    fn response_is_read_as_it_is_written_and_only_whole() {
        let full = (0..MAX_RESPONSE_FIELDS - 1).fold(Response::json(200, &"x"), |r, _| r.header("X", "y"));
        for response in [
            Response::new(200, b"abc").header("Link", "x").header("Allow", "GET, HEAD"),
            Response::new(304, b"").header("ETag", "\"x\"").header("cache-control", "no-cache"),
            Response::new(204, b""),
            Response::pass_on(),
            Response::break_off(),
            full.for_key(&"x".repeat(MAX_LINE)),
            Response::new(599, vec![b'x'; 100_000]),
        ] {
            let text = written(&response).unwrap();
            for length in (0..text.len()).take(500) {
                assert_eq!(LaneResponse::read(&text.as_bytes()[..length]), Ok(None), "{length} of {text}");
            }
            let followed = format!("{text}HTTP");
            let read = LaneResponse::read(followed.as_bytes()).unwrap().unwrap();
            assert_eq!((read.ticket, read.course, read.length), (TICKET, response.course(), text.len()));
            let mut buffer = Vec::new();
            let key_name = response.key_name().unwrap_or("-").as_bytes();
            assert_eq!(read.answer, Answer { key_name, ..Answer::of(&response, &mut buffer) });
            assert_eq!((read.answer.status, read.answer.body), (response.status(), response.body()));
            assert!(read.answer.fields.starts_with(response.fields().lines()));
            for name in ["Link", "ETag", "X"] {
                assert_eq!(read.answer.field(name), response.field(name).map(str::as_bytes));
            }
            assert_eq!(read.answer.field("Lin"), None);
        }
    }

    #[test]
    fn what_is_no_response_of_a_worker_is_malformed() {
        for text in [
            "nonsense\r\n\r\n",
            "HTTP/1.1 200 OK\n",
            "HTTP/1.1 20\r\n",
            "HTTP/1.1 x00 OK\r\n",
            "HTTP/1.1 500 Internal Server Error\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nT: 1.1\r\nContent-Length: 0\r\n\r\n",
            "HTTP/1.1 200 OK\r\nT: 1.1 2 x - -\r\n\r\n",
            "HTTP/1.1 200 OK\r\nT: 1.1 2 0 x -\r\n\r\n",
            "HTTP/1.1 200 OK\r\nT: 1.1 1 18446744073709551615 - -\r\n\r\n",
            &"x".repeat(MAX_LINE),
        ] {
            assert_eq!(LaneResponse::read(text.as_bytes()), Err(Malformed), "{text}");
        }
    }

    #[test]
    fn what_could_not_be_read_again_is_not_written() {
        let ok = || Response::json(200, &());
        let full = (0..MAX_RESPONSE_FIELDS - 1).fold(ok(), |response, _| response.header("X", "\ty z~"));
        assert!(written(&full).is_ok());
        for response in [
            full.header("X", "y"),
            ok().header("X", "a\r\nY: b"),
            ok().header("X", "a\nb"),
            ok().header("X", "a\0b"),
            ok().header("X", "\x7f"),
            ok().header("X", "\u{e9}"),
            ok().header("content-length", "2"),
            ok().header("Transfer-Encoding", "chunked"),
            ok().header("Connection", "close"),
            ok().header("Date", "x"),
            ok().header("Server", "x"),
            Response::new(100, b""),
            Response::new(199, b""),
            Response::new(600, b""),
            Response::new(204, b"x"),
        ] {
            assert!(written(&response).is_err(), "{response:?}");
        }
    }
}
