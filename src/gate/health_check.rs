//! The health check from within the process: an ordinary request on a connection of its own.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use crate::stopper::Stopper;

const EXPECTED: &[u8] = b"HTTP/1.1 200 ";

/// Checks from within the process whether a running service answers, like a GET from outside.
///
/// The request takes the way of all others, through the gate, a reading thread and the writing thread. It needs no free
/// connection, but queues as any request does: a busy service passes if it answers in time.
///
/// ```
/// # fn watch(check: &petstore_gate::HealthCheck) {
/// if !check.is_answered(std::time::Duration::from_secs(5)) {
///     eprintln!("the service does not answer");
/// }
/// # }
/// ```
#[derive(Clone, Debug)]
pub struct HealthCheck {
    stopper: Stopper,
    path: &'static str,
}

impl HealthCheck {
    /// A check that asks for a path of the server that `stopper` stops.
    pub fn new(stopper: Stopper, path: &'static str) -> Self {
        Self { stopper, path }
    }

    /// Sends a request, and returns whether the service answers it within `patience`.
    pub fn is_answered(&self, patience: Duration) -> bool {
        self.ask(patience).unwrap_or(false)
    }

    fn ask(&self, patience: Duration) -> io::Result<bool> {
        let (mut here, there) = UnixStream::pair()?;
        write!(
            here,
            "GET {} HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: watchdog\r\nConnection: close\r\n\r\n",
            self.path
        )?;
        there.set_nonblocking(true)?;
        self.stopper.add_health_check(there);
        // A timeout of zero is not allowed. The gate sends a response in one piece, so one timeout is enough.
        here.set_read_timeout(Some(patience.max(Duration::from_millis(1))))?;
        let mut start = [0; EXPECTED.len()];
        here.read_exact(&mut start)?;
        Ok(start == EXPECTED)
    }
}
