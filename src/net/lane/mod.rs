//! The protocol between the gate and the workers, with encoding and decoding side by side.
//!
//! A lane is one connection to a tiny_http server on a private Unix socket. Whole requests go down it pipelined,
//! and whole responses come back in order. This room knows nothing of routes, pets or SQL, and no sockets.
//!
//! A request on a lane:
//!
//! ```text
//! GET /v1/pets/7 HTTP/1.1\r\n
//! Content-Length: 79\r\n
//! \r\n
//! the ticket, 8 bytes, and the-request's-identifier\r\n
//! Authorization: Bearer …\r\n
//! \r\n
//! the body
//! ```
//!
//! tiny_http reads a head byte by byte and allocates for each line, so the ticket and the header fields travel
//! in the content, which it reads in one piece.
//!
//! A response on a lane:
//!
//! | bytes | what |
//! |---|---|
//! | 8 | the ticket of its request |
//! | 4 each | the status, and the lengths of the last three rows |
//! | 1 each | whether the fields have a Cache-Control, and what the gate does with the response |
//! | any | the name of the request's key, `-` if there is none |
//! | any | the lines of the header fields, and the empty line |
//! | any | the body |

use std::io::ErrorKind;

use crate::base::http::response::{Course, write_decimal, write_end_of_head, write_field};
use crate::base::http::{Response, find_field};

/// The kind of lane that a request takes, which is all that the gate knows of its meaning. A worker that
/// reads may pass a request on to the write lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneKind {
    /// GET, HEAD and OPTIONS.
    Read,
    /// Every other method.
    Write,
}

/// Identifies a request on a lane: how many have gone down it, itself among them. Eight bytes on the lane.
pub type Ticket = u64;
/// The number of its bytes.
pub const TICKET_LENGTH: usize = size_of::<Ticket>();

/// After the target.
const LINE_END: &[u8] = b" HTTP/1.1\r\n";
/// The ASCII character that no field value has (RFC 9110, section 5.5).
const DEL: u8 = 0x7f;
/// Space for what is added to a request.
const HEAD_ROOM: usize = 128;

/// A request that the gate assembles: the line, then the header fields, then the body.
#[derive(Debug, Default)]
pub struct LaneRequest {
    bytes: Vec<u8>,
    /// Bytes of the request line, with its end.
    line_length: usize,
}

impl LaneRequest {
    /// Begins a request with its line, and space for this many bytes. Earlier content is dropped.
    pub fn begin(&mut self, method: &[u8], target: [&[u8]; 2], room: usize) {
        self.bytes.clear();
        self.bytes.reserve(room);
        self.bytes.extend_from_slice(method);
        self.bytes.push(b' ');
        target.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.bytes.extend_from_slice(LINE_END);
        self.line_length = self.bytes.len();
    }

    /// Adds a header field. Bytes other than ASCII become DEL, which no valid value has: two values must not become one.
    pub fn field(&mut self, name: &str, value: &[u8]) {
        let start = self.bytes.len() + name.len() + 2;
        write_field(&mut self.bytes, name, value);
        if !value.is_ascii() {
            let value = &mut self.bytes[start..start + value.len()];
            value.iter_mut().filter(|byte| !byte.is_ascii()).for_each(|byte| *byte = DEL);
        }
    }

    /// Ends the header fields.
    pub fn end_head(&mut self) {
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// The buffer to which the body is added.
    pub fn body(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Method and target, with a space between.
    pub fn line(&self) -> &[u8] {
        &self.bytes[..self.line_length.saturating_sub(LINE_END.len())]
    }

    /// The lines of the header fields, an empty one, and the body.
    pub fn fields(&self) -> &[u8] {
        &self.bytes[self.line_length..]
    }

    /// The bytes of the request so far.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// The bytes allocated for it.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Writes the complete request for a lane.
    pub fn write(&self, ticket: Ticket, id: &[u8], out: &mut Vec<u8>) {
        let (line, rest) = self.bytes.split_at(self.line_length);
        out.reserve(self.bytes.len() + HEAD_ROOM);
        out.extend_from_slice(line);
        out.extend_from_slice(b"Content-Length: ");
        write_decimal(out, TICKET_LENGTH + id.len() + 2 + rest.len());
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(&ticket.to_be_bytes());
        out.extend_from_slice(id);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(rest);
    }
}

/// The content of a request after its ticket, as the worker reads it.
#[derive(Debug, Default, PartialEq)]
pub struct Content<'a> {
    /// The identifier for the log.
    pub id: &'a str,
    /// Name and value of the header fields.
    pub fields: Vec<(&'a str, &'a str)>,
    pub body: &'a [u8],
}

impl<'a> Content<'a> {
    /// Reads what [`LaneRequest::write`] writes after the ticket; `None` if it is something else.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        // Only the body may be other than text.
        let mut text = std::str::from_utf8(bytes)
            .or_else(|error| std::str::from_utf8(&bytes[..error.valid_up_to()]))
            .ok()?;
        let whole = text.len();
        let id = take_line(&mut text)?;
        let mut fields = Vec::with_capacity(8);
        loop {
            let line = take_line(&mut text)?;
            if line.is_empty() {
                return Some(Self { id, fields, body: &bytes[whole - text.len()..] });
            }
            let (name, value) = line.split_at(position(line.as_bytes(), b':')?);
            fields.push((name, value.strip_prefix(": ")?));
        }
    }
}

