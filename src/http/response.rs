//! What a handler answers, and how it is printed.

use std::borrow::Cow;

use serde::Serialize;

/// What a handler answers. General header fields (Date, Server, …) are the gate's.
#[derive(Clone, Debug, Default)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// Header fields besides Content-Length.
    pub headers: Vec<(&'static str, Cow<'static, str>)>,
    /// The body; empty for 204.
    pub body: Vec<u8>,
}

impl Response {
    /// A response with `value` as its JSON body.
    pub fn json(status: u16, value: &impl Serialize) -> Self {
        let mut body = Vec::with_capacity(256);
        // Writing plain structs to memory cannot fail: no maps with odd keys, no I/O.
        let _ = serde_json::to_writer(&mut body, value);
        Self::json_bytes(status, body)
    }

    /// A response whose JSON body is already written.
    pub fn json_bytes(status: u16, body: Vec<u8>) -> Self {
        Self { status, headers: vec![("Content-Type", "application/json".into())], body }
    }

    /// Adds a header field.
    pub fn header(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Writes the response as an HTTP/1.1 message, framed by Content-Length (none with 204).
    pub fn write_to(&self, out: &mut Vec<u8>) {
        write_status_line(out, self.status);
        for (name, value) in &self.headers {
            for part in [name, ": ", value, "\r\n"] {
                out.extend_from_slice(part.as_bytes());
            }
        }
        // RFC 9110, section 8.6: no Content-Length in a 204.
        if self.status != 204 {
            out.extend_from_slice(b"Content-Length: ");
            write_decimal(out, self.body.len());
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
        out.extend_from_slice(&self.body);
    }
}

/// Writes `HTTP/1.1 200 OK` and its line end.
pub fn write_status_line(out: &mut Vec<u8>, status: u16) {
    out.extend_from_slice(b"HTTP/1.1 ");
    write_decimal(out, usize::from(status));
    out.push(b' ');
    out.extend_from_slice(reason(status).as_bytes());
    out.extend_from_slice(b"\r\n");
}

/// Writes a number in decimal digits.
pub fn write_decimal(out: &mut Vec<u8>, number: usize) {
    use std::io::Write;
    // Writing to memory cannot fail.
    let _ = write!(out, "{number}");
}

/// The reason phrase of a status (RFC 9110, section 15).
fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        204 => "No Content",
        400 => "Bad Request",
        401 => "Unauthorized",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn response_is_framed_by_content_length() {
        let mut out = Vec::new();
        Response::json(200, &[1, 2]).header("Location", "/v1/pets/1").write_to(&mut out);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(
            text,
            "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nLocation: /v1/pets/1\r\nContent-Length: 5\r\n\r\n[1,2]"
        );
    }

    #[test]
    fn no_content_has_no_content_length() {
        let mut out = Vec::new();
        Response { status: 204, ..Response::default() }.write_to(&mut out);
        assert_eq!(out, b"HTTP/1.1 204 No Content\r\n\r\n");
    }

    #[test]
    fn every_error_status_has_a_reason() {
        for code in crate::http::error::Code::ALL {
            assert_ne!(reason(code.status()), "", "{code:?}");
        }
    }
}
