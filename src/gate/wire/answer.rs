//! Responses: what comes out of a lane, and what the client gets.

use std::time::{SystemTime, UNIX_EPOCH};

use crate::gate::wire::exchange::Exchange;
use crate::http::response::{write_decimal, write_status_line};

/// The most header fields of a lane's response.
const MAX_HEADERS: usize = 16;
/// Room for the head of a response.
const HEAD_ROOM: usize = 640;

/// A whole response of a lane, still in the lane's buffer.
pub struct Answer<'a> {
    pub status: u16,
    headers: [httparse::Header<'a>; MAX_HEADERS],
    pub body: &'a [u8],
}

/// The bytes are no response.
#[derive(Debug, PartialEq)]
pub struct Malformed;

impl<'a> Answer<'a> {
    /// Reads the response at the start of `bytes`, and says how long it is; `None` while it is not whole.
    ///
    /// # Errors
    /// Where the bytes are no response framed by Content-Length.
    pub fn parse(bytes: &'a [u8]) -> Result<Option<(Self, usize)>, Malformed> {
        let mut headers = [httparse::EMPTY_HEADER; MAX_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let head = match response.parse(bytes) {
            Ok(httparse::Status::Complete(head)) => head,
            Ok(httparse::Status::Partial) => return Ok(None),
            Err(_) => return Err(Malformed),
        };
        let status = response.code.ok_or(Malformed)?;
        let mut length = 0;
        for header in response.headers.iter() {
            if header.name.eq_ignore_ascii_case("Content-Length") {
                let digits = std::str::from_utf8(header.value).map_err(|_| Malformed)?;
                length = digits.parse().map_err(|_| Malformed)?;
            } else if header.name.eq_ignore_ascii_case("Transfer-Encoding") {
                return Err(Malformed);
            }
        }
        let Some(body) = bytes.get(head..).and_then(|rest| rest.get(..length)) else { return Ok(None) };
        Ok(Some((Self { status, headers, body }, head + length)))
    }

    /// Whether tiny_http answered by itself: its failures have no body, and ours always have one.
    pub fn is_bare_failure(&self) -> bool {
        self.status >= 400 && self.body.is_empty()
    }

    /// Writes the response as the client gets it.
    pub fn write_to(&self, exchange: &Exchange, close: bool, general: &GeneralFields, out: &mut Vec<u8>) {
        out.reserve(HEAD_ROOM + self.body.len());
        write_status_line(out, self.status);
        out.extend_from_slice(&general.block);
        write_field(out, "X-Request-Id", exchange.id.as_str().as_bytes());
        if close {
            write_field(out, "Connection", b"close");
        } else if exchange.is_http_1_0 {
            write_field(out, "Connection", b"keep-alive");
        }
        for header in self.headers.iter().take_while(|header| !header.name.is_empty()) {
            let is_ours = ["Content-Length", "Connection", "Date", "Server"]
                .iter()
                .any(|name| header.name.eq_ignore_ascii_case(name));
            if !is_ours {
                write_field(out, header.name, header.value);
            }
        }
        // RFC 9110, section 8.6: no Content-Length in a 204; HEAD gets that of GET.
        if self.status != 204 {
            out.extend_from_slice(b"Content-Length: ");
            write_decimal(out, self.body.len());
            out.extend_from_slice(b"\r\n");
        }
        out.extend_from_slice(b"\r\n");
        if !exchange.is_head {
            out.extend_from_slice(self.body);
        }
    }
}

fn write_field(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b": ");
    out.extend_from_slice(value);
    out.extend_from_slice(b"\r\n");
}

/// The header fields that every response has, made once a second.
pub struct GeneralFields {
    block: Vec<u8>,
    second: u64,
}

impl GeneralFields {
    pub fn new() -> Self {
        let mut fields = Self { block: Vec::new(), second: 0 };
        fields.refresh(SystemTime::now());
        fields
    }

    /// Brings the date up to date.
    pub fn refresh(&mut self, now: SystemTime) {
        let second = now.duration_since(UNIX_EPOCH).unwrap_or_default().as_secs();
        if second == self.second && !self.block.is_empty() {
            return;
        }
        self.second = second;
        self.block.clear();
        let time =
            jiff::Timestamp::from_second(i64::try_from(second).unwrap_or(i64::MAX)).unwrap_or_default();
        if let Ok(date) = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&time) {
            write_field(&mut self.block, "Date", date.as_bytes());
        }
        write_field(&mut self.block, "Server", b"petstore");
        write_field(&mut self.block, "Cache-Control", b"no-store");
        write_field(&mut self.block, "X-Content-Type-Options", b"nosniff");
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::gate::wire::request_id::RequestId;
    use std::time::{Duration, Instant};

    const REPLY: &[u8] = b"HTTP/1.1 200 OK\r\nLink: x\r\nServer: lane\r\nContent-Length: 3\r\n\r\nabcHTTP";

    fn written(exchange: &Exchange, close: bool) -> String {
        let mut general = GeneralFields::new();
        general.refresh(UNIX_EPOCH + Duration::from_secs(784_111_777));
        let mut out = Vec::new();
        Answer::parse(REPLY).unwrap().unwrap().0.write_to(exchange, close, &general, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn response_is_taken_only_whole() {
        let end = REPLY.len() - 4;
        for length in 0..end {
            assert!(Answer::parse(&REPLY[..length]).unwrap().is_none(), "{length}");
        }
        let (answer, length) = Answer::parse(REPLY).unwrap().unwrap();
        assert_eq!((answer.status, answer.body, length), (200, &b"abc"[..], end));
        assert!(Answer::parse(b"nonsense\r\n\r\n").is_err());
        assert!(Answer::parse(b"HTTP/1.1 200 OK\r\nContent-Length: x\r\n\r\n").is_err());
    }

    #[test]
    fn client_gets_the_general_fields_too() {
        let id = RequestId::from_client(b"id").unwrap();
        let exchange = Exchange::new(id, Instant::now());
        let general = "HTTP/1.1 200 OK\r\nDate: Sun, 06 Nov 1994 08:49:37 GMT\r\nServer: petstore\r\n\
            Cache-Control: no-store\r\nX-Content-Type-Options: nosniff\r\nX-Request-Id: id\r\n";
        assert_eq!(written(&exchange, false), format!("{general}Link: x\r\nContent-Length: 3\r\n\r\nabc"));
        let mut head = exchange.clone();
        head.is_head = true;
        assert_eq!(
            written(&head, true),
            format!("{general}Connection: close\r\nLink: x\r\nContent-Length: 3\r\n\r\n")
        );
        let mut old = exchange;
        old.is_http_1_0 = true;
        assert!(written(&old, false).contains("\r\nConnection: keep-alive\r\n"));
    }
}
