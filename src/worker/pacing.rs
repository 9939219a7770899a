//! When a worker takes the next request: it pauses to let requests gather if many come, and polls if one
//! client asks again at once.

use std::time::{Duration, Instant};

/// The longest pause in which requests gather.
const MAX_PAUSE: Duration = Duration::from_millis(5);
/// The shortest pause; the operating system's timers are not more precise.
const MIN_PAUSE: Duration = Duration::from_micros(50);
/// How long a worker polls for the next request before it goes to sleep.
const POLL: Duration = Duration::from_micros(200);

/// What the previous batch tells about the next one.
#[derive(Default)]
pub struct Pacing {
    /// How many requests it had.
    answered: usize,
    /// How long its responses waited for the disk.
    flush: Duration,
    /// Whether the first of them came at once.
    came_at_once: bool,
}

impl Pacing {
    /// Notes that a batch of this many requests was answered, and how long its responses waited for the disk.
    pub fn answered(&mut self, count: usize, flush: Duration) {
        (self.answered, self.flush) = (count, flush);
    }

    /// Waits for the first request of the next batch, for at most this long. `None` if none came in time, or
    /// if the server was or may have been unblocked, because polling swallows that call.
    pub fn receive(
        &mut self,
        server: &tiny_http::Server,
        most: Option<Duration>,
    ) -> Option<tiny_http::Request> {
        if self.answered > 1 {
            gather(self.flush);
        }
        let asked = Instant::now();
        let next = match most {
            _ if self.answered == 1 && self.came_at_once => poll(server),
            Some(most) => server.recv_timeout(most).ok().flatten(),
            None => server.recv().ok(),
        };
        self.came_at_once = asked.elapsed() < POLL;
        if next.is_none() {
            self.answered = 0;
        }
        // Requests in the queue came before the stop, so they are answered.
        next.or_else(|| server.try_recv().ok().flatten())
    }
}

/// Polls briefly for the next request, and yields to other threads in between: a client that asks again at
/// once is answered sooner than a sleeping thread could be woken. If the last request took longer to come,
/// there is no polling, so slower clients cost nothing.
fn poll(server: &tiny_http::Server) -> Option<tiny_http::Request> {
    let began = Instant::now();
    while began.elapsed() < POLL {
        if let Ok(Some(request)) = server.try_recv() {
            return Some(request);
        }
        std::thread::yield_now();
    }
    None
}

/// Lets other threads run, so that the clients of the last responses can send again and share the next batch.
/// If the worker continued at once, it would begin with half of them, and the other half would wait for that
/// batch's flush before their own. Half the time of a flush is what the documentation of `PostgreSQL` recommends for
/// `commit_delay`, which does the same.
fn gather(flush: Duration) {
    let pause = (flush / 2).min(MAX_PAUSE);
    if pause >= MIN_PAUSE { std::thread::sleep(pause) } else { std::thread::yield_now() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::Folder;

    /// A server that was unblocked, so that receiving returns at once.
    fn unblocked() -> (Folder, tiny_http::Server) {
        let folder = Folder::new();
        let server = tiny_http::Server::http_unix(&folder.0.join("lane")).unwrap();
        server.unblock();
        (folder, server)
    }

    #[test]
    fn requests_gather_where_several_came() {
        let ((_folder, server), mut pacing) = (unblocked(), Pacing::default());
        pacing.answered(2, 2 * MAX_PAUSE);
        let began = Instant::now();
        assert!(pacing.receive(&server, None).is_none());
        assert!(began.elapsed() >= MAX_PAUSE);
    }

    #[test]
    fn next_request_is_looked_out_for_where_the_last_one_came_at_once() {
        let ((_folder, server), mut pacing) = (unblocked(), Pacing::default());
        pacing.answered(1, Duration::ZERO);
        pacing.came_at_once = true;
        let began = Instant::now();
        assert!(pacing.receive(&server, None).is_none());
        assert!(began.elapsed() >= POLL);
    }
}
