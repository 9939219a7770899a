//! A client that checks every reply for what all replies promise.

use std::collections::HashSet;
use std::fmt;
use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use serde_json::Value;
use socket2::SockRef;

use crate::openapi;
use crate::wait::PATIENCE;

/// A reply that keeps the promises of all replies.
#[derive(Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(
            f,
            "{} {:?} {}",
            self.status,
            self.headers,
            String::from_utf8_lossy(&self.body)
        )
    }
}

impl Reply {
    /// The value of a header field, which may be there at most once.
    pub fn header(&self, name: &str) -> Option<&str> {
        let mut values = self
            .headers
            .iter()
            .filter(|(n, _)| n.eq_ignore_ascii_case(name));
        let value = values.next().map(|(_, value)| value.as_str());
        assert!(values.next().is_none(), "{name} is there twice: {self:?}");
        value
    }

    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {self:?}"))
    }

    #[track_caller]
    pub fn expect(&self, status: u16) -> &Self {
        assert_eq!(self.status, status, "{self:?}");
        self
    }

    /// Expects a failure with this code and a message that contains `named`.
    #[track_caller]
    pub fn expect_error(&self, status: u16, code: &str, named: &str) -> &Self {
        self.expect(status);
        assert_eq!(self.json()["code"], code, "{self:?}");
        let message = self.json()["message"].as_str().unwrap().to_owned();
        assert!(message.contains(named), "{message} does not name {named}");
        self
    }
}

/// One connection.
pub struct Connection {
    stream: TcpStream,
    received: Vec<u8>,
}

impl Connection {
    pub fn open(address: SocketAddr) -> Self {
        Self::try_open(address).unwrap()
    }

