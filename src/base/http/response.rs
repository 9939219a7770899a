//! A handler's response, its header fields, and how the parts of a response are written.

use std::borrow::Cow;
use std::sync::Arc;

use serde::Serialize;

/// Space for the header fields that most responses have.
const FIELDS_CAPACITY: usize = 320;
/// Space for a header field of a copy.
const SPARE_CAPACITY: usize = 32;
/// The most characters of a key's name in the access log.
const MAX_KEY_NAME: usize = 256;

/// The log target of the access log, for `RUST_LOG`.
pub const ACCESS_LOG: &str = "petstore::access";

/// A handler's response. The gate adds the general header fields: `Cache-Control` unless the response has one, and
/// Date, Server and the framing of the message, which a handler may not set.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The header fields, in the order in which they were added.
    pub fields: Fields,
    body: ResponseBody,
    /// The name of the request's key, for the access log.
    pub key_name: Option<String>,
    /// The action of the gate.
    pub disposition: Disposition,
}

/// The action of the gate on a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// It sends the response to the client.
    Send,
    /// It passes the request on to the write lane.
    RetryOnWriter,
    /// It ends the client's connection without a response.
    Abort,
    /// It responds itself that the service has failed.
    Fail,
}

/// The bytes of a body, by their owner.
#[derive(Clone, Debug, PartialEq)]
pub enum ResponseBody {
    /// Of this response alone.
    Alone(Cow<'static, [u8]>),
    /// Shared with clones of the response.
    Shared(Arc<Vec<u8>>),
    /// The length alone, for HEAD.
    Length(usize),
}

impl<T: Into<Cow<'static, [u8]>>> From<T> for ResponseBody {
    fn from(bytes: T) -> Self {
        Self::Alone(bytes.into())
    }
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
    pub fn json_bytes(status: u16, body: impl Into<Cow<'static, [u8]>>) -> Self {
        Self::new(status, body).header("Content-Type", "application/json")
    }

    /// A response with a body of any kind, or none.
    pub fn new(status: u16, body: impl Into<ResponseBody>) -> Self {
        Self {
            status,
            fields: Fields {
                lines: Vec::with_capacity(FIELDS_CAPACITY),
                ..Fields::default()
            },
            body: body.into(),
            key_name: None,
            disposition: Disposition::Send,
        }
    }

    /// Creates an action for the gate that sends the client no response.
    pub fn only(disposition: Disposition) -> Self {
        Self {
            disposition,
            ..Self::new(204, b"")
        }
    }

    /// Shares the body between the clones of the response, for a response that is sent repeatedly.
    pub fn shared(self) -> Self {
        let body = match self.body {
            ResponseBody::Alone(bytes) => ResponseBody::Shared(Arc::new(bytes.into_owned())),
            other => other,
        };
        Self { body, ..self }
    }

    /// The response to HEAD in place of this one to GET (RFC 9110, section 9.3.2).
    pub fn without_body(self) -> Self {
        Self {
            body: ResponseBody::Length(self.length()),
            ..self
        }
    }

    /// The 304 in place of this response, for a client that has its body (RFC 9110, section 15.4.5).
    pub fn not_modified(mut self) -> Self {
        self.fields.remove("Content-Type");
        Self {
            status: 304,
            body: ResponseBody::Alone(Cow::Borrowed(b"")),
            ..self
        }
    }

    /// Adds a header field, other than Content-Length.
    pub fn header(mut self, name: &'static str, value: impl AsRef<[u8]>) -> Self {
        self.fields.add(name, value.as_ref());
        self
    }

    /// Adds header fields that are already printed.
    pub fn with(mut self, fields: &Fields) -> Self {
        self.fields.append(fields);
        self
    }

    /// Names the key of the request, for the access log. Characters that a header field cannot have become
    /// `?`.
    pub fn for_key(mut self, name: &str) -> Self {
        let graphic = |c: char| if c.is_ascii_graphic() { c } else { '?' };
        self.key_name = Some(name.chars().map(graphic).take(MAX_KEY_NAME).collect());
        self
    }

    /// The value of a header field; the name is case-sensitive.
    pub fn field(&self, name: &str) -> Option<&str> {
        std::str::from_utf8(find_field(&self.fields.lines, name)?).ok()
    }

    /// The body; empty for 204 and for HEAD.
    pub fn body(&self) -> &[u8] {
        match &self.body {
            ResponseBody::Alone(bytes) => bytes,
            ResponseBody::Shared(bytes) => bytes,
            ResponseBody::Length(_) => &[],
        }
    }

