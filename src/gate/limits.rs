//! How much clients may have: connections, memory, sizes and time.

use std::time::Duration;

use rustix::process::{Resource, getrlimit};

use petstore_base::http::limits::MAX_BODY_BYTES;

/// How much the gate lets clients have. Other bounds are constants, such as [`MAX_HEAD_BYTES`](petstore_base::http::limits::MAX_HEAD_BYTES).
#[derive(Clone, Debug)]
pub struct Limits {
    /// The most clients at once. Each is an open file, and a lane needs some too: see
    /// [`GateConfig::with`](crate::GateConfig::with). Default: 10,000.
    pub connections: usize,
    /// The most bytes held for all clients together, without the lanes, which have their own bound. Default: 64 MiB.
    pub memory: usize,
    /// The most bytes of a request's body. Default: 64 KiB.
    pub body: usize,
    /// The time for each phase of a connection.
    pub deadlines: Deadlines,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections: 10_000,
            memory: 64 * 1024 * 1024,
            body: MAX_BODY_BYTES,
            deadlines: Deadlines::default(),
        }
    }
}

/// The longest time for each phase of a connection. A phase does not get more time because single bytes keep arriving.
///
/// More than a year counts as a year, so [`Duration::MAX`] practically disables a deadline.
///
/// ```
/// use std::time::Duration;
///
/// let mut deadlines = petstore_gate::Deadlines::default();
/// deadlines.idle = Duration::from_secs(5);
/// deadlines.drain = Duration::ZERO;
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Deadlines {
    /// From the first byte of a request to the end of its head. Default: 10 s.
    pub head: Duration,
    /// From the end of the head to the end of the body. Default: 30 s.
    pub body: Duration,
    /// How long a complete request may wait for a free lane before it gets a 503 response. Default: 10 s.
    pub lane: Duration,
    /// How long a request may take from the time it enters a lane, where others may be ahead of it, before it gets a
    /// 503 response. Default: 60 s.
    pub answer: Duration,
    /// How long the client may take to receive the response. Default: 30 s.
    pub response: Duration,
    /// From a response to the first byte of the next request. Choose a longer time than the idle timeout of a proxy in
    /// front. Default: 125 s.
    pub idle: Duration,
    /// How long the service waits for the client to close its side after the last response, if the client sends
    /// nothing. If it sends, the service waits five times as long in total. Default: 2 s.
    pub linger: Duration,
    /// How long the service may take to finish its requests when it is stopped. Default: 10 s.
    pub drain: Duration,
}

/// The longest deadline: a year, which no instant overflows with.
const MOST: Duration = Duration::from_secs(365 * 24 * 60 * 60);

impl Deadlines {
    /// The deadlines, each a year at most.
    pub(crate) fn bounded(mut self) -> Self {
        let Self {
            head,
            body,
            lane,
            answer,
            response,
            idle,
            linger,
            drain,
        } = &mut self;
        for deadline in [head, body, lane, answer, response, idle, linger, drain] {
            *deadline = MOST.min(*deadline);
        }
        self
    }
}

impl Default for Deadlines {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(10),
            body: Duration::from_secs(30),
            lane: Duration::from_secs(10),
            answer: Duration::from_secs(60),
            response: Duration::from_secs(30),
            // Longer than the idle timeouts of common proxies: 60, 90 or 120 s.
            idle: Duration::from_secs(125),
            linger: Duration::from_secs(2),
            drain: Duration::from_secs(10),
        }
    }
}

/// What tiny_http opens for a lane once it accepts the connection of the gate: that connection, for reading and for writing.
const LANE: usize = 2;
/// For what is open for a moment, such as a client that is rejected.
const SPARE: usize = 4;

/// The files that the process can still open. Where `/proc` is missing, none counts as open.
pub fn unopened_files() -> usize {
    let limit = getrlimit(Resource::Nofile)
        .current
        .and_then(|limit| usize::try_from(limit).ok());
    let open = std::fs::read_dir("/proc/self/fd").map_or(0, Iterator::count);
    limit.unwrap_or(usize::MAX).saturating_sub(open)
}

/// The most clients that leave enough files for this number of lanes, which may not have been accepted yet; at least one.
pub fn most_connections(lanes: usize) -> usize {
    let needed = LANE * lanes + SPARE;
    unopened_files().saturating_sub(needed).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn deadline_is_bounded_to_a_year() {
        let given = Deadlines {
            head: Duration::MAX,
            idle: Duration::from_millis(1),
            ..Deadlines::default()
        };
        let bounded = given.bounded();
        assert_eq!(
            (bounded.head, bounded.idle),
            (MOST, Duration::from_millis(1))
        );
    }
}
