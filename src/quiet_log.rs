//! Failures in the log: a storm of them that has one cause, such as a full disk, is a line a second.
//! Knows nothing of what they are about.

use std::time::{Duration, Instant};

const QUIET: Duration = Duration::from_secs(1);

/// What one thread says of failures.
pub struct QuietLog {
    /// Under which name `RUST_LOG` chooses the lines.
    target: &'static str,
    last: Option<Instant>,
    held_back: u64,
}

impl QuietLog {
    pub fn new(target: &'static str) -> Self {
        Self { target, last: None, held_back: 0 }
    }

    /// Logs a line, unless the last one is too fresh; then it is counted.
    pub fn say(&mut self, line: &str) {
        if let Some(line) = self.admit(line, Instant::now()) {
            log::error!(target: self.target, "{line}");
        }
    }

    fn admit(&mut self, line: &str, now: Instant) -> Option<String> {
        if self.last.is_some_and(|last| now.saturating_duration_since(last) < QUIET) {
            self.held_back += 1;
            return None;
        }
        self.last = Some(now);
        Some(match std::mem::take(&mut self.held_back) {
            0 => line.to_owned(),
            more => format!("{line} ({more} more failed before)"),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storm_is_a_line_a_second_and_is_counted() {
        let (mut log, start) = (QuietLog::new("test"), Instant::now());
        assert_eq!(log.admit("a", start).as_deref(), Some("a"));
        assert_eq!(log.admit("b", start), None);
        assert_eq!(log.admit("c", start + QUIET / 2), None);
        assert_eq!(log.admit("d", start + QUIET).as_deref(), Some("d (2 more failed before)"));
        assert_eq!(log.admit("e", start + 2 * QUIET).as_deref(), Some("e"));
    }
}
