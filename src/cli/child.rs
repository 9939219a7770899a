//! The command that `serve --ephemeral … -- COMMAND` runs while the service does.

use std::ffi::OsString;
use std::io::{IsTerminal, stdin};
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use petstore::{Error, Server, start_thread};
use rustix::process::{Pid, Signal, kill_process};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

/// Runs a command with the URL and a key of the service in its environment, forwards signals to it, and waits for it.
/// Returns its exit code: for a signal, 128 and its number, as a shell does.
pub fn run(words: &[OsString], server: &Server, key: &str) -> Result<u8, Error> {
    let [program, arguments @ ..] = words else { return Ok(0) };
    let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP]).map_err(super::signals::cannot_watch)?;
    let mut child = Command::new(program)
        .args(arguments)
        .env("PETSTORE_URL", server.address().local_url())
        .env("PETSTORE_API_KEY", key)
        .spawn()
        .map_err(|error| Error::io(format!("cannot run {}", program.display()), error))?;
    let (pid, handle) = (Pid::from_child(&child), signals.handle());
    // A terminal sends Ctrl-C to the command as well.
    let is_sent = |signal| !(signal == SIGINT && stdin().is_terminal());
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
