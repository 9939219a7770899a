//! The requests that are answered together. All are of one connection, so that their responses can be sent
//! in one write, and no response can get into a connection that is not its own.

use std::collections::VecDeque;
use std::io::Write;

use crate::http::{ApiError, Code, Request, Response};
use crate::lane::{self, TICKET};

/// The most requests answered together.
const MAX_REQUESTS: usize = 512;
/// Responses are sent on once this many bytes are ready, so that memory stays bounded.
const SEND_BYTES: usize = 64 * 1024;

/// A request taken from tiny_http, with its body read: until then the lane's next request is not read.
pub struct Taken {
    request: tiny_http::Request,
    body: Vec<u8>,
}

impl Taken {
    pub fn new(mut request: tiny_http::Request) -> Self {
        let mut body = Vec::new();
        if request.body_length().is_some_and(|length| length > 0)
            && let Err(error) = request.as_reader().read_to_end(&mut body)
        {
            // The gate sends whole requests, so its end of the lane is gone, and it says so itself.
            log::debug!("a lane broke off within a request: {error}");
        }
        Self { request, body }
    }

    fn as_request(&self) -> Request<'_> {
        let headers = self.request.headers();
        Request {
            id: lane::id(self.ticket()),
            method: self.request.method().as_str(),
            target: self.request.url(),
            headers: headers.iter().map(|h| (h.field.as_str().as_str(), h.value.as_str())).collect(),
            body: &self.body,
        }
    }

    /// The gate writes the ticket before all other header fields.
    fn ticket(&self) -> &str {
        let ticket = self.request.headers().first().filter(|header| header.field.equiv(TICKET));
        ticket.map_or("", |header| header.value.as_str())
    }

    /// The number by which the gate knows the request.
    fn number(&self) -> &str {
        let ticket = self.ticket();
        ticket.find(' ').map_or(ticket, |end| &ticket[..end])
    }
}

/// One or more requests of one connection, in the order in which they came.
pub struct Batch {
    requests: VecDeque<Taken>,
    /// How the numbers of this connection's requests begin: with its own, and a dot.
    connection: String,
}

impl Batch {
    pub fn new(first: Taken) -> Self {
        let number = first.number();
        let connection = number.find('.').map_or("", |dot| &number[..=dot]).to_owned();
        Self { requests: VecDeque::from([first]), connection }
    }

    /// Adds a request; gives it back where it came by another connection.
    #[must_use]
    pub fn push(&mut self, taken: Taken) -> Option<Taken> {
        if !taken.number().starts_with(&self.connection) {
            return Some(taken);
        }
        self.requests.push_back(taken);
        None
    }

    pub fn is_full(&self) -> bool {
        self.requests.len() >= MAX_REQUESTS
    }

    /// How many requests are not answered yet.
    pub fn len(&self) -> usize {
        self.requests.len()
    }

    pub fn requests(&self) -> Vec<Request<'_>> {
        self.requests.iter().map(Taken::as_request).collect()
    }

    /// Sends the responses to the first requests, as many as possible in one write: a request whose writer is
    /// dropped unused only passes the turn on to the next of its connection.
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

/// A response that cannot be printed costs itself and nobody else.
fn print(response: &Response, taken: &Taken, out: &mut Vec<u8>) {
    let number = taken.number();
    if let Err(unprintable) = lane::print(response, number, out) {
        log::error!("request {}: a response was not sent: {}", taken.as_request().id, unprintable.0);
        // What this makes is known to be printable.
        let _ = lane::print(&ApiError::new(Code::Internal).into_response(), number, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A request whose first header field is this.
    fn taken(field: &str) -> Taken {
        let request = tiny_http::TestRequest::new().with_header(field.parse().unwrap());
        Taken::new(request.into())
    }

    fn numbered(number: &str) -> Taken {
        taken(&format!("{TICKET}: {number} an-identifier"))
    }

    #[test]
    fn number_is_what_the_ticket_says_before_the_identifier() {
        assert_eq!(numbered("12.345").number(), "12.345");
        assert_eq!(taken(&format!("{TICKET}: 12.345")).number(), "12.345");
        assert_eq!(taken("Host: 1.1 x").number(), "");
    }

    #[test]
    fn request_of_another_connection_is_given_back() {
        let mut batch = Batch::new(numbered("1.9"));
        assert!(batch.push(numbered("1.10")).is_none());
        for number in ["2.1", "11.1"] {
            let other = batch.push(numbered(number));
            assert_eq!(other.as_ref().map(Taken::number), Some(number));
        }
        assert_eq!((batch.len(), batch.requests().len()), (2, 2));
    }

    #[test]
    fn batch_is_full_with_its_most_requests() {
        let mut batch = Batch::new(numbered("1.0"));
        for i in 1..MAX_REQUESTS {
            assert!(!batch.is_full(), "{i}");
            assert!(batch.push(numbered(&format!("1.{i}"))).is_none());
        }
        assert!(batch.is_full());
    }

    #[test]
    fn what_has_no_response_yet_stays() {
        let mut batch = Batch::new(numbered("1.0"));
        (1..3).for_each(|i| assert!(batch.push(numbered(&format!("1.{i}"))).is_none()));
        let mut out = Vec::new();
        batch.send([b"a", b"b"].map(|body| Response::new(200, body)).into_iter(), &mut out);
        assert_eq!((batch.len(), out), (1, Vec::new()));
        assert_eq!(batch.requests.front().map(Taken::number), Some("1.2"));
    }
}
