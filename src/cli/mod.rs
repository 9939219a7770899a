//! The parts of the command line.

pub mod args;
pub mod command;
mod description;
pub mod help;
mod keys;
mod logging;
mod manual;
mod serve;
mod supervisor;

use std::io::Write;
use std::process::ExitCode;

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

/// Says on standard error, in one plain line, why nothing came of it.
pub fn fail(code: u8, line: &str) -> ExitCode {
    let _ = writeln!(std::io::stderr(), "petstore: {line}");
    ExitCode::from(code)
}
