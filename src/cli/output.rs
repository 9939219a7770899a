//! Writes to standard output and standard error, and formats values for people.

use std::io::{self, IsTerminal, Write};
use std::path::{Path, PathBuf};

use petstore::{Error, parse_rfc3339};

/// Prints to standard output.
pub fn print(text: &str) -> Result<(), Error> {
    let mut out = out(false);
    let printed = out.write_all(text.as_bytes()).and_then(|()| out.flush());
    printed.map_err(|error| Error::io("cannot write to standard output", error))
}

/// Reads a day, or a time of RFC 3339, in milliseconds of Unix time.
pub fn moment(text: &str) -> Option<i64> {
    parse_rfc3339(text).or_else(|| parse_rfc3339(&format!("{text}T00:00:00Z")))
}

/// Returns standard output. On a terminal, characters that it would interpret are escaped as in JSON, such as `\u001b`;
/// files and programs get the original characters.
pub fn out(is_csv: bool) -> Box<dyn Write> {
    let out = io::stdout();
    if out.is_terminal() {
        Box::new(Terminal {
            is_csv,
            is_quoted: false,
        })
    } else {
        Box::new(out.lock())
    }
}

struct Terminal {
    is_csv: bool,
    /// True within a quoted field of CSV, where a line break is a part of the field.
    is_quoted: bool,
}

impl Write for Terminal {
    /// Writes whole characters; a character must not be split between two calls.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let mut shown = String::with_capacity(bytes.len());
        for c in String::from_utf8_lossy(bytes).chars() {
            self.is_quoted ^= self.is_csv && c == '"';
            let is_end = !self.is_quoted && (c == '\n' || self.is_csv && c == '\r');
            if is_end || !is_control(c) {
                shown.push(c);
            } else {
                shown += &format!("\\u{:04x}", u32::from(c));
            }
        }
        io::stdout()
            .write_all(shown.as_bytes())
            .map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        io::stdout().flush()
    }
}

/// Returns whether a terminal interprets a character instead of showing it: a control character, or one that changes the
/// direction of the text (Unicode Standard Annex 9, section 2).
pub fn is_control(c: char) -> bool {
    c.is_control()
        || matches!(c, '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// Prints the result of a change. A failure to print is ignored, because a failing exit code could make a script repeat
/// the change.
pub fn report(text: &str) {
    let _ = print(text);
}

/// Prints to standard error. A failure to print is ignored: the exit code depends on the pets alone, so that a program
/// that retries after a failure does not add pets twice.
pub fn print_to_stderr(text: &str) {
    let _ = std::io::stderr().write_all(text.as_bytes());
}

/// Prints one line to standard error. If nobody reads it, only the exit code remains.
pub fn print_error(line: &str) {
    // In the journal, with the priority of an error (`sd-daemon(3)`).
    let priority = if super::logging::is_journal() {
        "<3>"
    } else {
        ""
    };
    let _ = io::stderr().write_all(format!("{priority}petstore: {line}\n").as_bytes());
}

/// Returns the path of a database, which must exist.
pub fn existing(database: &Path) -> Result<&Path, Error> {
    if petstore::database_exists(database) {
        Ok(database)
    } else {
        Err(Error::no_database(database))
    }
}

/// Returns the absolute path of a file, which need not exist, or the address of a cluster without its options.
pub fn absolute(path: &Path) -> PathBuf {
    match path.to_str().and_then(|text| text.strip_prefix("rqlite")) {
        // The options after the address of a cluster may name files of this machine.
        Some(rest) if rest.contains("://") => PathBuf::from(format!(
            "rqlite{}",
            rest.split('?').next().unwrap_or_default()
        )),
        _ => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
    }
}

/// Formats a past time; `unknown` if it is later than now, because the clock was wrong.
pub fn past(at: i64) -> String {
    petstore::past(at).unwrap_or_else(|| "unknown".to_owned())
}

/// Formats a number of things, such as `1 pet` or `2 pets`.
pub fn count(number: u64, thing: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {thing}{plural}")
}

/// Prints rows with aligned columns.
pub fn table<const N: usize>(rows: &[[String; N]]) -> String {
    let width = |column: usize| rows.iter().map(|row| row[column].len()).max().unwrap_or(0);
    let mut text = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            line += &format!("{cell:<width$}  ", width = width(column));
        }
        text += line.trim_end();
        text.push('\n');
    }
    text
}
