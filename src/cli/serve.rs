//! `petstore serve`.

use std::os::fd::OwnedFd;
use std::panic::PanicHookInfo;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, channel};

use petstore::{Address, Config, Error, Listen, Server, Stopper};
use signal_hook::consts::{SIGINT, SIGTERM, SIGXFSZ};
use signal_hook::iterator::Signals;

use super::command::{Command, Settings};
use super::{logging, print, supervisor};

/// Whether the service has started, so that a panic is news for the log.
static HAS_STARTED: AtomicBool = AtomicBool::new(false);

pub const COMMANDS: &[Command] = &[Command {
    name: "serve",
    operands: &[],
    flags: &[],
    settings: Settings::All,
    about: "serve until SIGTERM or SIGINT; petstore alone means it too",
    run: |call| Ok(run(call.config.clone())?),
}];

/// Serves until a signal says to end.
fn run(mut config: Config) -> Result<(), Error> {
    // Before anything is opened.
    let passed = supervisor::take_socket()?;
    logging::start()?;
    std::panic::set_hook(Box::new(log_panic));
    // A file that may not grow further (ulimit -f) is a failed write, and no reason to die.
    signal_hook::flag::register(SIGXFSZ, Arc::default())
        .map_err(|error| format!("cannot watch signals: {error}"))?;
    // Watched before anything is started, so that a signal never ends it half way.
    let signals =
        Signals::new([SIGTERM, SIGINT]).map_err(|error| format!("cannot watch signals: {error}"))?;
    let (start, started) = channel();
    std::thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || obey(signals, &started))
        .map_err(|error| Error::no_thread(&error))?;
    if let Some(socket) = passed {
        take_over(&mut config, socket);
    }
    config.open_files = Some(raise_open_files()?);
    let server = Server::start(config)?;
    HAS_STARTED.store(true, Ordering::SeqCst);
    // The thread that takes it lives as long as the process.
    let _ = start.send(server.stopper());
    announce(&server)?;
    supervisor::say_ready(server.address());
    supervisor::start_watchdog(server.health_check())?;
    let ended = server.wait();
    logging::flush();
    ended
}

/// Has the service listen on the socket that its supervisor passes, and on nothing else.
fn take_over(config: &mut Config, socket: OwnedFd) {
    let own = std::mem::replace(&mut config.listen, Listen::Socket(Arc::new(socket)));
    if format!("{own:?}") != format!("{:?}", Listen::default()) {
        log::warn!("--listen is not used, as the supervisor passes a socket");
    }
}

/// A panic is one line in the log. At the start it is none: what could not be had is the reason for which
/// the start fails.
fn log_panic(panic: &PanicHookInfo) {
    if HAS_STARTED.load(Ordering::SeqCst) {
        let thread = std::thread::current();
        let what = panic.to_string().replace('\n', " ");
        log::error!("the thread {} {what}", thread.name().unwrap_or("without a name"));
    }
}

/// Raises the soft limit of open files to the hard one, and returns it.
fn raise_open_files() -> Result<usize, String> {
    let limit = rlimit::increase_nofile_limit(u64::MAX)
        .map_err(|error| format!("cannot tell how many files may be open: {error}"))?;
    Ok(usize::try_from(limit).unwrap_or(usize::MAX))
}

/// The first line is for scripts, which wait for it; what follows is for people.
fn announce(server: &Server) -> Result<(), Error> {
    let address = server.address();
    let mut text = format!("petstore listening on {address}\n");
    if let Some(admin) = server.admin_address() {
        text += &format!("petstore admin on http://{admin}\n");
    }
    if let Some(key) = server.first_key() {
        let (curl, url) = (curl(address), address.local_url());
        text += &format!(
            "\nThe database had no API key, so one was made. It is shown this once:\n\n    {key}\n\n\
             To add an animal and to list all of them:\n\n\
             \x20   {curl} -H 'Authorization: Bearer {key}' {url}/v1/pets -d '{{\"name\":\"Rex\",\"categoryId\":1}}' -H 'Content-Type: application/json'\n\
             \x20   {curl} -H 'Authorization: Bearer {key}' {url}/v1/pets\n\n"
        );
    }
    print(&text)
}

/// The beginning of a curl line for this address.
fn curl(address: &Address) -> String {
    match address {
        Address::Tcp(_) => "curl".to_owned(),
        Address::Unix(path) => format!("curl --unix-socket '{}'", path.display()),
    }
}

/// The first signal lets what was begun be finished, the start included; the second ends at once.
fn obey(mut signals: Signals, started: &Receiver<Stopper>) {
    let mut stopper = None;
    for signal in signals.forever() {
        if stopper.is_none() {
            log::info!("ending: finishing what was begun");
            stopper = started.recv().ok();
            stopper.iter().for_each(Stopper::stop);
            supervisor::say_stopping();
        } else if let Err(error) = signal_hook::low_level::emulate_default_handler(signal) {
            log::error!("cannot end at once: {error}");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curl_is_told_of_a_unix_socket() {
        assert_eq!(curl(&Address::Tcp(([127, 0, 0, 1], 1).into())), "curl");
        assert_eq!(curl(&Address::Unix("/a b".into())), "curl --unix-socket '/a b'");
    }
}
