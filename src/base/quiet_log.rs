//! Limits the log lines per second when many requests fail for one cause, such as a full disk.

use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);
/// The most lines in a second.
const MAX_LINES: usize = 20;

/// A log of the failures of one thread, limited to 20 lines a second.
pub struct QuietLog {
    /// The log target, by which `RUST_LOG` chooses the lines.
    target: &'static str,
    /// The beginning of the current second, and the number of failures in it.
    began: Instant,
    count: usize,
}

impl QuietLog {
    pub fn new(target: &'static str) -> Self {
        Self {
            target,
            began: Instant::now(),
            count: 0,
        }
    }

    /// Logs a failure, unless this second has too many. `of` says whose failure it is, such as `request 17`; it may be
    /// empty.
    pub fn say(&mut self, of: &str, failure: &str) {
        if let Some(line) = self.admit(of, failure, Instant::now()) {
            log::error!(target: self.target, "{line}");
        }
    }

    /// Returns the line to log; `None` above the limit.
    fn admit(&mut self, of: &str, failure: &str, now: Instant) -> Option<String> {
        if now.saturating_duration_since(self.began) >= SECOND {
            (self.began, self.count) = (now, 0);
        }
        self.count += 1;
        match self.count {
            ..=MAX_LINES if of.is_empty() => Some(failure.to_owned()),
            ..=MAX_LINES => Some(format!("{of}: {failure}")),
            count if count == MAX_LINES + 1 => {
                Some("more failures within this second are not logged".to_owned())
            }
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storm_is_bounded_and_the_next_second_has_lines_again() {
        let mut log = QuietLog::new("test");
        let start = log.began;
        for i in 0..MAX_LINES {
            let line = log.admit(&format!("request {i}"), "a", start);
            assert_eq!(line, Some(format!("request {i}: a")));
        }
        let said = log.admit("r", "b", start + SECOND / 2).unwrap();
        assert_eq!(said, "more failures within this second are not logged");
        assert_eq!(log.admit("r", "b", start + SECOND / 2), None);
        assert_eq!(log.admit("", "c", start + SECOND).as_deref(), Some("c"));
    }
}
