//! The health check from within the process: an ordinary request that the gate sends itself.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use crate::gate::stopper::Stopper;

const REQUEST: &[u8] =
    b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: watchdog\r\nConnection: close\r\n\r\n";
const ANSWER: &[u8] = b"HTTP/1.1 200 ";

/// Checks from within the process whether a running service answers, like `GET /healthz` from outside.
///
/// The request goes through everything that others go through, including a reading thread and the writing thread. It
/// needs no free connection and waits for its turn, so a busy service passes the check too.
#[derive(Clone)]
pub struct HealthCheck(Stopper);

impl HealthCheck {
    pub(crate) fn new(stopper: Stopper) -> Self {
        Self(stopper)
    }

    /// Sends a request, and returns whether the service answers it within `patience`.
    pub fn is_answered(&self, patience: Duration) -> bool {
        self.ask(patience).unwrap_or(false)
    }

    fn ask(&self, patience: Duration) -> io::Result<bool> {
        let end = Instant::now() + patience;
        let (mut here, there) = UnixStream::pair()?;
        here.write_all(REQUEST)?;
        there.set_nonblocking(true)?;
        self.0.let_in(there);
        let mut answer = Vec::new();
        let mut bytes = [0; 1024];
        while answer.len() < ANSWER.len() {
            // A timeout of zero is not allowed.
            let left = end.saturating_duration_since(Instant::now()).max(Duration::from_millis(1));
            here.set_read_timeout(Some(left))?;
            match here.read(&mut bytes)? {
                0 => return Ok(false),
                count => answer.extend_from_slice(&bytes[..count]),
            }
        }
        Ok(answer.starts_with(ANSWER))
    }
}
