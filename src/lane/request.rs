//! A request on a lane: how the gate writes it, and how the worker reads it.
//!
//! ```text
//! GET /v1/pets/7 HTTP/1.1\r\n
//! Content-Length: 79\r\n
//! \r\n
//! 2.17 the-request's-identifier\r\n
//! Authorization: Bearer …\r\n
//! \r\n
//! the body
//! ```
//!
//! tiny_http reads a head byte by byte and allocates for each of its lines, so the ticket and the header fields
//! travel in the content, which it takes as a whole.

use crate::http::limits::{MAX_BODY_BYTES, MAX_HEAD_BYTES};
use crate::http::response::write_field;
use crate::lane::ticket::Ticket;

/// After the target.
const LINE_END: &[u8] = b" HTTP/1.1\r\n";
/// Room for what is added to a request on its way down.
const HEAD_ROOM: usize = 128;
/// As many as the largest request needs: its fields are fewer bytes than its head had.
const LENGTH_DIGITS: usize = 6;
const _: () = assert!(MAX_HEAD_BYTES + MAX_BODY_BYTES + HEAD_ROOM < 10usize.pow(LENGTH_DIGITS as u32));

/// A request that the gate puts together: first the line, then the header fields, then the body.
#[derive(Debug, Default)]
pub struct LaneRequest {
    bytes: Vec<u8>,
    /// Bytes of the request line, with its end.
    line: usize,
}

impl LaneRequest {
    /// Begins with the request line, and with room for so many bytes; what was there before is gone.
    pub fn begin(&mut self, method: &[u8], target: [&[u8]; 2], room: usize) {
        self.bytes.clear();
        self.bytes.reserve(room);
        self.bytes.extend_from_slice(method);
        self.bytes.push(b' ');
        target.iter().for_each(|part| self.bytes.extend_from_slice(part));
        self.bytes.extend_from_slice(LINE_END);
        self.line = self.bytes.len();
    }

    /// Adds a header field. What is not ASCII becomes `?`: no field that is passed on has a use for it.
    pub fn field(&mut self, name: &str, value: &[u8]) {
        let start = self.bytes.len() + name.len() + 2;
        write_field(&mut self.bytes, name, value);
        if !value.is_ascii() {
            let value = &mut self.bytes[start..start + value.len()];
            value.iter_mut().filter(|byte| !byte.is_ascii()).for_each(|byte| *byte = b'?');
        }
    }

    /// Ends the header fields.
    pub fn end_head(&mut self) {
        self.bytes.extend_from_slice(b"\r\n");
    }

    /// To which the body is added.
    pub fn body(&mut self) -> &mut Vec<u8> {
        &mut self.bytes
    }

    /// Method and target, with a space between.
    pub fn asked(&self) -> &[u8] {
        &self.bytes[..self.line.saturating_sub(LINE_END.len())]
    }

    /// Bytes of the request, whole or not.
    pub fn len(&self) -> usize {
        self.bytes.len()
    }

    /// Bytes that are held for it.
    pub fn capacity(&self) -> usize {
        self.bytes.capacity()
    }

    /// Writes the whole request as it goes down a lane.
    pub fn write(&self, ticket: Ticket, id: &str, out: &mut Vec<u8>) {
        let (line, rest) = self.bytes.split_at(self.line);
        out.reserve(self.bytes.len() + HEAD_ROOM);
        out.extend_from_slice(line);
        out.extend_from_slice(b"Content-Length: ");
        let length_at = out.len();
        out.extend_from_slice(&[b'0'; LENGTH_DIGITS]);
        out.extend_from_slice(b"\r\n\r\n");
        let content = out.len();
        ticket.write(out);
        out.push(b' ');
        out.extend_from_slice(id.as_bytes());
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(rest);
        let mut length = out.len() - content;
        for digit in out[length_at..length_at + LENGTH_DIGITS].iter_mut().rev() {
            *digit = b'0' + (length % 10) as u8;
            length /= 10;
        }
    }
}

/// The content of a request, as the worker reads it.
#[derive(Debug, Default, PartialEq)]
pub struct Content<'a> {
    pub ticket: Ticket,
    /// The identifier for the log.
    pub id: &'a str,
    /// Name and value of the header fields.
    pub fields: Vec<(&'a str, &'a str)>,
    pub body: &'a [u8],
}

impl<'a> Content<'a> {
    /// Reads what [`LaneRequest::write`] has written after its head; `None` where it is something else.
    pub fn read(mut bytes: &'a [u8]) -> Option<Self> {
        let ticket = Ticket::read(&mut bytes)?;
        let id = take_line(&mut bytes)?;
        let mut fields = Vec::with_capacity(8);
        loop {
            let line = take_line(&mut bytes)?;
            if line.is_empty() {
                return Some(Self { ticket, id, fields, body: bytes });
            }
            let colon = line.bytes().position(|byte| byte == b':')?;
            fields.push((&line[..colon], line[colon..].strip_prefix(": ")?));
        }
    }

    /// Reads the ticket alone.
    pub fn ticket(mut bytes: &[u8]) -> Option<Ticket> {
        Ticket::read(&mut bytes)
    }
}

/// The line at the start of `bytes`, without its end.
fn take_line<'a>(bytes: &mut &'a [u8]) -> Option<&'a str> {
    let end = bytes.iter().position(|byte| *byte == b'\n')?;
    let line = bytes[..end].strip_suffix(b"\r")?;
    *bytes = &bytes[end + 1..];
    std::str::from_utf8(line).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const TICKET: Ticket = Ticket { epoch: 2, place: 17 };

    fn written(request: &LaneRequest) -> String {
        let mut out = Vec::new();
        request.write(TICKET, "an-id", &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn request_is_read_as_it_is_written() {
        let mut request = LaneRequest::default();
        for body in ["", "abc", "\r\n\r\n"] {
            request.begin(b"POST", [b"/v1/pets", b"?a"], 0);
            request.field("Content-Type", b"text/x: y");
            request.field("Authorization", "Bearer \u{e9}".as_bytes());
            request.field("X", b"");
            request.end_head();
            request.body().extend_from_slice(body.as_bytes());
            assert_eq!(request.asked(), b"POST /v1/pets?a");
            let text = written(&request);
            let (head, content) = text.split_once("\r\n\r\n").unwrap();
            assert_eq!(head, format!("POST /v1/pets?a HTTP/1.1\r\nContent-Length: {:06}", content.len()));
            let fields = vec![("Content-Type", "text/x: y"), ("Authorization", "Bearer ??"), ("X", "")];
            let read = Content { ticket: TICKET, id: "an-id", fields, body: body.as_bytes() };
            assert_eq!(Content::read(content.as_bytes()), Some(read));
            assert_eq!(Content::ticket(content.as_bytes()), Some(TICKET));
        }
    }

    #[test]
    fn longest_request_has_its_length() {
        let mut request = LaneRequest::default();
        request.begin(b"POST", [b"/", b""], 0);
        request.field("X", &[b'x'; MAX_HEAD_BYTES]);
        request.end_head();
        request.body().extend_from_slice(&[b'x'; MAX_BODY_BYTES]);
        let text = written(&request);
        let (head, content) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!(": {:06}", content.len())), "{head}");
    }

    #[test]
    fn other_content_is_not_read() {
        for text in
            ["", "x", "1.2 id", "1.2 id\r\n", "1.2 id\r\nX\r\n\r\n", "1.2 id\r\nX:y\r\n\r\n", "1.2 id\n\n"]
        {
            assert_eq!(Content::read(text.as_bytes()), None, "{text:?}");
        }
    }
}
