//! Sends one question to one server, over TCP: every server speaks it (RFC 7766), every answer fits, and nobody who cannot
//! see the question can forge one.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use simple_dns::RCODE;

use super::Answer;
use super::message::{Question, Response};

/// Asks, and waits for the response until an instant.
pub(super) fn exchange(server: SocketAddr, question: &Question, until: Instant) -> Result<Answer, String> {
    let what = match receive(server, question, until) {
        // NXDOMAIN concerns the last name of a chain; the aliases before it exist (RFC 6604).
        Ok(Response { rcode: RCODE::NoError | RCODE::NameError, answer }) => return Ok(answer),
        Ok(Response { rcode, .. }) => format!("failed to answer ({rcode:?})"),
        Err(error) => match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => "did not answer in time".to_owned(),
            ErrorKind::UnexpectedEof | ErrorKind::InvalidData => {
                "sent a response that does not answer the question".to_owned()
            }
            _ => format!("cannot be reached: {error}"),
        },
    };
    Err(format!("the name server {server} {what}"))
}

fn receive(server: SocketAddr, question: &Question, until: Instant) -> io::Result<Response> {
    let mut stream = TcpStream::connect_timeout(&server, left(until)?)?;
    // Length and message in one segment (RFC 7766, section 8).
    let length = u16::try_from(question.message.len()).unwrap_or_default();
    stream.write_all(&[&length.to_be_bytes(), &question.message[..]].concat())?;

    stream.set_read_timeout(Some(left(until)?))?;
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut message)?;
    question.read(&message).ok_or_else(|| ErrorKind::InvalidData.into())
}

/// The time that is left.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero());
    left.ok_or_else(|| ErrorKind::TimedOut.into())
}
