//! The protocol between the gate and the workers, with encoding and decoding side by side.
//!
//! A lane is one connection to a tiny_http server on a private Unix socket. Whole requests go down it pipelined,
//! and whole responses come back in order. This room knows nothing of routes, pets or SQL, and no sockets.
//!
//! A request on a lane:
//!
//! ```text
//! POST /v1/pets HTTP/1.1\r\n
//! Content-Length: 68\r\n
//! \r\n
//! 17 the-request's-identifier\r\n
//! Authorization: Bearer …\r\n
//! \r\n
//! {"name":"Rex"}
//! ```
//!
//! tiny_http reads a head byte by byte, and allocates for each field. So the ticket and the header fields that the
//! service reads travel in the content, which it reads in one piece. As header fields of the request, they cost 15 to 27
//! percent of the processor time of a request at 64 connections.
//!
//! A response has the same ticket, its disposition, 1 if it has a Cache-Control, the length of its body, and the name of
//! the request's key, `-` if there is none:
//!
//! ```text
//! HTTP/1.1 201 Created\r\n
//! T: 17 send 0 21 ci\r\n
//! Content-Type: application/json\r\n
//! Content-Length: 21\r\n
//! \r\n
//! {"id":7,"name":"Rex"}
//! ```

use std::io::ErrorKind;

use memchr::memchr;

use crate::base::http::response::{
    Disposition, write_decimal, write_end_of_head, write_field, write_status_line,
};
use crate::base::http::{Response, find_field};

/// The kind of lane for a request. The gate knows nothing else of its meaning. A worker that reads may pass a request on
/// to the write lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneKind {
    /// GET, HEAD and OPTIONS.
    Read,
    /// Every other method.
    Write,
}

/// Identifies a request on a lane: its number, counted from 1.
pub type Ticket = u64;
/// The ticket of no request.
pub const NO_TICKET: Ticket = 0;
/// The header field of a response's ticket.
const TICKET: &str = "T";

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
        let mut buffer = itoa::Buffer::new();
        let ticket = buffer.format(ticket).as_bytes();
        out.reserve(self.bytes.len() + HEAD_CAPACITY + id.len());
        out.extend_from_slice(line);
        out.extend_from_slice(b"Content-Length: ");
        write_decimal(out, ticket.len() + 1 + id.len() + 2 + rest.len());
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(ticket);
        out.push(b' ');
        out.extend_from_slice(id);
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(rest);
    }
}

/// The ticket at the start of a request's content; [`NO_TICKET`] if the content is not from the gate.
pub fn ticket_of(content: &[u8]) -> Ticket {
    let word = content.split(|byte| *byte == b' ').next();
    word.and_then(|word| str::from_utf8(word).ok()?.parse().ok()).unwrap_or(NO_TICKET)
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
        let mut rest = bytes;
        let mut line = || str::from_utf8(take_line(&mut rest)?.strip_suffix(b"\r\n")?).ok();
        let (_, id) = line()?.split_once(' ')?;
        let mut fields = Vec::with_capacity(8);
        loop {
            match line()? {
                "" => break,
                field => fields.push(field.split_once(": ")?),
            }
        }
        Some(Self { id, fields, body: rest })
    }
}

/// Writes a response for the gate.
///
/// # Errors
/// If a header field may not be sent. Nothing is written then.
pub fn write_response(response: &Response, ticket: Ticket, out: &mut Vec<u8>) -> Result<(), &'static str> {
    response.fields.flaw.map_or(Ok(()), Err)?;
    out.reserve(HEAD_CAPACITY + response.fields.lines.len() + response.body().len());
    write_status_line(out, response.status);
    out.extend_from_slice(TICKET.as_bytes());
    out.extend_from_slice(b": ");
    write_decimal(out, ticket as usize);
    out.extend_from_slice(match response.disposition {
        Disposition::Send => b" send ",
        Disposition::RetryOnWriter => b" pass ",
        Disposition::Abort => b" drop ",
    });
    out.extend_from_slice(if response.fields.has_cache_control { b"1 " } else { b"0 " });
    write_decimal(out, response.body().len());
    out.push(b' ');
    out.extend_from_slice(response.key_name.as_deref().unwrap_or("-").as_bytes());
    out.extend_from_slice(b"\r\n");
    write_rest(response, out);
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

    /// Reads the response at the start of `bytes`; `None` while it is incomplete.
    ///
    /// # Errors
    /// If it is not one of [`write_response`].
    pub fn read(bytes: &'a [u8]) -> Result<Option<Self>, ErrorKind> {
        let mut rest = bytes;
        let Some(status_line) = take_line(&mut rest) else { return Ok(None) };
        let Some(ticket_line) = take_line(&mut rest) else { return Ok(None) };
        let (status, words) = read_words(status_line, ticket_line).ok_or(ErrorKind::InvalidData)?;
        let mut words = words.splitn(5, ' ');
        let mut word = || words.next().unwrap_or_default();
        let ticket = word().parse().map_err(|_| ErrorKind::InvalidData)?;
        let disposition = match word() {
            "send" => Disposition::Send,
            "pass" => Disposition::RetryOnWriter,
            "drop" => Disposition::Abort,
            _ => return Err(ErrorKind::InvalidData),
        };
        let has_cache_control = word() == "1";
        let body_length: usize = word().parse().map_err(|_| ErrorKind::InvalidData)?;
        let key_name = word().as_bytes();
        let fields = rest;
        loop {
            match take_line(&mut rest) {
                None => return Ok(None),
                Some(b"\r\n") => break,
                Some(_) => {}
            }
        }
        let fields = &fields[..fields.len() - rest.len()];
        let Some(body) = rest.get(..body_length) else { return Ok(None) };
        let length = bytes.len() - rest.len() + body_length;
        Ok(Some(Self { ticket, disposition, status, fields, body, has_cache_control, key_name, length }))
    }
}

/// The status, and the value of the ticket field.
fn read_words<'a>(status_line: &[u8], ticket_line: &'a [u8]) -> Option<(u16, &'a str)> {
    let status = str::from_utf8(status_line.strip_prefix(b"HTTP/1.1 ")?.get(..3)?).ok()?.parse().ok()?;
    let words = ticket_line.strip_prefix(TICKET.as_bytes())?.strip_prefix(b": ")?.strip_suffix(b"\r\n")?;
    Some((status, str::from_utf8(words).ok()?))
}

/// The line at the start of `bytes`, with its end.
fn take_line<'a>(bytes: &mut &'a [u8]) -> Option<&'a [u8]> {
    let (line, rest) = bytes.split_at(memchr(b'\n', bytes)? + 1);
    *bytes = rest;
    Some(line)
}

#[cfg(test)]
mod tests;
