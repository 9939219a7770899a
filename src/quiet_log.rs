//! Bounds the log lines that a storm of failures with one cause, such as a full disk, writes in a second.
//! Failures held back are counted, and the count is logged within a second. Knows nothing of what they are
//! about.

use std::time::{Duration, Instant};

use crate::log_line::log_line;

const SECOND: Duration = Duration::from_secs(1);
/// The most lines in a second.
const MAX_LINES: usize = 20;

/// The failures of one thread.
pub struct QuietLog {
    /// The log target, by which `RUST_LOG` chooses the lines.
    target: &'static str,
    /// When the current second began, and how many lines were logged in it.
    began: Option<Instant>,
    lines: usize,
    held_back: HeldBack,
}

/// Failures that were not logged.
#[derive(Default)]
struct HeldBack {
    count: u64,
    /// What the first one was about.
    first: String,
    last: String,
}

impl QuietLog {
    pub fn new(target: &'static str) -> Self {
        Self { target, began: None, lines: 0, held_back: HeldBack::default() }
    }

    /// Logs a failure of something, such as `request 17`, or counts it if there are too many. `of` may be
    /// empty.
    pub fn say(&mut self, of: &str, failure: &str) {
        for line in self.admit(of, failure, Instant::now()) {
            log_line!(error, target: self.target, "{line}");
        }
    }

    /// How long until [`QuietLog::settle`] has something to log; `None` if nothing is held back.
    pub fn due(&self, now: Instant) -> Option<Duration> {
        let began = self.began.filter(|_| self.held_back.count > 0)?;
        Some((began + SECOND).saturating_duration_since(now))
    }

    /// Logs what was held back, once its second is over. Returns in how long to call it again; `None` if nothing
    /// is held back.
    pub fn settle(&mut self, now: Instant) -> Option<Duration> {
        if self.due(now) == Some(Duration::ZERO) {
            self.say_held_back();
        }
        self.due(now)
    }

    fn say_held_back(&mut self) {
        if let Some(line) = self.held_back.take() {
            log_line!(error, target: self.target, "{line}");
        }
    }

    fn admit(&mut self, of: &str, failure: &str, now: Instant) -> Vec<String> {
        let mut said = Vec::new();
        if self.began.is_none_or(|began| now.saturating_duration_since(began) >= SECOND) {
            said.extend(self.held_back.take());
            self.began = Some(now);
            self.lines = 0;
        }
        let line = if of.is_empty() { failure.to_owned() } else { format!("{of}: {failure}") };
        if self.lines < MAX_LINES {
            self.lines += 1;
            said.push(line);
        } else {
            self.held_back.add(of, line);
        }
        said
    }
}

impl Drop for QuietLog {
    fn drop(&mut self) {
        self.say_held_back();
    }
}

impl HeldBack {
    fn add(&mut self, of: &str, line: String) {
        self.count += 1;
        self.last = line;
        if self.first.is_empty() {
            of.clone_into(&mut self.first);
        }
    }

    /// The line that stands for all of them.
    fn take(&mut self) -> Option<String> {
        let Self { count, first, last } = std::mem::take(self);
        let first = if first.is_empty() { String::new() } else { format!(", the first of {first}") };
        (count > 0).then(|| format!("{count} more failures within a second{first}; the last: {last}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A log that has used up its lines of the second from `start` on.
    fn exhausted(start: Instant) -> QuietLog {
        let mut log = QuietLog::new("test");
        for i in 0..MAX_LINES {
            assert_eq!(log.admit(&format!("request {i}"), "a", start), [format!("request {i}: a")]);
        }
        log
    }

    #[test]
    fn storm_is_bounded_and_names_the_first_and_the_last_of_the_rest() {
        let start = Instant::now();
        let mut log = exhausted(start);
        for i in 0..25 {
            assert_eq!(log.admit(&format!("r{i}"), "b", start + SECOND / 2), [""; 0]);
        }
        let [rest, line] = &log.admit("", "c", start + SECOND)[..] else { panic!("two lines") };
        assert_eq!(rest, "25 more failures within a second, the first of r0; the last: r24: b");
        assert_eq!(line, "c");
        assert_eq!(log.admit("", "d", start + SECOND), ["d"]);
    }

    #[test]
    fn what_is_held_back_is_said_without_a_further_failure() {
        let start = Instant::now();
        let mut log = exhausted(start);
        assert_eq!(log.due(start), None);
        assert_eq!(log.admit("", "b", start), [""; 0]);
        assert_eq!(log.due(start + SECOND / 4), Some(SECOND / 4 * 3));
        log.settle(start + SECOND / 4);
        assert_ne!(log.due(start + SECOND / 4), None);
        log.settle(start + SECOND);
        assert_eq!(log.due(start + SECOND), None);
    }
}
