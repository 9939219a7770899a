//! One connection whose end is no failure of the run, and requests as bytes.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};

use socket2::SockRef;

use crate::client::{Reply, check};
use crate::wait::PATIENCE;

/// A request as it goes out.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: &'static str,
    pub target: String,
    /// Each with its line end.
    pub fields: String,
    pub body: Vec<u8>,
}

impl Request {
    pub fn get(target: &str, key: &str, id: &str) -> Self {
        let fields = format!("Authorization: Bearer {key}\r\nX-Request-Id: {id}\r\n");
        Self { method: "GET", target: target.to_owned(), fields, body: Vec::new() }
    }

    pub fn post(key: &str, id: &str, once: Option<&str>, body: String) -> Self {
        let mut request = Self::get("/v1/pets", key, id);
        request.method = "POST";
        request.fields += &once.map(|once| format!("Idempotency-Key: {once}\r\n")).unwrap_or_default();
        request.body = body.into_bytes();
        request
    }

    pub fn bytes(&self) -> Vec<u8> {
        let length = match self.method {
            "POST" => format!("Content-Length: {}\r\n", self.body.len()),
            _ => String::new(),
        };
        let Self { method, target, fields, body } = self;
        [format!("{method} {target} HTTP/1.1\r\nHost: h\r\n{fields}{length}\r\n").as_bytes(), body].concat()
    }

    /// With its body in chunks of up to 100 bytes.
    pub fn chunked(&self) -> Vec<u8> {
        let Self { method, target, fields, body } = self;
        let head =
            format!("{method} {target} HTTP/1.1\r\nHost: h\r\n{fields}Transfer-Encoding: chunked\r\n\r\n");
        let mut bytes = head.into_bytes();
        for chunk in body.chunks(100) {
            bytes.extend(format!("{:x}\r\n", chunk.len()).bytes());
            bytes.extend(chunk);
            bytes.extend(b"\r\n");
        }
        bytes.extend(b"0\r\n\r\n");
        bytes
    }
}

/// One connection.
pub struct Wire {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Wire {
    /// `None` if nobody listens.
    pub fn open(address: SocketAddr) -> Option<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE).ok()?;
        stream.set_nodelay(true).ok()?;
        stream.set_read_timeout(Some(PATIENCE)).ok()?;
        stream.set_write_timeout(Some(PATIENCE)).ok()?;
        Some(Self { stream, received: Vec::new() })
    }

    /// Sends what it can. If that is not all, the response, or its absence, tells.
    pub fn send(&mut self, bytes: &[u8]) {
        let _ = self.stream.write_all(bytes);
    }

    /// Makes the end of the connection a reset.
    pub fn reset(self) {
        let _ = SockRef::from(&self.stream).set_linger(Some(std::time::Duration::ZERO));
    }

    /// Reads a little; 0 when the connection has ended.
    fn read_more(&mut self) -> usize {
        let mut piece = [0; 16 * 1024];
        loop {
            match self.stream.read(&mut piece) {
                Ok(count) => {
                    self.received.extend_from_slice(&piece[..count]);
                    return count;
                }
                // The run was stopped for a moment.
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if [ErrorKind::WouldBlock, ErrorKind::TimedOut].contains(&error.kind()) => {
                    panic!("no response within {PATIENCE:?}");
                }
                Err(_) => return 0,
            }
        }
    }

    /// Waits for the response, and reads no more than so many bytes of it.
    pub fn take(&mut self, most: usize) {
        let _ = self.stream.read(&mut vec![0; most]);
    }

    /// Reads one response and checks what all responses promise; `None` if the connection ends first.
    pub fn reply(&mut self) -> Option<Reply> {
        let end = loop {
            if let Some(at) = self.received.windows(4).position(|window| window == b"\r\n\r\n") {
                break at;
            }
            if self.read_more() == 0 {
                return None;
            }
        };
        let head: Vec<u8> = self.received.drain(..end + 4).collect();
        let head = String::from_utf8(head).expect("a head in UTF-8");
        let mut lines = head.trim_end_matches("\r\n").split("\r\n");
        let line = lines.next().and_then(|line| line.strip_prefix("HTTP/1.1 ")).expect("a status line");
        let status = line[..3].parse().expect("a status");
        let headers = lines.map(|line| line.split_once(": ").expect("a header field"));
        let headers = headers.map(|(name, value)| (name.to_owned(), value.to_owned())).collect();
        let mut reply = Reply { status, headers, body: Vec::new() };
        let length = reply.header("Content-Length").map(|digits| digits.parse::<usize>().expect("a length"));
        while self.received.len() < length.unwrap_or(0) {
            if self.read_more() == 0 {
                return None;
            }
        }
        reply.body = self.received.drain(..length.unwrap_or(0)).collect();
        check(&reply, "GET", length);
        Some(reply)
    }
}
