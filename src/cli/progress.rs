//! The progress of a copy: a bar on a terminal, elsewhere a line every ten seconds.

use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

use petstore::Progress;

/// The width of the bar, in characters.
const WIDTH: u64 = 30;
const MIB: u64 = 1024 * 1024;

/// The progress on standard error. A bar is erased when this is dropped.
pub struct Bar {
    is_terminal: bool,
    /// The time between two updates.
    pause: Duration,
    shown: Instant,
    is_drawn: bool,
}

impl Bar {
    /// Shows nothing before the first pause has passed.
    pub fn new() -> Self {
        let is_terminal = std::io::stderr().is_terminal();
        let pause = if is_terminal { Duration::from_millis(100) } else { Duration::from_secs(10) };
        Self { is_terminal, pause, shown: Instant::now(), is_drawn: false }
    }

    /// Shows how far the copy is, unless the last update was just now.
    pub fn show(&mut self, Progress { done, total, .. }: Progress) {
        if self.shown.elapsed() < self.pause {
            return;
        }
        self.shown = Instant::now();
        let mut out = std::io::stderr().lock();
        // If nobody reads it, the copy goes on.
        let _ = if self.is_terminal {
            self.is_drawn = true;
            write!(out, "\r{}", bar(done, total)).and_then(|()| out.flush())
        } else {
            writeln!(out, "copied {}", part(done, total))
        };
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.is_drawn {
            // The control sequence that erases the line (ECMA-48, section 8.3.41).
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn bar(done: u64, total: u64) -> String {
    format!("{} {}", cells(done, total), part(done, total))
}

/// A bar that is full to the part `done` of `total`.
pub fn cells(done: u64, total: u64) -> String {
    let full = (done * WIDTH).checked_div(total).unwrap_or(WIDTH).min(WIDTH);
    let cells = |count: u64, cell: &str| cell.repeat(usize::try_from(count).unwrap_or(0));
    format!("[{}{}]", cells(full, "#"), cells(WIDTH - full, "-"))
}

fn part(done: u64, total: u64) -> String {
    let percent = (done * 100).checked_div(total).unwrap_or(100);
    format!("{} of {} MiB ({percent} %)", done / MIB, total.div_ceil(MIB))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_grows_with_the_copy() {
        for (done, total, expected) in [
            (0, 30 * MIB, "[------------------------------] 0 of 30 MiB (0 %)"),
            (15 * MIB, 30 * MIB, "[###############---------------] 15 of 30 MiB (50 %)"),
            (4096, 4096, "[##############################] 0 of 1 MiB (100 %)"),
            (0, 0, "[##############################] 0 of 0 MiB (100 %)"),
        ] {
            assert_eq!(super::bar(done, total), expected);
        }
    }
}
