//! What a handler answers, and how it is printed.

use std::borrow::Cow;

use serde::Serialize;

use crate::http::limits::MAX_RESPONSE_FIELDS;

/// The name and value of a header field.
pub type Field = (&'static str, Cow<'static, str>);

/// Room for the head of most responses.
const HEAD_ROOM: usize = 256;

/// Marks [`Response::pass_on`] on its way to the gate. No client sees it.
pub const PASS_ON: &str = "Pass-On";

/// Names the key of the request, on its way to the access log. No client sees it. As short as [`TICKET`].
pub const KEY_NAME: &str = "K";

/// Under which name `RUST_LOG` chooses the lines of the access log.
pub const ACCESS_LOG: &str = "petstore::access";

/// The header field by which the gate knows a request, and finds its response again: the number of the lane's
/// connection, a dot, that of the request, and in a request also a space and its identifier for the log. Its
/// name is short because every byte of it is read one by one. No client sees it.
pub const TICKET: &str = "T";

/// What a handler answers. General header fields (Date, Server, …) are the gate's, but where one of the same
/// name stands here, this one counts.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    status: u16,
    headers: Vec<Field>,
    body: Cow<'static, [u8]>,
    key_name: Option<String>,
}

/// The response breaks a rule that the one who reads it relies on.
#[derive(Debug, PartialEq)]
pub struct Unprintable(pub &'static str);

impl Response {
    /// A response with `value` as its JSON body.
    pub fn json(status: u16, value: &impl Serialize) -> Self {
        let mut body = Vec::with_capacity(256);
        // Writing plain structs to memory cannot fail: no maps with odd keys, no I/O.
        let _ = serde_json::to_writer(&mut body, value);
        Self::json_bytes(status, body)
    }

    /// A response whose JSON body is already written.
    pub fn json_bytes(status: u16, body: impl Into<Cow<'static, [u8]>>) -> Self {
        Self::new(status, body).header("Content-Type", "application/json")
    }

    /// A response with a body of any kind, or none.
    pub fn new(status: u16, body: impl Into<Cow<'static, [u8]>>) -> Self {
        Self { status, headers: Vec::new(), body: body.into(), key_name: None }
    }

    /// No response yet: the request is to go on, down the lane for writing.
    pub fn pass_on() -> Self {
        Self::new(204, b"").header(PASS_ON, "write")
    }

    /// Adds a header field, other than Content-Length.
    pub fn header(mut self, name: &'static str, value: impl Into<Cow<'static, str>>) -> Self {
        self.headers.push((name, value.into()));
        self
    }

    /// Says whose request it answers, for the access log. What cannot stand in a header field becomes `?`.
    pub fn for_key(mut self, name: &str) -> Self {
        let graphic = |c: char| if c.is_ascii_graphic() { c } else { '?' };
        self.key_name = Some(name.chars().map(graphic).collect());
        self
    }

    /// The HTTP status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// The header fields, in the order in which they were added.
    pub fn headers(&self) -> &[Field] {
        &self.headers
    }

    /// The name of the key of the request, where it is to be in the access log.
    pub fn key_name(&self) -> Option<&str> {
        self.key_name.as_deref()
    }

    /// The body; empty for 204.
    pub fn body(&self) -> &[u8] {
        &self.body
    }

    /// Writes the response as an HTTP/1.1 message, framed by Content-Length (none with 204), with one more
    /// header field in front.
    ///
    /// # Errors
    /// Where it could not be read again as what it is: then nothing is written.
    pub fn print(&self, first: (&str, &str), out: &mut Vec<u8>) -> Result<(), Unprintable> {
        self.check()?;
        out.reserve(HEAD_ROOM + self.body.len());
        write_status_line(out, self.status);
        write_field(out, first.0, first.1.as_bytes());
        if let Some(name) = &self.key_name {
            write_field(out, KEY_NAME, name.as_bytes());
        }
        for (name, value) in &self.headers {
            write_field(out, name, value.as_bytes());
        }
        write_end_of_head(out, self.status, self.body.len());
        out.extend_from_slice(&self.body);
        Ok(())
    }

    /// Holds to the bounds of a response.
    fn check(&self) -> Result<(), Unprintable> {
        if !(200..=599).contains(&self.status) {
            return Err(Unprintable("its status is not final"));
        }
        if has_no_body(self.status) && !self.body.is_empty() {
            return Err(Unprintable("it has a body that its status does not allow"));
        }
        if self.headers.len() > MAX_RESPONSE_FIELDS {
            return Err(Unprintable("it has too many header fields"));
        }
        // RFC 9110, section 5.5.
        let is_text = |value: &str| value.bytes().all(|b| b == b'\t' || (0x20..0x7f).contains(&b));
        // What is borrowed stands in the source; only what was made of other data can be anything.
        let is_sound = |value: &Cow<str>| matches!(value, Cow::Borrowed(_)) || is_text(value);
        if self.headers.iter().all(|(_, value)| is_sound(value)) {
            Ok(())
        } else {
            Err(Unprintable("a header field is not printable ASCII"))
        }
    }
}

/// Writes one header field.
pub fn write_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// Whether a response has neither a body nor a Content-Length (RFC 9110, section 8.6; that of a 304 would be
/// that of the 200).
fn has_no_body(status: u16) -> bool {
    status == 204 || status == 304
}

/// Writes what frames the body, and the empty line before it.
pub fn write_end_of_head(out: &mut Vec<u8>, status: u16, body_length: usize) {
    if !has_no_body(status) {
        out.extend_from_slice(b"Content-Length: ");
        write_decimal(out, body_length);
        out.extend_from_slice(b"\r\n");
    }
    out.extend_from_slice(b"\r\n");
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
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// The reason phrase of a status (RFC 9110, section 15).
pub fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        201 => "Created",
        202 => "Accepted",
        204 => "No Content",
        301 => "Moved Permanently",
        302 => "Found",
        304 => "Not Modified",
        307 => "Temporary Redirect",
        308 => "Permanent Redirect",
        400 => "Bad Request",
        401 => "Unauthorized",
        402 => "Payment Required",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
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

    fn printed(response: &Response) -> Result<String, Unprintable> {
        let mut out = Vec::new();
        let printed = response.print((TICKET, "1.2"), &mut out);
        assert!(printed.is_ok() || out.is_empty());
        printed.map(|()| String::from_utf8(out).unwrap())
    }

    #[test]
    fn response_is_framed_by_content_length() {
        let text = printed(&Response::json(200, &[1, 2]).header("Location", "/v1/pets/1")).unwrap();
        assert_eq!(
            text,
            "HTTP/1.1 200 OK\r\nT: 1.2\r\nContent-Type: application/json\r\nLocation: /v1/pets/1\r\n\
             Content-Length: 5\r\n\r\n[1,2]"
        );
    }

    #[test]
    fn name_of_a_key_is_one_word_whatever_it_is() {
        let text = printed(&Response::new(204, b"").for_key("a\r\nb \u{e9}")).unwrap();
        assert_eq!(text, "HTTP/1.1 204 No Content\r\nT: 1.2\r\nK: a??b??\r\n\r\n");
    }

    #[test]
    fn no_content_has_no_content_length() {
        let text = printed(&Response::new(204, b"")).unwrap();
        assert_eq!(text, "HTTP/1.1 204 No Content\r\nT: 1.2\r\n\r\n");
    }

    #[test]
    fn what_could_not_be_read_again_is_not_printed() {
        let ok = || Response::json(200, &());
        let full =
            (0..MAX_RESPONSE_FIELDS - 1).fold(ok(), |response, _| response.header("X", "\ty z~".to_owned()));
        assert!(printed(&full).is_ok());
        for response in [
            full.header("X", "y"),
            ok().header("X", "a\r\nY: b".to_owned()),
            ok().header("X", "a\nb".to_owned()),
            ok().header("X", "a\0b".to_owned()),
            ok().header("X", "\x7f".to_owned()),
            ok().header("X", "\u{e9}".to_owned()),
            Response::new(100, b""),
            Response::new(199, b""),
            Response::new(600, b""),
            Response::new(204, b"x"),
        ] {
            assert!(printed(&response).is_err(), "{response:?}");
        }
    }

    #[test]
    fn every_status_has_a_reason() {
        for status in
            [200, 201, 204].into_iter().chain(crate::http::Code::ALL.iter().map(|code| code.status()))
        {
            assert_ne!(reason(status), "", "{status}");
        }
    }
}
