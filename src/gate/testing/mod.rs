//! Helpers for unit tests: the two ends of a lane, driven by hand.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use std::io::{Read, Write};
use std::net::TcpStream;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

use crate::addresses::TrustedProxies;
use crate::lane::{LaneRequest, LaneResponse, Ticket, write_response};
use crate::wire::cors::Cors;
use crate::wire::head::Intake;
use crate::wire::request_id::RequestIds;
use petstore_base::http::Response;
use petstore_base::http::limits::MAX_BODY_BYTES;
use petstore_base::http::response::Disposition;
use petstore_base::testing::PATIENCE;

impl Default for Intake {
    fn default() -> Self {
        Self {
            ids: RequestIds::default(),
            forwarded: Vec::new(),
            trusted: TrustedProxies::default(),
            cors: Cors::default(),
            access_log: "access",
            logs_details: false,
            max_body: MAX_BODY_BYTES,
        }
    }
}

/// The worker's end of a lane, driven by hand.
pub struct FarEnd(UnixListener);

impl FarEnd {
    pub fn bind(path: &Path) -> Self {
        Self(UnixListener::bind(path).unwrap())
    }

    pub fn accept(&self) -> UnixStream {
        self.0.accept().unwrap().0
    }
}

/// Reads one request from the lane: its ticket and its path.
pub fn request(lane: &mut UnixStream) -> (Ticket, String) {
    lane.set_read_timeout(Some(PATIENCE)).unwrap();
    let mut bytes = Vec::new();
    while !bytes.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        lane.read_exact(&mut byte).unwrap();
        bytes.extend(byte);
    }
    let head = str::from_utf8(&bytes).unwrap();
    let length = head
        .split("Content-Length: ")
        .nth(1)
        .unwrap()
        .trim_end()
        .parse::<usize>()
        .unwrap();
    let end = bytes.len();
    bytes.resize(end + length, 0);
    lane.read_exact(&mut bytes[end..]).unwrap();
    let request = OnLane::parse(&bytes);
    (request.ticket, request.target)
}

/// A request on a lane, read apart from the codec.
#[derive(Debug, PartialEq)]
pub struct OnLane {
    pub method: String,
    pub target: String,
    pub ticket: Ticket,
    pub id: String,
    /// The forwarded fields.
    pub fields: Vec<(String, String)>,
    pub body: Vec<u8>,
}

impl OnLane {
    /// Reads a whole request. Its lines must be ASCII, without line breaks inside.
    pub fn parse(bytes: &[u8]) -> Self {
        let end_of = |bytes: &[u8]| {
            4 + bytes
                .windows(4)
                .position(|four| four == b"\r\n\r\n")
                .unwrap()
        };
        let (head, content) = bytes.split_at(end_of(bytes));
        let (ticket, after) = content.split_first_chunk().unwrap();
        let (lines, body) = after.split_at(end_of(after));
        let text = |bytes| {
            str::from_utf8(bytes)
                .unwrap()
                .strip_suffix("\r\n\r\n")
                .unwrap()
        };
        let (head, lines) = (text(head), text(lines));
        for part in [head, lines] {
            assert!(
                part.is_ascii() && !part.replace("\r\n", "").contains(['\r', '\n']),
                "{part:?}"
            );
        }
        let (line, length) = head.split_once("\r\nContent-Length: ").unwrap();
        assert_eq!(length, content.len().to_string());
        let words: Vec<_> = line.split(' ').collect();
        assert_eq!((words.len(), words[2]), (3, "HTTP/1.1"), "{head:?}");
        let mut lines = lines.split("\r\n");
        let id = lines.next().unwrap();
        let fields = lines.map(|line| line.split_once(": ").unwrap());
        Self {
            method: words[0].to_owned(),
            target: words[1].to_owned(),
            ticket: Ticket::from_be_bytes(*ticket),
            id: id.to_owned(),
            fields: fields
                .map(|(name, value)| (name.to_owned(), value.to_owned()))
                .collect(),
            body: body.to_vec(),
        }
    }
}

/// Reads one request with this path, and returns its ticket.
pub fn expect(lane: &mut UnixStream, path: &str) -> Ticket {
    let (ticket, asked) = request(lane);
    assert_eq!(asked, path);
    ticket
}

/// Responds with this body.
pub fn answer(lane: &mut UnixStream, ticket: Ticket, body: &str) {
    respond_with(lane, ticket, &Response::new(200, body.as_bytes().to_vec()));
}

/// Writes a response.
pub fn respond_with(lane: &mut UnixStream, ticket: Ticket, response: &Response) {
    let mut bytes = Vec::new();
    write_response(response, ticket, &mut bytes).unwrap();
    lane.write_all(&bytes).unwrap();
}

/// The gate's end of a lane, driven by hand.
pub struct NearEnd {
    pub stream: UnixStream,
    read: Vec<u8>,
}

impl NearEnd {
    pub fn new(stream: UnixStream) -> Self {
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self {
            stream,
            read: Vec::new(),
        }
    }

    /// Sends a request with this ticket, and a body of `length` bytes.
    pub fn ask(&mut self, place: usize, target: &str, length: usize) {
        let (mut request, mut bytes) = (LaneRequest::default(), Vec::new());
        request.begin(b"POST", [target.as_bytes(), b""], 0);
        request.end_head();
        request.body().extend(std::iter::repeat_n(b'x', length));
        request.write(place as Ticket, b"an-id", &mut bytes);
        self.stream.write_all(&bytes).unwrap();
    }

    /// Reads one response: its ticket and its body, after the status if that is not 200; or the name of what the gate is to do instead.
    pub fn answer(&mut self) -> (usize, String) {
        loop {
            if let Some(response) = LaneResponse::read(&self.read).unwrap() {
                let body = String::from_utf8(response.body.to_vec()).unwrap();
                let status = response.status;
                let answer = match response.disposition {
                    Disposition::Send if status == 200 => body,
                    Disposition::Send => format!("{status} {body}"),
                    other => format!("{other:?}"),
                };
                let (place, length) = (response.ticket as usize, response.length);
                self.read.drain(..length);
                return (place, answer);
            }
            let mut piece = [0; 4096];
            let length = self.stream.read(&mut piece).unwrap();
            assert_ne!(
                length,
                0,
                "the lane broke off: {}",
                String::from_utf8_lossy(&self.read)
            );
            self.read.extend_from_slice(&piece[..length]);
        }
    }
}

/// Reads until the connection is closed.
pub fn all(mut client: TcpStream) -> String {
    let mut text = String::new();
    client.read_to_string(&mut text).unwrap();
    text
}
