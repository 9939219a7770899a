//! The command that `serve --ephemeral … -- COMMAND` runs while the service does.

use std::ffi::OsString;
use std::io::{ErrorKind, IsTerminal, stdin};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use petstore::{Address, Error, Server, start_thread};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::Signals;

use super::output::print_error;
use super::signals;

/// Catches the signals for the command from now on.
pub fn signals() -> Result<Signals, Error> {
    let hangup = signals::heeded(&[SIGHUP]);
    Signals::new([SIGINT, SIGQUIT, SIGTERM].iter().chain(&hangup)).map_err(signals::cannot_watch)
}

/// Runs a command with the URL, the database and a key of the service in its environment, forwards signals to it, and
/// waits for it. After a signal during the start of the service, the command does not run.
///
/// Returns the exit code as a shell does: that of the command; for a signal, 128 and its number; 126 or 127 if the
/// command cannot be run.
pub fn run(words: &[OsString], server: &Server, key: &str, mut signals: Signals) -> Result<u8, Error> {
    let [program, arguments @ ..] = words else { return Ok(0) };
    if let Some(signal) = signals.pending().next() {
        return Ok(u8::try_from(128 + signal).unwrap_or(u8::MAX));
    }
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("PETSTORE_URL", server.address().local_url())
        .env("PETSTORE_API_KEY", key)
        .env("PETSTORE_DATABASE", server.database())
        .env_remove("PETSTORE_EPHEMERAL");
    if let Address::Unix(path) = server.address() {
        command.env("PETSTORE_SOCKET", path);
    }
    let mut child = match command.spawn() {
        Ok(child) => child,
        Err(error) => {
            print_error(&format!("cannot run {}: {error}", program.display()));
            return Ok(if error.kind() == ErrorKind::NotFound { 127 } else { 126 });
        }
    };
    let (pid, handle) = (Pid::from_child(&child), signals.handle());
    // A terminal sends Ctrl-C and Ctrl-\ to the command as well.
    let is_sent = |signal| !([SIGINT, SIGQUIT].contains(&signal) && stdin().is_terminal());
    start_thread("signals", move || {
        for signal in signals.forever().filter(|signal| is_sent(*signal)) {
            let _ = Signal::from_named_raw(signal).map(|signal| kill_process(pid, signal));
        }
    })?;
    let ended = child.wait();
    handle.close();
    let status = ended.map_err(|error| Error::io(format!("cannot wait for {}", program.display()), error))?;
    let code = status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    Ok(u8::try_from(code).unwrap_or(u8::MAX))
}
