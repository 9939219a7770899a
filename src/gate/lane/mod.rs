//! The protocol between the gate and the workers, with encoding and decoding side by side.
//!
//! A lane is one connection to a tiny_http server on a private Unix socket. Whole requests go down it pipelined,
//! and whole responses come back in order. This room knows nothing of routes, pets or SQL, and no sockets.
//!
//! A request on a lane:
//!
//! ```text
//! POST /v1/pets HTTP/1.1\r\n
//! Content-Length: 72\r\n
//! \r\n
//! the ticket, 8 bytes, and the-request's-identifier\r\n
//! Authorization: Bearer …\r\n
//! \r\n
//! {"name":"Rex"}
//! ```
//!
//! tiny_http reads a head byte by byte, and allocates for each field. So the ticket and the header fields that the
//! service reads travel in the content, which it reads in one piece. As header fields of the request, they cost 15 to 27
//! percent of the processor time of a request at 64 connections.
//!
//! A response on a lane:
//!
//! | bytes | content |
//! |---|---|
//! | 8 | the ticket of its request |
//! | 4 each | the status, and the lengths of the last three rows |
//! | 1 each | 1 if the fields have a Cache-Control, and the disposition |
//! | any | the name of the request's key, `-` if there is none |
//! | any | the lines of the header fields, and the empty line |
//! | any | the body |

use std::io::ErrorKind;

use memchr::memchr;

use petstore_base::http::response::{Disposition, write_decimal, write_end_of_head, write_field};
use petstore_base::http::{Response, find_field};

/// The kind of lane for a request. The gate knows nothing else of its meaning. A reading worker may pass a request on
/// to a lane of another kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneKind {
    /// GET, HEAD and OPTIONS.
    Read,
    /// Every other method.
    Write,
}

/// Identifies a request on a lane: its number, counted from 1. Eight bytes on the lane.
pub type Ticket = u64;
/// The number of its bytes.
const TICKET_LENGTH: usize = size_of::<Ticket>();
/// The ticket of no request.
pub const NO_TICKET: Ticket = 0;

/// After the target.
const LINE_END: &[u8] = b" HTTP/1.1\r\n";
/// The ASCII character that no field value has (RFC 9110, section 5.5).
const DEL: u8 = 0x7f;
/// Space for the fields that are added to a request.
const HEAD_CAPACITY: usize = 128;

/// A request that the gate assembles: the line, then the header fields, then the body.
#[derive(Debug, Default)]
pub struct LaneRequest {
    bytes: Vec<u8>,
    /// Bytes of the request line, with its end.
    line_length: usize,
    /// Bytes of the line, the header fields and the empty line.
    head_length: usize,
}

impl LaneRequest {
    /// Begins a request with its line, and space for this number of bytes. Earlier content is dropped.
    pub fn begin(&mut self, method: &[u8], target: [&[u8]; 2], capacity: usize) {
        self.bytes.clear();
        self.bytes.reserve(capacity);
        self.bytes.extend_from_slice(method);
        self.bytes.push(b' ');
        target
            .iter()
            .for_each(|part| self.bytes.extend_from_slice(part));
        self.bytes.extend_from_slice(LINE_END);
        self.line_length = self.bytes.len();
    }

    /// Adds a header field. Bytes other than ASCII become DEL, which no valid value has: two values must not become one.
    pub fn field(&mut self, name: &str, value: &[u8]) {
        let start = self.bytes.len() + name.len() + 2;
        write_field(&mut self.bytes, name, value);
        if !value.is_ascii() {
            let value = &mut self.bytes[start..start + value.len()];
            value
                .iter_mut()
                .filter(|byte| !byte.is_ascii())
                .for_each(|byte| *byte = DEL);
        }
    }

    /// Ends the header fields.
    pub fn end_head(&mut self) {
        self.bytes.extend_from_slice(b"\r\n");
        self.head_length = self.bytes.len();
    }

    /// The buffer that ends with the body.
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

    /// The bytes of the body so far.
    pub fn body_length(&self) -> usize {
        self.bytes.len() - self.head_length
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
        out.reserve(self.bytes.len() + HEAD_CAPACITY + id.len());
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

/// The ticket at the start of a request's content; [`NO_TICKET`] if the content is too short to be from the gate.
pub fn ticket_of(content: &[u8]) -> Ticket {
    content
        .first_chunk()
        .map_or(NO_TICKET, |ticket| Ticket::from_be_bytes(*ticket))
}

/// The content of a request on a lane, after its ticket.
#[derive(Debug, Default, PartialEq)]
pub struct Content<'a> {
    /// The identifier for the log.
    pub id: &'a str,
    /// Name and value of the forwarded header fields.
    pub fields: Vec<(&'a str, &'a str)>,
    pub body: &'a [u8],
}

impl<'a> Content<'a> {
    /// Reads the content that [`LaneRequest::write`] writes; `None` if it is something else.
    pub fn read(bytes: &'a [u8]) -> Option<Self> {
        let content = bytes.get(TICKET_LENGTH..)?;
        let text = text_before_other_bytes(content);
        let mut rest = text;
        let id = take_line(&mut rest)?;
        let mut fields = Vec::with_capacity(8);
        loop {
            let line = take_line(&mut rest)?;
            if line.is_empty() {
                let head_length = text.len() - rest.len();
                return Some(Self {
                    id,
                    fields,
                    body: &content[head_length..],
                });
            }
            let (name, value) = line.split_at(memchr(b':', line.as_bytes())?);
            fields.push((name, value.strip_prefix(": ")?));
        }
    }
}

/// The start of the content that is UTF-8, in which all lines are: only the body may have other bytes.
fn text_before_other_bytes(content: &[u8]) -> &str {
    match str::from_utf8(content) {
        Ok(text) => text,
        Err(error) => str::from_utf8(&content[..error.valid_up_to()]).unwrap_or_default(),
    }
}

/// The line at the start of `text`, without its end.
fn take_line<'a>(text: &mut &'a str) -> Option<&'a str> {
    let (line, rest) = text.split_at(memchr(b'\n', text.as_bytes())? + 1);
    *text = rest;
    line.strip_suffix("\r\n")
}

