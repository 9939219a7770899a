//! The parts of the command line.

pub mod args;
pub mod command;
mod description;
#[cfg(feature = "site")]
mod domains;
mod first_key;
pub mod help;
mod json_line;
mod keys;
mod logging;
mod maintenance;
mod manual;
mod pets;
mod progress;
mod serve;
mod signals;
#[cfg(feature = "site")]
mod site;
mod supervisor;
mod transfer;

use std::io::Write;
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc::channel;
use std::time::Duration;

/// How long it may take to be written to a stream that somebody may hold and not read.
const PATIENCE: Duration = Duration::from_secs(1);

/// Prints to standard output.
///
/// # Errors
/// Where nobody takes it: a key that is shown once must not be lost unnoticed.
pub fn print(text: &str) -> Result<(), petstore::Error> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())
        .and_then(|()| out.flush())
        .map_err(|error| format!("cannot write to standard output: {error}").into())
}

/// Rows with their columns below each other.
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

/// Prints to standard output, which somebody may hold and not read, for a moment.
///
/// # Errors
/// Where nobody takes it.
pub fn print_soon(text: &str) -> Result<(), petstore::Error> {
    let text = text.to_owned();
    let late = || Err("nobody reads standard output".to_owned().into());
    soon(move || print(&text)).unwrap_or_else(late)
}

/// Says one plain line on standard error, for a moment.
pub fn say(line: &str) {
    let text = format!("petstore: {line}\n");
    // Where nobody reads standard error, or no thread is to be had, the exit code is all there is.
    let _ = soon(move || Ok(std::io::stderr().write_all(text.as_bytes()).unwrap_or_default()));
}

/// Does what may never end in a thread of its own. `None`: it takes longer than a moment.
fn soon(
    work: impl FnOnce() -> Result<(), petstore::Error> + Send + 'static,
) -> Option<Result<(), petstore::Error>> {
    let (end, done) = channel();
    std::thread::Builder::new().spawn(move || end.send(work())).ok()?;
    done.recv_timeout(PATIENCE).ok()
}

/// Says that a command has made a new database where there was none, as a wrong name is the usual cause.
pub fn say_new(database: &Path) {
    let path = std::path::absolute(database).unwrap_or_else(|_| database.to_owned());
    say(&format!(
        "there was no database {}, so a new one was made; if another one is meant, name it with --database",
        path.display()
    ));
}

/// Says on standard error, in one plain line, why nothing came of it.
pub fn fail(code: u8, line: &str) -> ExitCode {
    say(line);
    ExitCode::from(code)
}
