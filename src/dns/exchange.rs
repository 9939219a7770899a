//! Sends one question to one server: over UDP, then over TCP if the answer does not fit into a datagram.

use std::io::{ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream, UdpSocket};
use std::time::{Duration, Instant};

use super::message::{Question, Response};
use super::{DnsError, RecordType};

/// The most bytes of a message (RFC 1035, section 4.2.2).
const MAX_MESSAGE: usize = 65_535;
const OVER_TCP: &str = ", asked over TCP,";

/// Asks, and waits for the response until the second instant. A timeout tells how long it took since the first. Id and
/// port are random, so that somebody who cannot see the question cannot forge an answer (RFC 5452).
pub(super) fn exchange(
    server: SocketAddr,
    (name, kind): (&str, RecordType),
    resolve: bool,
    (since, until): (Instant, Instant),
) -> Result<Response, DnsError> {
    let question = Question::new(name, kind)?;
    let attempt = Attempt { message: question.message(resolve)?, question, server, since, until };
    let response = attempt.over_udp()?;
    if response.truncated { attempt.over_tcp() } else { Ok(response) }
}

/// One question to one server.
struct Attempt<'a> {
    server: SocketAddr,
    question: Question<'a>,
    message: Vec<u8>,
    since: Instant,
    until: Instant,
}

impl Attempt<'_> {
    fn over_udp(&self) -> Result<Response, DnsError> {
        let own: SocketAddr = match self.server {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let no_socket = |_| DnsError::Setup("the system allows no more sockets (ulimit -n)".to_owned());
        let socket = UdpSocket::bind(own).map_err(no_socket)?;
        let unreachable = |_| self.unreachable("");
        // Datagrams from elsewhere do not reach a connected socket.
        socket.connect(self.server).map_err(unreachable)?;
        socket.send(&self.message).map_err(unreachable)?;

        let mut buffer = vec![0; MAX_MESSAGE];
        let mut failure = None;
        while let Some(left) = left(self.until) {
            socket.set_read_timeout(Some(left)).map_err(unreachable)?;
            match socket.recv(&mut buffer).map(|length| self.question.read(&buffer[..length])) {
                Ok(Some(response)) => return Ok(response),
                Ok(None) => failure = Some(self.foreign("")),
                Err(error) if is_passing(error.kind()) => {}
                Err(error) => return Err(unreachable(error)),
            }
        }
        Err(failure.unwrap_or_else(|| self.timeout("")))
    }

    fn over_tcp(&self) -> Result<Response, DnsError> {
        let failed = |error: std::io::Error| match error.kind() {
            ErrorKind::TimedOut | ErrorKind::WouldBlock => self.timeout(OVER_TCP),
            ErrorKind::UnexpectedEof => self.foreign(OVER_TCP),
            _ => self.unreachable(OVER_TCP),
        };
        let left = || left(self.until).ok_or_else(|| self.timeout(OVER_TCP));
        let mut stream = TcpStream::connect_timeout(&self.server, left()?).map_err(failed)?;
        stream.set_write_timeout(Some(left()?)).map_err(failed)?;
        // Length and message in one segment (RFC 7766, section 8).
        let length = u16::try_from(self.message.len()).unwrap_or_default();
        stream.write_all(&[&length.to_be_bytes(), &self.message[..]].concat()).map_err(failed)?;

        let mut length = [0; 2];
        read(&mut stream, &mut length, self.until).map_err(failed)?;
        let mut message = vec![0; u16::from_be_bytes(length).into()];
        read(&mut stream, &mut message, self.until).map_err(failed)?;
        let response = self.question.read(&message).filter(|response| !response.truncated);
        response.ok_or_else(|| self.foreign(OVER_TCP))
    }

    fn timeout(&self, over: &str) -> DnsError {
        let waited = self.since.elapsed().as_secs_f32();
        DnsError::of(self.server, &format!("{over} did not answer within {waited:.1} seconds"))
    }

    fn foreign(&self, over: &str) -> DnsError {
        let what = format!("{over} sent a response that does not answer the question");
        DnsError::of(self.server, &what)
    }

    fn unreachable(&self, over: &str) -> DnsError {
        DnsError::of(self.server, &format!("{over} cannot be reached"))
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
