//! Bounds the log lines that a storm of failures with one cause, such as a full disk, writes in a second.
//! Failures held back are counted, and the count is logged before the next failure, or at the end of the service.
//! Knows nothing of what they are about.

use std::time::{Duration, Instant};

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
    /// How many failures were not logged, and the last of them.
    held_back: (u64, String),
}

impl QuietLog {
    pub fn new(target: &'static str) -> Self {
        Self { target, began: None, lines: 0, held_back: (0, String::new()) }
    }

    /// Logs a failure of something, such as `request 17`, or counts it if there are too many. `of` may be
    /// empty.
    pub fn say(&mut self, of: &str, failure: &str) {
        for line in self.admit(of, failure, Instant::now()) {
            log::error!(target: self.target, "{line}");
        }
    }

    /// The lines to log now.
    fn admit(&mut self, of: &str, failure: &str, now: Instant) -> Vec<String> {
        let mut said = Vec::new();
        if self.began.is_none_or(|began| now.saturating_duration_since(began) >= SECOND) {
            said.extend(self.rest());
            self.began = Some(now);
            self.lines = 0;
        }
        let line = if of.is_empty() { failure.to_owned() } else { format!("{of}: {failure}") };
        if self.lines < MAX_LINES {
            self.lines += 1;
            said.push(line);
        } else {
            self.held_back = (self.held_back.0 + 1, line);
        }
        said
    }

    /// The line that stands for all failures that were held back.
    fn rest(&mut self) -> Option<String> {
        let (count, last) = std::mem::take(&mut self.held_back);
        (count > 0).then(|| format!("{count} more failures within a second; the last: {last}"))
    }
}

impl Drop for QuietLog {
    fn drop(&mut self) {
        if let Some(line) = self.rest() {
            log::error!(target: self.target, "{line}");
        }
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
    fn storm_is_bounded_and_names_the_last_of_the_rest() {
        let start = Instant::now();
        let mut log = exhausted(start);
        for i in 0..25 {
            assert_eq!(log.admit(&format!("r{i}"), "b", start + SECOND / 2), [""; 0]);
        }
        let [rest, line] = &log.admit("", "c", start + SECOND)[..] else { panic!("two lines") };
        assert_eq!(rest, "25 more failures within a second; the last: r24: b");
        assert_eq!(line, "c");
        assert_eq!(log.admit("", "d", start + SECOND), ["d"]);
    }
}
