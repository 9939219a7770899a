//! Sends one question to one server: over UDP, then over TCP if the answer does not fit into a datagram.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use super::error::NameServer;
use super::message::{Question, Received, Response};
use super::{DnsError, RecordType};

/// The most bytes of a message (RFC 1035, section 4.2.2).
const MAX_MESSAGE: usize = 65_535;
/// The number of foreign datagrams after which it stops waiting.
const MAX_FOREIGN: usize = 100;

/// Asks, and waits for the response until the second instant. A timeout tells how long it took since the first. Id and
/// port are random, so that somebody who cannot see the question cannot forge an answer (RFC 5452).
pub(super) fn exchange(
    server: NameServer,
    (name, kind): (&str, RecordType),
    resolve: bool,
    (since, until): (Instant, Instant),
) -> Result<Response, DnsError> {
    let question = Question::new(name, kind)?;
    let attempt = Attempt { message: question.message(resolve)?, question, server, since, until };
    let response = attempt.over_udp()?;
    if response.truncated {
        return Attempt { server: NameServer { over_tcp: true, ..server }, ..attempt }.over_tcp();
    }
    Ok(response)
}

/// One question to one server.
struct Attempt<'a> {
    server: NameServer,
    question: Question<'a>,
    message: Vec<u8>,
    since: Instant,
    until: Instant,
}

impl Attempt<'_> {
    fn over_udp(&self) -> Result<Response, DnsError> {
        let server = self.server;
        let own: SocketAddr = match server.address {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let socket =
            UdpSocket::bind(own).map_err(|_| DnsError::System("allows no more sockets (ulimit -n)"))?;
        let unreachable = |_| DnsError::Unreachable { server };
        // Datagrams from elsewhere do not reach a connected socket.
        socket.connect(server.address).map_err(unreachable)?;
        socket.send(&self.message).map_err(unreachable)?;

        let mut buffer = vec![0; MAX_MESSAGE];
        let mut foreign = 0;
        while let Some(left) = left(self.until)
            && foreign < MAX_FOREIGN
        {
            socket.set_read_timeout(Some(left)).map_err(unreachable)?;
            match socket.recv(&mut buffer).map(|length| self.question.read(&buffer[..length])) {
                Ok(Received::Response(response)) => return Ok(response),
                Ok(Received::Malformed) => return Err(DnsError::Malformed { server }),
                Ok(Received::Foreign) => foreign += 1,
                Err(error) if is_passing(error.kind()) => {}
                Err(error) => return Err(unreachable(error)),
            }
        }
        Err(if foreign > 0 { DnsError::Malformed { server } } else { self.timeout() })
    }

    fn over_tcp(&self) -> Result<Response, DnsError> {
        let failed = |error: std::io::Error| match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => self.timeout(),
            ErrorKind::UnexpectedEof => DnsError::Malformed { server: self.server },
            _ => DnsError::Unreachable { server: self.server },
        };
        let left = || left(self.until).ok_or_else(|| self.timeout());
        let mut stream = TcpStream::connect_timeout(&self.server.address, left()?).map_err(failed)?;
        stream.set_write_timeout(Some(left()?)).map_err(failed)?;
        // Length and message in one segment (RFC 7766, section 8).
        let length = u16::try_from(self.message.len()).unwrap_or_default();
        stream.write_all(&[&length.to_be_bytes(), &self.message[..]].concat()).map_err(failed)?;

        let mut length = [0; 2];
        read(&mut stream, &mut length, self.until).map_err(failed)?;
        let mut message = vec![0; u16::from_be_bytes(length).into()];
        read(&mut stream, &mut message, self.until).map_err(failed)?;
        match self.question.read(&message) {
            Received::Response(response) if !response.truncated => Ok(response),
            _ => Err(DnsError::Malformed { server: self.server }),
        }
    }

    fn timeout(&self) -> DnsError {
        DnsError::Timeout { server: self.server, waited: self.since.elapsed() }
    }
}

/// Fills the buffer. Trickling bytes does not extend the deadline.
fn read(stream: &mut TcpStream, mut buffer: &mut [u8], until: Instant) -> std::io::Result<()> {
    while !buffer.is_empty() {
        stream.set_read_timeout(Some(left(until).ok_or(ErrorKind::TimedOut)?))?;
        match stream.read(buffer) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(length) => buffer = &mut buffer[length..],
            Err(error) if is_passing(error.kind()) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The time that is left, if any.
fn left(until: Instant) -> Option<Duration> {
    until.checked_duration_since(Instant::now()).filter(|left| !left.is_zero())
}

/// Whether a retry can help. The deadline ends the retries.
fn is_passing(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted)
}