    /// Opens one to a service that may be gone.
    pub fn try_open(address: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect_timeout(&address, PATIENCE)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_write_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self {
            stream,
            received: Vec::new(),
        })
    }

    /// Opens one to a Unix socket, whose stream reads and writes as that of TCP does.
    pub fn open_unix(path: &Path) -> Self {
        let stream = UnixStream::connect(path).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Self {
            stream: OwnedFd::from(stream).into(),
            received: Vec::new(),
        }
    }

    pub fn send(&mut self, bytes: impl AsRef<[u8]>) {
        self.stream.write_all(bytes.as_ref()).unwrap();
    }

    /// Sends bytes that the server may refuse before it has received all of them.
    pub fn try_send(&mut self, bytes: impl AsRef<[u8]>) {
        self.is_taken(bytes);
    }

    /// Sends, and returns whether the connection was still open.
    pub fn is_taken(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.stream.write_all(bytes.as_ref()).is_ok()
    }

    pub fn end_sending(&mut self) {
        self.stream.shutdown(Shutdown::Write).unwrap();
    }

    fn read_more(&mut self) -> usize {
        let mut piece = [0; 64 * 1024];
        match self.stream.read(&mut piece) {
            Ok(count) => {
                self.received.extend_from_slice(&piece[..count]);
                count
            }
            Err(error)
                if [ErrorKind::ConnectionReset, ErrorKind::BrokenPipe].contains(&error.kind()) =>
            {
                0
            }
            // The machine was stopped for a moment.
            Err(error) if error.kind() == ErrorKind::Interrupted => self.read_more(),
            Err(error) => panic!("no reply: {error}"),
        }
    }

    /// Reads up to and including `end`; `None` if the connection ends first.
    fn read_until(&mut self, end: &[u8]) -> Option<Vec<u8>> {
        loop {
            if let Some(at) = self
                .received
                .windows(end.len())
                .position(|window| window == end)
            {
                return Some(self.received.drain(..at + end.len()).collect());
            }
            if self.read_more() == 0 {
                return None;
            }
        }
    }

    /// Reads one reply to a request other than HEAD.
    #[track_caller]
    pub fn reply(&mut self) -> Reply {
        self.reply_to("GET")
    }

    /// Reads one reply to a request other than HEAD; `None` if the connection ends before its first byte.
    #[track_caller]
    pub fn reply_unless_ended(&mut self) -> Option<Reply> {
        (!self.received.is_empty() || self.read_more() > 0).then(|| self.reply())
    }

    /// Reads one reply to a request with this method.
    #[track_caller]
    pub fn reply_to(&mut self, method: &str) -> Reply {
        let reply = self.whole_reply_to(method);
        reply.unwrap_or_else(|| {
            panic!(
                "closed within: {:?}",
                String::from_utf8_lossy(&self.received)
            )
        })
    }

    /// Reads one reply to a request other than HEAD; `None` if the connection ends before its last byte.
    pub fn whole_reply(&mut self) -> Option<Reply> {
        self.whole_reply_to("GET")
    }

    #[track_caller]
    fn whole_reply_to(&mut self, method: &str) -> Option<Reply> {
        let head = String::from_utf8(self.read_until(b"\r\n\r\n")?).unwrap();
        let mut lines = head.trim_end_matches("\r\n").split("\r\n");
        let status = lines
            .next()
            .unwrap()
            .strip_prefix("HTTP/1.1 ")
            .expect("a status line")[..3]
            .parse()
            .unwrap();
        let headers: Vec<(String, String)> = lines
            .map(|line| {
                line.split_once(": ")
                    .unwrap_or_else(|| panic!("no header: {line}"))
            })
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        let mut reply = Reply {
            status,
            headers,
            body: Vec::new(),
        };
        let length = reply
            .header("Content-Length")
            .map(|digits| digits.parse::<usize>().unwrap());
        if method != "HEAD" {
            while self.received.len() < length.unwrap_or(0) {
                if self.read_more() == 0 {
                    return None;
                }
            }
            reply.body = self.received.drain(..length.unwrap_or(0)).collect();
        }
        check(&reply, method, length);
        Some(reply)
    }

    /// Makes the end of the connection a reset.
    pub fn reset(self) {
        SockRef::from(&self.stream)
            .set_linger(Some(Duration::ZERO))
            .unwrap();
    }

    /// Waits for a reply, and reads at most this many bytes of it.
    pub fn taste(&mut self, most: usize) {
        let _ = self.stream.read(&mut vec![0; most]);
    }

    /// Reads the interim reply that asks for the body.
    pub fn expect_continue(&mut self) {
        let reply = self.read_until(b"\r\n\r\n").unwrap();
        assert_eq!(reply, b"HTTP/1.1 100 Continue\r\n\r\n");
    }

    /// Waits for the server to close, without a further byte.
    #[track_caller]
    pub fn expect_end(&mut self) {
        assert_eq!(
            self.read_more(),
            0,
            "unasked: {:?}",
            String::from_utf8_lossy(&self.received)
        );
        assert!(
            self.received.is_empty(),
            "unasked: {:?}",
            String::from_utf8_lossy(&self.received)
        );
    }

    /// Sends one request without a body, and reads its reply.
    #[track_caller]
    pub fn get(&mut self, target: &str, key: &str) -> Reply {
        self.send(get(target, key));
        let reply = self.reply();
        openapi::check("GET", target, &reply);
        reply
    }

    /// Every item of a list, from all of its pages.
    #[track_caller]
    pub fn get_all(&mut self, target: &str, key: &str) -> Vec<Value> {
        let (mut target, mut items) = (target.to_owned(), Vec::new());
        loop {
            let reply = self.get(&target, key);
            items.extend(reply.expect(200).json().as_array().unwrap().clone());
            let Some(link) = reply.header("Link") else {
                return items;
            };
            let (next, rest) = link.strip_prefix('<').unwrap().split_once('>').unwrap();
            assert_eq!(rest, "; rel=\"next\"");
            target = next.to_owned();
        }
    }

    /// Sends one create, and reads its reply.
    #[track_caller]
    pub fn post(&mut self, target: &str, key: &str, body: &str) -> Reply {
        self.send(post(target, key, body));
        let reply = self.reply();
        openapi::check("POST", target, &reply);
        reply
    }
}

/// A request without a body, with these header fields, each with its line end.
pub fn request(method: &str, target: &str, fields: &str) -> String {
    format!("{method} {target} HTTP/1.1\r\nHost: h\r\n{fields}\r\n")
}

/// A request without a body.
pub fn get(target: &str, key: &str) -> String {
    request("GET", target, &format!("Authorization: Bearer {key}\r\n"))
}

/// A request with a key, these further header fields, each with its line end, and a body.
pub fn with_body(method: &str, target: &str, key: &str, fields: &str, body: &str) -> String {
    let length = body.len();
    let fields = format!("Authorization: Bearer {key}\r\n{fields}Content-Length: {length}\r\n");
    request(method, target, &fields) + body
}

