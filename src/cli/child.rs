//! The command that `serve --ephemeral … -- COMMAND` runs while the service does.

use std::ffi::OsString;
use std::io::ErrorKind;
use std::os::unix::process::ExitStatusExt;
use std::process::Command;

use petstore::{Address, Error, Server, start_thread};
use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, setrlimit};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM};
use signal_hook::iterator::SignalsInfo;
use signal_hook::iterator::exfiltrator::WithOrigin;
use signal_hook::low_level::siginfo::Cause;

use super::output::{absolute, print_error};
use super::signals;

/// Caught signals, each with who sent it.
pub type Signals = SignalsInfo<WithOrigin>;

/// Catches the signals for the command from now on.
pub fn signals() -> Result<Signals, Error> {
    let hangup = signals::heeded(&[SIGHUP]);
    Signals::new([SIGINT, SIGQUIT, SIGTERM].iter().chain(&hangup)).map_err(signals::cannot_watch)
}

/// Runs a command with the addresses, the database and a key of the service in its environment, forwards signals to it,
/// and waits for it. After a signal during the start of the service, the command does not run.
///
/// Returns the exit code as a shell does: that of the command; for a signal, 128 and its number; 126 or 127 if the
/// command cannot be run.
pub fn run(
    words: &[OsString],
    server: &Server,
    key: &str,
    mut signals: Signals,
    open_files: Rlimit,
) -> Result<u8, Error> {
    let [program, arguments @ ..] = words else {
        return Ok(0);
    };
    if let Some(origin) = signals.pending().next() {
        return Ok(u8::try_from(128 + origin.signal).unwrap_or(u8::MAX));
    }
    let setting = |address: &Address| match address {
        Address::Unix(path) => Address::Unix(absolute(path)).to_string(),
        other => other.to_string().replace("http://", ""),
    };
    let mut command = Command::new(program);
    command
        .args(arguments)
        .env("PETSTORE_URL", server.address().local_url())
        .env("PETSTORE_LISTEN", setting(server.address()))
        .env("PETSTORE_API_KEY", key)
        .env("PETSTORE_DATABASE", server.database())
        .env_remove("PETSTORE_EPHEMERAL");
    if let Address::Unix(path) = server.address() {
        command.env("PETSTORE_SOCKET", absolute(path));
    }
    if let Some(admin) = server.admin_address() {
        command.env("PETSTORE_ADMIN", setting(admin));
    }
    // It gets the limit of open files that petstore was started with, which is raised again after that.
    let raised = getrlimit(Resource::Nofile);
    let _ = setrlimit(Resource::Nofile, open_files);
    let spawned = command.spawn();
    let _ = setrlimit(Resource::Nofile, raised);
    let mut child = match spawned {
        Ok(child) => child,
        Err(error) => {
            print_error(&format!("cannot run {}: {error}", program.display()));
            return Ok(if error.kind() == ErrorKind::NotFound {
                127
            } else {
                126
            });
        }
    };
    let (pid, handle) = (Pid::from_child(&child), signals.handle());
    start_thread("signals", move || {
        // What the kernel sends, such as for Ctrl-C, it sends to every process of the terminal, so to the command too.
        let sent = signals.forever().filter(|sent| sent.cause != Cause::Kernel);
        for signal in sent.filter_map(|sent| Signal::from_named_raw(sent.signal)) {
            let _ = kill_process(pid, signal);
        }
    })?;
    let ended = child.wait();
    handle.close();
    let status = ended
        .map_err(|error| Error::io(format!("cannot wait for {}", program.display()), error))?;
    let code = status
        .code()
        .unwrap_or_else(|| 128 + status.signal().unwrap_or_default());
    Ok(u8::try_from(code).unwrap_or(u8::MAX))
}
