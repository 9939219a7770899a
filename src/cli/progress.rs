//! The progress of a long task, on one line of a terminal that is drawn again and again. Elsewhere it is not shown.

use std::io::{IsTerminal, Write, stderr};

use petstore::Progress;

/// The width of a bar, in characters.
const WIDTH: u64 = 30;
const MIB: u64 = 1024 * 1024;
/// The control sequence that erases the line (ECMA-48, section 8.3.41).
const ERASE: &str = "\r\x1b[K";

/// The line of a task. Dropping this erases it.
pub struct Line {
    is_shown: bool,
}

impl Line {
    /// Begins with what the task does, such as `checking`.
    pub fn new(text: &str) -> Self {
        let line = Self { is_shown: stderr().is_terminal() };
        line.draw(text);
        line
    }

    /// Replaces the text.
    pub fn draw(&self, text: &str) {
        if self.is_shown {
            // If nobody reads it, the task goes on.
            let _ = write!(stderr(), "{ERASE}{text}");
        }
    }

    /// Draws how far a copy is. A complete copy is checked next.
    pub fn draw_copy(&self, Progress { done, total, .. }: Progress) {
        if done < total {
            self.draw(&format!("{} {} of {} MiB", bar(done, total), done / MIB, total.div_ceil(MIB)));
        } else {
            self.draw("checking");
        }
    }
}

impl Drop for Line {
    fn drop(&mut self) {
        self.draw("");
    }
}

/// A bar that is full to the part `done` of `total`.
pub fn bar(done: u64, total: u64) -> String {
    let full = (done * WIDTH).checked_div(total).unwrap_or(WIDTH).min(WIDTH);
    let cells = |count: u64, cell: &str| cell.repeat(usize::try_from(count).unwrap_or(0));
    format!("[{}{}]", cells(full, "#"), cells(WIDTH - full, "-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bar_is_full_to_the_part_that_is_done() {
        assert_eq!(bar(0, 4), format!("[{}]", "-".repeat(30)));
        assert_eq!(bar(2, 4), format!("[{}{}]", "#".repeat(15), "-".repeat(15)));
        assert_eq!(bar(0, 0), format!("[{}]", "#".repeat(30)));
    }
}
