//! The requests that are answered together. All come from one connection, so that their responses can be sent
//! in one write, and none can get into another connection.

use std::collections::VecDeque;
use std::io::Write;

use crate::http::{ApiError, Code, Request, Response};
use crate::lane::{Content, Ticket, write_response};

/// The most requests answered together.
const MAX_REQUESTS: usize = 512;
/// Room for the largest content of a request.
const MAX_CONTENT: usize = 128 * 1024;
/// The bytes of responses at which to send them, so that memory stays bounded.
const SEND_BYTES: usize = 64 * 1024;

/// A request taken from tiny_http, with its content read. Before that, tiny_http does not read the next
/// request.
pub struct Taken {
    request: tiny_http::Request,
    content: Vec<u8>,
    ticket: Ticket,
}

impl Taken {
    pub fn new(mut request: tiny_http::Request) -> Self {
        let mut content = Vec::with_capacity(request.body_length().unwrap_or(0).min(MAX_CONTENT));
        if let Err(error) = request.as_reader().read_to_end(&mut content) {
            // The gate sends complete requests, so its end of the lane is gone, and it reports that itself.
            log::debug!("a lane broke off within a request: {error}");
        }
        // Content that is too short to be from the gate gets a ticket that belongs to no request.
        let ticket = Ticket::read(&content).map_or_else(Ticket::default, |(ticket, _)| ticket);
        Self { request, content, ticket }
    }

    fn as_request(&self) -> Request<'_> {
        let content = self.content.get(Ticket::LENGTH..).and_then(Content::read).unwrap_or_default();
        Request {
            id: content.id,
            method: self.request.method().as_str(),
            target: self.request.url(),
            headers: content.fields,
            body: content.body,
        }
    }
}

/// One or more requests of one connection, in the order of arrival.
pub struct Batch {
    requests: VecDeque<Taken>,
}

impl Batch {
    pub fn new(first: Taken) -> Self {
        Self { requests: VecDeque::from([first]) }
    }

    /// Adds a request; returns it if it came on another connection.
    #[must_use]
    pub fn push(&mut self, taken: Taken) -> Option<Taken> {
        if self.requests.front().is_some_and(|first| first.ticket.epoch != taken.ticket.epoch) {
            return Some(taken);
        }
        self.requests.push_back(taken);
        None
    }

    pub fn is_full(&self) -> bool {
        self.requests.len() >= MAX_REQUESTS
    }

    /// The number of requests not answered yet.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    pub fn requests(&self) -> Vec<Request<'_>> {
        self.requests.iter().map(Taken::as_request).collect()
    }

    /// Sends the responses to the first requests, as many as possible in one write. A writer of tiny_http
    /// that is dropped unused only lets the next request of its connection respond.
    pub fn send(&mut self, responses: impl ExactSizeIterator<Item = Response>, out: &mut Vec<u8>) {
        let mut left = responses.len();
        for (taken, response) in self.requests.drain(..left.min(self.requests.len())).zip(responses) {
            print(&response, &taken, out);
            left -= 1;
            let mut writer = taken.request.into_writer();
            if left == 0 || out.len() >= SEND_BYTES {
                if let Err(error) = writer.write_all(out).and_then(|()| writer.flush()) {
                    log::debug!("a lane broke off within a response: {error}");
                }
                out.clear();
            }
        }
        out.shrink_to(SEND_BYTES);
    }
}

/// Writes a response. If it cannot be written, only this one becomes a 500.
fn print(response: &Response, taken: &Taken, out: &mut Vec<u8>) {
    if let Err(flaw) = write_response(response, taken.ticket, out) {
        log::error!("request {}: a response was not sent: {flaw}", taken.as_request().id);
        // This response can always be written.
        let _ = write_response(&ApiError::new(Code::Internal).into_response(), taken.ticket, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request with this content.
    fn taken(content: &str) -> Taken {
        let content: &'static str = content.to_owned().leak();
        Taken::new(tiny_http::TestRequest::new().with_body(content).into())
    }

    fn numbered(epoch: u64, place: u64) -> Taken {
        Taken { ticket: Ticket { epoch, place }, ..taken("") }
    }

    #[test]
    fn request_is_what_the_content_says() {
        let ticket = Ticket { epoch: 12, place: 34 };
        let start = String::from_utf8(ticket.to_bytes().to_vec()).unwrap();
        let taken = taken(&format!("{start}an-id\r\nX: y\r\n\r\nbody"));
        assert_eq!(taken.ticket, ticket);
        let request = taken.as_request();
        assert_eq!(
            (request.id, &request.headers[..], request.body),
            ("an-id", &[("X", "y")][..], &b"body"[..])
        );
    }

    #[test]
    fn what_is_not_from_the_gate_has_nobodys_ticket() {
        assert_eq!(taken("nonsense").ticket, Ticket::default());
    }

    #[test]
    fn request_of_another_connection_is_given_back() {
        let mut batch = Batch::new(numbered(1, 9));
        assert!(batch.push(numbered(1, 10)).is_none());
        for epoch in [2, 11] {
            let other = batch.push(numbered(epoch, 1));
            assert_eq!(other.map(|other| other.ticket.epoch), Some(epoch));
        }
        assert_eq!((batch.len(), batch.requests().len()), (2, 2));
    }

    #[test]
    fn batch_is_full_with_its_most_requests() {
        let mut batch = Batch::new(numbered(1, 0));
        for i in 1..MAX_REQUESTS {
            assert!(!batch.is_full(), "{i}");
            assert!(batch.push(numbered(1, i as u64)).is_none());
        }
        assert!(batch.is_full());
    }

    #[test]
    fn what_has_no_response_yet_stays() {
        let mut batch = Batch::new(numbered(1, 0));
        (1..3).for_each(|i| assert!(batch.push(numbered(1, i)).is_none()));
        let mut out = Vec::new();
        batch.send([b"a", b"b"].map(|body| Response::new(200, body)).into_iter(), &mut out);
        assert_eq!((batch.len(), out), (1, Vec::new()));
        assert_eq!(batch.requests.front().map(|taken| taken.ticket.place), Some(2));
    }
}
