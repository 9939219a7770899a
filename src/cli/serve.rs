//! `petstore serve`.

use std::net::SocketAddr;
use std::os::fd::OwnedFd;
use std::panic::PanicHookInfo;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use petstore::{Address, Config, KeyRing, Listen, Server};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

use super::command::{Command, Done, Settings};
use super::pending::pending;
use super::{first_key, logging, print, signals, start_thread, supervisor};

/// Whether the service has started, so that a panic is news for the log.
static HAS_STARTED: AtomicBool = AtomicBool::new(false);

pub const COMMANDS: &[Command] = &[Command {
    name: "serve",
    operands: &[],
    flags: &[],
    settings: Settings::All,
    about: "serve until SIGTERM or SIGINT; petstore alone means it too",
    run: |call| run(call.config.clone()),
}];

/// Serves until a signal says to end.
fn run(mut config: Config) -> Done {
    // Before anything is opened.
    let passed = supervisor::take_socket()?;
    logging::start(config.log_format)?;
    std::panic::set_hook(Box::new(log_panic));
    // Before anything is started, so that a signal never ends it half way.
    let signals = signals::Watch::start()?;
    if let Some(socket) = passed {
        take_over(&mut config, socket);
    }
    config.open_files = Some(raise_open_files()?);
    let server = Server::start(config.clone())?;
    HAS_STARTED.store(true, Ordering::SeqCst);
    signals.started(server.stopper());
    supervisor::start_watchdog(server.health_check())?;
    // The last that can fail: a start that fails leaves no key behind.
    let ring = first_key::prepare(&config)?;
    log::warn!("{}", server.summary());
    let (address, admin) = (server.address().clone(), server.admin_address());
    supervisor::say_ready(&address);
    // In a thread of its own, as nobody may read standard output.
    let (pending, announced) = pending();
    let announce = move || {
        announce(&address, admin, ring, &config);
        drop(pending);
    };
    if let Err(error) = start_thread("announce", Box::new(announce)) {
        log::warn!("cannot print where the service listens: {error}");
    }
    let ended = server.wait();
    // A key is shown whole, unless nobody takes it.
    announced.wait(logging::PATIENCE);
    signals.ended(ended.is_err());
    logging::flush(logging::PATIENCE);
    Ok(ended?)
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
    let Rlimit { maximum, .. } = getrlimit(Resource::Nofile);
    setrlimit(Resource::Nofile, Rlimit { current: maximum, maximum })
        .map_err(|error| format!("cannot raise the limit of open files (ulimit -n): {error}"))?;
    Ok(maximum.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX))
}

/// The first line is for scripts, which wait for it; what follows is for people.
fn announce(address: &Address, admin: Option<SocketAddr>, ring: Option<KeyRing>, config: &Config) {
    let admin = admin.map(|admin| format!("petstore admin on http://{admin}\n")).unwrap_or_default();
    if let Err(error) = print(&format!("petstore listening on {address}\n{admin}")) {
        log::warn!("{error}; the service listens on {address}");
    }
    let Some(ring) = ring else { return };
    let (curl, url) = (curl(address), address.local_url());
    first_key::show(ring, config, |key| {
        format!(
            "To add an animal and to list all of them:\n\n\
             \x20   {curl} -H 'Authorization: Bearer {key}' {url}/v1/pets -d '{{\"name\":\"Rex\",\"categoryId\":1}}' -H 'Content-Type: application/json'\n\
             \x20   {curl} -H 'Authorization: Bearer {key}' {url}/v1/pets\n"
        )
    });
}

/// The beginning of a curl line for this address.
fn curl(address: &Address) -> String {
    match address {
        Address::Tcp(_) => "curl".to_owned(),
        Address::Unix(path) => format!("curl --unix-socket '{}'", path.display()),
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
