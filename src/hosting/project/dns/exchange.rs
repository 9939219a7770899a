//! Sends one question to one server: over UDP, then over TCP if the answer does not fit into a datagram.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use super::DnsError;
use super::message::{DnsResponse, Question};

/// The most bytes of a message (RFC 1035, section 4.2.2).
const MAX_MESSAGE: usize = 65_535;

/// Sends the question, and waits for the response until a deadline. Its id and its source port are random, so that an
/// attacker who cannot see the question cannot forge an answer (RFC 5452).
pub(super) fn exchange(
    server: SocketAddr,
    question: &Question,
    until: Instant,
) -> Result<DnsResponse, DnsError> {
    let response = match over_udp(server, question, until) {
        Ok(response) if response.truncated => over_tcp(server, question, until),
        response => response,
    };
    response.map_err(|error| match error.kind() {
        ErrorKind::TimedOut | ErrorKind::WouldBlock => {
            DnsError::of(server, " did not answer in time")
        }
        ErrorKind::UnexpectedEof | ErrorKind::InvalidData => {
            DnsError::of(server, " sent a response that does not answer the question")
        }
        _ => DnsError::of(server, &format!(" cannot be reached: {error}")),
    })
}

fn over_udp(server: SocketAddr, question: &Question, until: Instant) -> io::Result<DnsResponse> {
    let own: SocketAddr = match server {
        SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
        SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
    };
    let socket = UdpSocket::bind(own)?;
    // A connected socket receives no datagrams from other addresses.
    socket.connect(server)?;
    socket.send(&question.message)?;

    let mut buffer = vec![0; MAX_MESSAGE];
    let mut failure = ErrorKind::TimedOut;
    while let Ok(left) = left(until) {
        socket.set_read_timeout(Some(left))?;
        match socket
            .recv(&mut buffer)
            .map(|length| question.read(&buffer[..length]))
        {
            Ok(Some(response)) => return Ok(response),
            Ok(None) => failure = ErrorKind::InvalidData,
            Err(error) if is_passing(error.kind()) => {}
            Err(error) => return Err(error),
        }
    }
    Err(failure.into())
}

fn over_tcp(server: SocketAddr, question: &Question, until: Instant) -> io::Result<DnsResponse> {
    let mut stream = TcpStream::connect_timeout(&server, left(until)?)?;
    stream.set_write_timeout(Some(left(until)?))?;
    // Length and message in one segment (RFC 7766, section 8).
    let length = u16::try_from(question.message.len()).unwrap_or_default();
    stream.write_all(&[&length.to_be_bytes(), &question.message[..]].concat())?;

    let mut length = [0; 2];
    read(&mut stream, &mut length, until)?;
    let mut message = vec![0; u16::from_be_bytes(length).into()];
    read(&mut stream, &mut message, until)?;
    let response = question
        .read(&message)
        .filter(|response| !response.truncated);
    response.ok_or_else(|| ErrorKind::InvalidData.into())
}

/// Fills the buffer. Sending bytes slowly does not extend the deadline.
fn read(stream: &mut TcpStream, mut buffer: &mut [u8], until: Instant) -> io::Result<()> {
    while !buffer.is_empty() {
        stream.set_read_timeout(Some(left(until)?))?;
        match stream.read(buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => buffer = &mut buffer[length..],
            Err(error) if is_passing(error.kind()) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// Returns the time until the deadline.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until
        .checked_duration_since(Instant::now())
        .filter(|left| !left.is_zero());
    left.ok_or_else(|| ErrorKind::TimedOut.into())
}

/// Returns whether a retry can succeed. The deadline ends the retries.
fn is_passing(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
    )
}