/// The bytes of the ticket, the four numbers and the two flags.
const HEAD_LENGTH: usize = TICKET_LENGTH + 4 * 4 + 2;

/// Writes a response for the gate.
///
/// # Errors
/// If a header field may not be sent. Nothing is written then.
pub fn write_response(
    response: &Response,
    ticket: Ticket,
    out: &mut Vec<u8>,
) -> Result<(), &'static str> {
    response.fields.flaw.map_or(Ok(()), Err)?;
    let key_name = response.key_name.as_deref().unwrap_or("-");
    let body = response.body().len();
    let start = out.len();
    out.extend_from_slice(&ticket.to_be_bytes());
    // The length of the fields is known once they are written.
    for number in [usize::from(response.status), key_name.len(), 0, body] {
        out.extend_from_slice(&(number as u32).to_be_bytes());
    }
    out.extend_from_slice(&[
        u8::from(response.fields.has_cache_control),
        response.disposition as u8,
    ]);
    out.extend_from_slice(key_name.as_bytes());
    let before = out.len();
    write_rest(response, out);
    let fields = (out.len() - before - body) as u32;
    out[start + TICKET_LENGTH + 8..][..4].copy_from_slice(&fields.to_be_bytes());
    Ok(())
}

/// Writes the part that the gate forwards unchanged.
fn write_rest(response: &Response, out: &mut Vec<u8>) {
    out.extend_from_slice(&response.fields.lines);
    write_end_of_head(out, response.status, response.length());
    out.extend_from_slice(response.body());
}

/// A response for a client: one of a lane, still in the lane's buffer, or one that the gate makes.
#[derive(Debug, PartialEq)]
pub struct LaneResponse<'a> {
    /// The ticket of its request.
    pub ticket: Ticket,
    /// The action of the gate.
    pub disposition: Disposition,
    pub status: u16,
    /// The lines of the fields, with the Content-Length and the empty line.
    pub fields: &'a [u8],
    pub body: &'a [u8],
    /// The fields include Cache-Control.
    pub has_cache_control: bool,
    /// The name of the request's key; `-` if there is none.
    pub key_name: &'a [u8],
    /// Its length in bytes on the lane.
    pub length: usize,
}

impl<'a> LaneResponse<'a> {
    /// Converts a response of the gate itself, with a buffer for its fields.
    pub fn of(response: &Response, buffer: &'a mut Vec<u8>) -> Self {
        buffer.clear();
        write_rest(response, buffer);
        let (fields, body) = buffer.split_at(buffer.len() - response.body().len());
        Self {
            ticket: NO_TICKET,
            disposition: response.disposition,
            status: response.status,
            fields,
            body,
            has_cache_control: response.fields.has_cache_control,
            key_name: b"-",
            length: buffer.len(),
        }
    }

    /// The value of a header field; the name is case-sensitive here.
    pub fn field(&self, name: &str) -> Option<&'a [u8]> {
        find_field(self.fields, name)
    }

    /// Reads the response at the start of `bytes`; `None` while it is incomplete. Other bytes than those of
    /// [`write_response`] do not begin with the expected ticket.
    ///
    /// # Errors
    /// If there is no such disposition.
    pub fn read(bytes: &'a [u8]) -> Result<Option<Self>, ErrorKind> {
        let Some((head, rest)) = bytes.split_first_chunk::<HEAD_LENGTH>() else {
            return Ok(None);
        };
        let Some((ticket, head)) = head.split_first_chunk() else {
            return Ok(None);
        };
        let ticket = Ticket::from_be_bytes(*ticket);
        let (numbers, flags) = head.as_chunks();
        let mut numbers = numbers
            .iter()
            .map(|number| u32::from_be_bytes(*number) as usize);
        let mut number = || numbers.next().unwrap_or_default();
        let (status, key_length, fields_length, body_length) =
            (number() as u16, number(), number(), number());
        let &[has_cache_control, disposition] = flags else {
            return Err(ErrorKind::InvalidData);
        };
        // In the order of their numbers.
        let dispositions = [
            Disposition::Send,
            Disposition::RetryOnWriter,
            Disposition::Abort,
            Disposition::Fail,
        ];
        let disposition = *dispositions
            .get(usize::from(disposition))
            .ok_or(ErrorKind::InvalidData)?;
        let Some(rest) = rest.get(..key_length + fields_length + body_length) else {
            return Ok(None);
        };
        let (key_name, rest) = rest.split_at(key_length);
        let (fields, body) = rest.split_at(fields_length);
        let has_cache_control = has_cache_control == 1;
        let length = HEAD_LENGTH + key_length + rest.len();
        Ok(Some(Self {
            ticket,
            disposition,
            status,
            fields,
            body,
            has_cache_control,
            key_name,
            length,
        }))
    }
}

#[cfg(test)]
mod tests;
