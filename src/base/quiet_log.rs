//! Limits the log lines per second when many requests fail for one cause, such as a full disk.

use std::time::{Duration, Instant};

const SECOND: Duration = Duration::from_secs(1);
/// The most lines in a second.
const MAX_LINES: usize = 20;

/// A log of the failures of one thread, limited to 20 lines a second.
#[derive(Debug)]
pub struct QuietLog {
    /// The log target, by which `RUST_LOG` chooses the lines.
    target: &'static str,
    /// The beginning of the current second, and the number of failures in it.
    began: Instant,
    count: usize,
}

impl QuietLog {
    /// A log of failures with this target.
    pub fn new(target: &'static str) -> Self {
        Self {
            target,
            began: Instant::now(),
            count: 0,
        }
    }

    /// Logs a failure, unless this second has too many.
    pub fn say(&mut self, failure: &str) {
        if let Some(line) = self.admit(failure, Instant::now()) {
            log::error!(target: self.target, "{line}");
        }
    }

    /// Returns the line to log; `None` above the limit.
    fn admit<'f>(&mut self, failure: &'f str, now: Instant) -> Option<&'f str> {
        if now.saturating_duration_since(self.began) >= SECOND {
            (self.began, self.count) = (now, 0);
        }
        self.count += 1;
        match self.count {
            ..=MAX_LINES => Some(failure),
            count if count == MAX_LINES + 1 => {
                Some("more failures within this second are not logged")
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
            let failure = format!("request {i}: a");
            assert_eq!(log.admit(&failure, start), Some(&*failure));
        }
        let said = log.admit("b", start + SECOND / 2).unwrap();
        assert_eq!(said, "more failures within this second are not logged");
        assert_eq!(log.admit("b", start + SECOND / 2), None);
        assert_eq!(log.admit("c", start + SECOND), Some("c"));
    }
}
