//! The deadlines of clients.

use std::time::Duration;

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
    pub fn bounded(mut self) -> Self {
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
