//! Standard output and standard error. A stream that nobody reads delays the program by a second at most.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::mpsc::channel;
use std::time::Duration;

use petstore::{Error, ErrorKind};

/// How long to wait for a stream that somebody holds open and does not read.
pub const PATIENCE: Duration = Duration::from_secs(1);

/// Prints to standard output.
pub fn print(text: &str) -> Result<(), Error> {
    write_out(text).map_err(cannot_print)
}

/// Prints to standard output, and waits for its reader for a moment only.
///
/// # Errors
/// Fails if it cannot be written in time: a key that is shown once must not be lost unnoticed.
pub fn print_soon(text: &str) -> Result<(), Error> {
    let text = text.to_owned();
    match soon(Box::new(move || write_out(&text))) {
        Some(printed) => printed.map_err(cannot_print),
        None => Err(Error::new(ErrorKind::Io, "nobody reads standard output")),
    }
}

fn write_out(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

fn cannot_print(error: io::Error) -> Error {
    Error::io("cannot write to standard output", error)
}

/// Prints one plain line to standard error, and waits for its reader for a moment only.
pub fn say(line: &str) {
    let text = format!("petstore: {line}\n");
    let copy = text.clone();
    let (written, waiter) = channel::<()>();
    let write = move || {
        let _ = io::stderr().write_all(copy.as_bytes());
        drop(written);
    };
    // If nobody reads standard error, only the exit code remains.
    match start_thread("", Box::new(write)) {
        Ok(()) => drop(waiter.recv_timeout(PATIENCE)),
        // Too many threads may be why there is something to say.
        Err(_) => drop(io::stderr().write_all(text.as_bytes())),
    }
}

/// Says that a command has created a new database, as a mistyped name is the usual cause.
pub fn say_new(database: &Path) {
    say(&format!(
        "created the new database {}; if you meant an existing one, give it with --database",
        absolute(database).display()
    ));
}

/// The absolute path of a file, which need not exist.
pub fn absolute(path: &Path) -> PathBuf {
    match path.to_str().and_then(|text| text.strip_prefix("rqlite")) {
        // The address of a cluster is the same in every folder; what belongs to this machine alone follows it.
        Some(rest) if rest.contains("://") => {
            PathBuf::from(format!("rqlite{}", rest.split('?').next().unwrap_or_default()))
        }
        _ => std::path::absolute(path).unwrap_or_else(|_| path.to_owned()),
    }
}

/// A number of things, such as `1 pet` or `2 pets`.
pub fn count(number: impl TryInto<u64>, thing: &str) -> String {
    match number.try_into().unwrap_or(u64::MAX) {
        1 => format!("1 {thing}"),
        number => format!("{number} {thing}s"),
    }
}

/// Runs what may never end in a thread of its own. `None`: it takes longer than a moment.
fn soon(work: Box<dyn FnOnce() -> io::Result<()> + Send>) -> Option<io::Result<()>> {
    let (sender, done) = channel();
    start_thread("", Box::new(move || drop(sender.send(work())))).ok()?;
    done.recv_timeout(PATIENCE).ok()
}

/// Starts a thread that ends with its work, or with the process. The work is boxed because the code that starts a
/// thread is large and would otherwise be compiled once for each work.
pub fn start_thread(name: &str, work: Box<dyn FnOnce() + Send>) -> Result<(), Error> {
    let thread = std::thread::Builder::new().name(name.to_owned()).spawn(work);
    thread.map(drop).map_err(Error::no_thread)
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