    /// The length of the body; for HEAD, that of the body of GET.
    pub fn length(&self) -> usize {
        if let ResponseBody::Length(length) = self.body {
            length
        } else {
            self.body().len()
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

/// Writes the Content-Length, and the empty line before the body. A 204 and a 304 have no Content-Length (RFC 9110,
/// section 8.6).
pub fn write_end_of_head(out: &mut Vec<u8>, status: u16, body_length: usize) {
    if status != 204 && status != 304 {
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
        410 => "Gone",
        412 => "Precondition Failed",
        413 => "Content Too Large",
        414 => "URI Too Long",
        415 => "Unsupported Media Type",
        417 => "Expectation Failed",
        421 => "Misdirected Request",
        422 => "Unprocessable Content",
        431 => "Request Header Fields Too Large",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        505 => "HTTP Version Not Supported",
        _ => "",
    }
}

/// Header fields as they are sent, a line each. They are checked and printed when they are added, so that sending them
/// copies one block.
#[derive(Debug, Default, PartialEq)]
pub struct Fields {
    /// The lines, each with its end.
    pub lines: Vec<u8>,
    /// Whether Cache-Control is among them.
    pub has_cache_control: bool,
    /// The reason why the response may not be sent.
    pub flaw: Option<&'static str>,
}

impl Clone for Fields {
    /// A copy with space for one more field, which a response that is kept gets each time that it is sent.
    fn clone(&self) -> Self {
        let mut lines = Vec::with_capacity(self.lines.len() + SPARE_CAPACITY);
        lines.extend_from_slice(&self.lines);
        Self { lines, ..*self }
    }
}

impl Fields {
    /// Adds a field, or notes the flaw of an invalid value. A further value of a list is added to its line, because some
    /// proxies keep only one line (nginx before 1.23). Vary comes first, where the gate adds to it.
    pub fn add(&mut self, name: &'static str, value: &[u8]) {
        if !is_text(value) {
            self.flaw = Some("a header field is not printable ASCII");
            return;
        }
        if ["Link", "Vary"].contains(&name)
            && let Some(before) = find_field(&self.lines, name).map(<[u8]>::to_vec)
        {
            self.remove(name);
            return self.add(name, &[&before, &b", "[..], value].concat());
        }
        let start = self.lines.len();
        write_field(&mut self.lines, name, value);
        if name == "Vary" {
            self.lines.rotate_left(start);
        }
        self.has_cache_control |= name.eq_ignore_ascii_case("Cache-Control");
    }

    /// Adds all fields of another block. It must have neither Vary nor a list that is also in this block.
    pub fn append(&mut self, other: &Self) {
        self.lines.extend_from_slice(&other.lines);
        self.has_cache_control |= other.has_cache_control;
        self.flaw = self.flaw.or(other.flaw);
    }

    /// Removes the first field of this name.
    pub fn remove(&mut self, name: &str) {
        let mut end = 0;
        let found = lines_of(&self.lines).find(|line| {
            end += line.len();
            value_in(line, name).is_some()
        });
        if let Some(length) = found.map(<[u8]>::len) {
            self.lines.drain(end - length..end);
        }
    }
}

/// The value of a field in a block of lines; the name is case-sensitive here.
pub fn find_field<'a>(lines: &'a [u8], name: &str) -> Option<&'a [u8]> {
    find_fields(lines, name).next()
}

/// Every value of a field in a block of lines up to an empty one, in their order.
pub fn find_fields<'a>(lines: &'a [u8], name: &str) -> impl Iterator<Item = &'a [u8]> {
    lines_of(lines)
        .take_while(|line| *line != b"\r\n")
        .filter_map(move |line| value_in(line, name))
}

/// The elements of a list, without empty ones (RFC 9110, section 5.6.1.2).
pub fn elements(list: &[u8]) -> impl Iterator<Item = &[u8]> {
    list.split(|b| *b == b',')
        .map(<[u8]>::trim_ascii)
        .filter(|element| !element.is_empty())
}

fn lines_of(lines: &[u8]) -> impl Iterator<Item = &[u8]> {
    lines.split_inclusive(|byte| *byte == b'\n')
}

fn value_in<'a>(line: &'a [u8], name: &str) -> Option<&'a [u8]> {
    line.strip_prefix(name.as_bytes())?
        .strip_prefix(b": ")?
        .strip_suffix(b"\r\n")
}

/// Returns whether a value is printable ASCII (RFC 9110, section 5.5).
fn is_text(value: &[u8]) -> bool {
    value.iter().fold(true, |is_text, b| {
        is_text & (*b == b'\t' || (0x20..0x7f).contains(b))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found_added_and_removed_by_name() {
        let mut fields = Fields::default();
        for (name, value) in [("A", "1"), ("AB", "2: 3"), ("C", ""), ("A", "4")] {
            fields.add(name, value.as_bytes());
        }
        assert_eq!(fields.lines, b"A: 1\r\nAB: 2: 3\r\nC: \r\nA: 4\r\n");
        let found = ["A", "AB", "C", "B", "a"].map(|name| find_field(&fields.lines, name));
        assert_eq!(
            found,
            [Some(&b"1"[..]), Some(b"2: 3"), Some(b""), None, None]
        );
        fields.remove("A");
        let mut all = Fields::default();
        all.add("cache-control", b"x");
        all.append(&fields);
        assert_eq!(
            all.lines,
            b"cache-control: x\r\nAB: 2: 3\r\nC: \r\nA: 4\r\n"
        );
        assert_eq!(
            (all.has_cache_control, fields.has_cache_control),
            (true, false)
        );
    }

    #[test]
    fn list_is_one_line_and_vary_the_first() {
        let mut fields = Fields::default();
        for (name, value) in [
            ("A", "1"),
            ("Link", "<x>"),
            ("Vary", "Accept"),
            ("Link", "<y>"),
            ("Vary", "B"),
            ("A", "2"),
        ] {
            fields.add(name, value.as_bytes());
        }
        assert_eq!(
            fields.lines,
            b"Vary: Accept, B\r\nA: 1\r\nLink: <x>, <y>\r\nA: 2\r\n"
        );
    }

    #[test]
    fn flaw_of_a_block_stays_with_what_it_is_added_to() {
        let mut flawed = Fields::default();
        flawed.add("X", b"\n");
        assert_eq!(flawed.lines, b"");
        let mut fields = Fields::default();
        fields.append(&flawed);
        fields.add("Y", b"z");
        assert!(fields.flaw.is_some());
    }
}
