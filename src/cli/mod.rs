//! The parts of the command line.

pub mod args;
pub mod command;
mod description;
mod first_key;
pub mod help;
mod json_line;
mod keys;
mod logging;
mod maintenance;
mod manual;
mod pending;
mod pets;
mod progress;
#[cfg(feature = "site")]
mod project;
#[cfg(not(feature = "site"))]
#[path = "no_project.rs"]
mod project;
mod serve;
mod signals;
mod supervisor;
mod transfer;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pending::pending;
use petstore::Error;

/// How long it may take to be written to a stream that somebody may hold and not read.
const PATIENCE: Duration = Duration::from_secs(1);

/// Prints to standard output.
///
/// # Errors
/// Where nobody takes it.
pub fn print(text: &str) -> Result<(), Error> {
    write_out(text).map_err(cannot_print)
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
/// Where nobody takes it: a key that is shown once must not be lost unnoticed.
pub fn print_soon(text: &str) -> Result<(), Error> {
    let text = text.to_owned();
    match soon(Box::new(move || write_out(&text))) {
        Some(printed) => printed.map_err(cannot_print),
        None => Err("nobody reads standard output".to_owned().into()),
    }
}

fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn cannot_print(error: io::Error) -> Error {
    format!("cannot write to standard output: {error}").into()
}

/// Says one plain line on standard error, for a moment.
pub fn say(line: &str) {
    let text = format!("petstore: {line}\n");
    // Where nobody reads standard error, or no thread is to be had, the exit code is all there is.
    let _ = soon(Box::new(move || io::stderr().write_all(text.as_bytes())));
}

/// Does what may never end in a thread of its own. `None`: it takes longer than a moment.
fn soon(work: Box<dyn FnOnce() -> io::Result<()> + Send>) -> Option<io::Result<()>> {
    let done = Arc::new(Mutex::new(None));
    let (pending, waiter) = pending();
    let there = Arc::clone(&done);
    let work = move || {
        let result = work();
        *there.lock().unwrap_or_else(PoisonError::into_inner) = Some(result);
        drop(pending);
    };
    start_thread("", Box::new(work)).ok()?;
    waiter.wait(PATIENCE);
    // While the work goes on, nobody has the lock for long.
    done.lock().unwrap_or_else(PoisonError::into_inner).take()
}

/// Starts a thread that ends with its work, or with the process. The work is boxed, as the code that starts it is
/// large and would be there for each work.
///
/// # Errors
/// One plain line, where the thread cannot be had.
pub fn start_thread(name: &str, work: Box<dyn FnOnce() + Send>) -> Result<(), Error> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map(drop).map_err(|error| Error::no_thread(&error))
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