/// A create.
pub fn post(target: &str, key: &str, body: &str) -> String {
    with_body("POST", target, key, "", body)
}

/// Header fields that a reply may have; any other would be a surprise.
const KNOWN_HEADERS: &[&str] = &[
    "Accept",
    "Accept-Encoding",
    "Accept-Patch",
    "Access-Control-Allow-Headers",
    "Access-Control-Allow-Methods",
    "Access-Control-Allow-Origin",
    "Access-Control-Expose-Headers",
    "Access-Control-Max-Age",
    "Age",
    "Allow",
    "Cache-Control",
    "Clear-Site-Data",
    "Connection",
    "Content-Encoding",
    "Content-Length",
    "Content-Security-Policy",
    "Content-Type",
    "Date",
    "Deprecation",
    "ETag",
    "Idempotency-Replayed",
    "Ignored-Parameters",
    "Key-Scope",
    "Link",
    "Location",
    "Referrer-Policy",
    "Retry-After",
    "Server",
    "Sunset",
    "Vary",
    "WWW-Authenticate",
    "X-Content-Type-Options",
    "X-Request-Id",
];

/// Checks the promises of every reply.
#[track_caller]
fn check(reply: &Reply, method: &str, length: Option<usize>) {
    let mut seen = HashSet::new();
    for (name, _) in &reply.headers {
        assert!(
            KNOWN_HEADERS.contains(&name.as_str()),
            "{name} is unknown: {reply:?}"
        );
        // Even a list is one line: some proxies keep one of two.
        assert!(seen.insert(name), "{name} is there twice: {reply:?}");
    }
    assert_eq!(reply.header("Server"), Some("petstore"), "{reply:?}");
    // Only what has a tag may be cached.
    let is_document = reply.header("ETag").is_some();
    assert_eq!(
        reply.header("Cache-Control") == Some("no-store"),
        !is_document,
        "{reply:?}"
    );
    assert_eq!(
        reply.header("X-Content-Type-Options"),
        Some("nosniff"),
        "{reply:?}"
    );
    assert!(
        reply
            .header("Date")
            .is_some_and(|date| date.len() == 29 && date.ends_with(" GMT")),
        "{reply:?}"
    );
    assert!(
        reply
            .header("X-Request-Id")
            .is_some_and(|id| !id.is_empty()),
        "{reply:?}"
    );
    let has_no_body = [204, 304].contains(&reply.status);
    assert_eq!(length.is_none(), has_no_body, "{reply:?}");
    let is_redirect = [301, 302, 307, 308].contains(&reply.status) && reply.body.is_empty();
    let is_json = reply.header("Content-Type") == Some("application/json");
    let is_text = reply
        .header("Content-Type")
        .is_some_and(|kind| kind.starts_with("text/plain; "));
    // A deploy may have a page of its own for what is not there.
    let is_page =
        reply.status == 404 && reply.header("Content-Type") == Some("text/html; charset=utf-8");
    assert!(
        is_json || has_no_body || is_redirect || is_document || is_text || is_page,
        "{reply:?}"
    );
    assert_eq!(
        reply.header("Content-Type").is_none(),
        has_no_body || is_redirect,
        "{reply:?}"
    );
    assert!(
        !is_redirect || reply.header("Location").is_some(),
        "{reply:?}"
    );
    let is_final = String::from_utf8_lossy(&reply.body).contains("\"read_only\"");
    assert_eq!(
        reply.header("Retry-After").is_some(),
        reply.status == 503 && !is_final,
        "{reply:?}"
    );
    assert_eq!(
        reply.header("WWW-Authenticate").is_some(),
        [401, 403].contains(&reply.status),
        "{reply:?}"
    );
    if reply.status >= 400 && method != "HEAD" && !is_page {
        let error = reply.json();
        let members: Vec<_> = error.as_object().unwrap().keys().collect();
        assert_eq!(members, ["code", "message", "status"], "{reply:?}");
        assert_eq!(error["status"], reply.status, "{reply:?}");
        let code = error["code"].as_str().unwrap();
        assert!(
            code.bytes().all(|b| b.is_ascii_lowercase() || b == b'_'),
            "{reply:?}"
        );
        assert!(error["message"].as_str().unwrap().len() > 10, "{reply:?}");
    }
}
