//! A request on a lane: how the gate writes it, and how the worker reads it.
//!
//! ```text
//! GET /v1/pets/7 HTTP/1.1\r\n
//! Content-Length: 79\r\n
//! \r\n
//! the ticket, 16 bytes, and the-request's-identifier\r\n
//! Authorization: Bearer …\r\n
//! \r\n
//! the body
//! ```
//!
//! tiny_http reads a head byte by byte and allocates for each line, so the ticket and the header fields travel
//! in the content, which it reads in one piece.

use crate::http::response::{write_decimal, write_field};
use crate::lane::Ticket;
use crate::lane::position;

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
        write_decimal(out, Ticket::LENGTH + id.len() + 2 + rest.len());
        out.extend_from_slice(b"\r\n\r\n");
        out.extend_from_slice(&ticket.to_bytes());
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

#[cfg(test)]
mod tests {
    use super::*;

    const TICKET: Ticket = Ticket { epoch: 2, place: 17 };

    /// The head of a request on a lane, and its content.
    fn written(request: &LaneRequest) -> (String, Vec<u8>) {
        let mut head = Vec::new();
        request.write(TICKET, b"an-id", &mut head);
        let end = head.windows(4).position(|bytes| bytes == b"\r\n\r\n").unwrap();
        let content = head.split_off(end + 4);
        (String::from_utf8(head).unwrap(), content)
    }

    #[test]
    fn request_is_read_as_it_is_written() {
        let mut request = LaneRequest::default();
        for body in [&b""[..], b"abc", b"\r\n\r\n", b"\xff\n\r\n"] {
            request.begin(b"POST", [b"/v1/pets", b"?a"], 0);
            request.field("Content-Type", b"text/x: y");
            request.field("Authorization", "Bearer \u{e9}".as_bytes());
            request.field("X", b"");
            request.end_head();
            request.body().extend_from_slice(body);
            assert_eq!(request.line(), b"POST /v1/pets?a");
            let (head, content) = written(&request);
            let line = "POST /v1/pets?a HTTP/1.1\r\n";
            assert_eq!(head, format!("{line}Content-Length: {}\r\n\r\n", content.len()));
            let fields =
                vec![("Content-Type", "text/x: y"), ("Authorization", "Bearer \u{7f}\u{7f}"), ("X", "")];
            let (ticket, content) = Ticket::read(&content).unwrap();
            assert_eq!(ticket, TICKET);
            assert_eq!(Content::read(content), Some(Content { id: "an-id", fields, body }));
        }
    }

    #[test]
    fn other_content_is_not_read() {
        for text in ["", "x", "id", "id\r\n", "id\r\nX\r\n\r\n", "id\r\nX:y\r\n\r\n", "id\n\n"] {
            assert_eq!(Content::read(text.as_bytes()), None, "{text:?}");
        }
    }
}