/// The line at the start of `text`, without its end.
fn take_line<'a>(text: &mut &'a str) -> Option<&'a str> {
    let end = position(text.as_bytes(), b'\n')?;
    let line = text[..end].strip_suffix('\r')?;
    *text = &text[end + 1..];
    Some(line)
}

/// The position of a byte, searched for in eight bytes at once, because most lines here are short.
fn position(bytes: &[u8], byte: u8) -> Option<usize> {
    const ONES: u64 = u64::MAX / 255;
    let (words, rest) = bytes.as_chunks();
    for (at, word) in words.iter().enumerate() {
        // A zero marks the byte (Warren, Hacker's Delight, section 6-1); the lowest bit that is set is exact.
        let word = u64::from_le_bytes(*word) ^ (u64::from(byte) * ONES);
        let found = word.wrapping_sub(ONES) & !word & (0x80 * ONES);
        if found != 0 {
            return Some(8 * at + found.trailing_zeros() as usize / 8);
        }
    }
    Some(bytes.len() - rest.len() + rest.iter().position(|other| *other == byte)?)
}

/// The bytes of the ticket, the four numbers and the two flags.
const HEAD_LENGTH: usize = TICKET_LENGTH + 4 * 4 + 2;

/// Writes a response for the gate.
///
/// # Errors
/// If a header field may not be sent. Nothing is written then.
pub fn write_response(response: &Response, ticket: Ticket, out: &mut Vec<u8>) -> Result<(), &'static str> {
    response.fields.flaw.map_or(Ok(()), Err)?;
    let (key_name, body) = (response.key_name.as_deref().unwrap_or("-"), response.body().len());
    let start = out.len();
    out.extend_from_slice(&ticket.to_be_bytes());
    // The length of the fields is known once they are written.
    for number in [usize::from(response.status), key_name.len(), 0, body] {
        out.extend_from_slice(&(number as u32).to_be_bytes());
    }
    out.extend_from_slice(&[u8::from(response.fields.has_cache_control), response.course as u8]);
    out.extend_from_slice(key_name.as_bytes());
    let before = out.len();
    write_rest(response, out);
    let fields = (out.len() - before - body) as u32;
    out[start + TICKET_LENGTH + 8..][..4].copy_from_slice(&fields.to_be_bytes());
    Ok(())
}

/// Writes what the gate passes on unchanged.
fn write_rest(response: &Response, out: &mut Vec<u8>) {
    out.extend_from_slice(&response.fields.lines);
    write_end_of_head(out, response.status, response.length());
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

impl<'a> LaneResponse<'a> {
    /// Reads the response at the start of `bytes`; `None` while it is incomplete. Other bytes than those of
    /// [`write_response`] do not begin with the ticket that is expected.
    ///
    /// # Errors
    /// If there is no such flag.
    pub fn read(bytes: &'a [u8]) -> Result<Option<Self>, ErrorKind> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD_LENGTH>() else { return Ok(None) };
        let Some((ticket, head)) = head.split_first_chunk() else { return Ok(None) };
        let (ticket, (numbers, flags)) = (Ticket::from_be_bytes(*ticket), head.as_chunks());
        let mut numbers = numbers.iter().map(|number| u32::from_be_bytes(*number) as usize);
        let mut number = || numbers.next().unwrap_or_default();
        let (status, key_name, fields, body) = (number() as u16, number(), number(), number());
        let &[has_cache_control, course] = flags else { return Err(ErrorKind::InvalidData) };
        // In the order of their numbers.
        let courses = [Course::Send, Course::PassOn, Course::BreakOff];
        let course = *courses.get(usize::from(course)).ok_or(ErrorKind::InvalidData)?;
        let Some(rest) = rest.get(..key_name + fields + body) else { return Ok(None) };
        let (key_name, rest) = rest.split_at(key_name);
        let (fields, body) = rest.split_at(fields);
        let answer = Answer { status, fields, body, has_cache_control: has_cache_control == 1, key_name };
        let length = HEAD_LENGTH + key_name.len() + rest.len();
        Ok(Some(Self { answer, ticket, course, length }))
    }
}

#[cfg(test)]
mod tests;
