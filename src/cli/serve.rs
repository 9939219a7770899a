//! `petstore serve`: runs the service until a signal stops it.

use std::io::IsTerminal;
use std::ops::RangeInclusive;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};

use log::Level;
use petstore::{Address, Config, Ephemeral, Error, Listen, Server, start_thread};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sd_notify::NotifyState;
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM, SIGUSR1, SIGUSR2};

use super::command::{Command, CommandError, CommandResult, Flag, Invocation, Takes};
use super::output::{existing, print};
use super::{child, command, first_key, logging, signals, supervisor, unknown_variables};

pub const COMMANDS: &[Command] = &[Command {
    takes: Takes::All,
    flags: &[
        Flag::with(
            "sample",
            "NUMBER",
            "with --ephemeral: begin with this many sample pets [0]",
        ),
        Flag::with(
            "fail",
            "RATE",
            "with --ephemeral: make this share of the requests fail, from 0 to 1, and those that ask for it",
        ),
        Flag::with(
            "delay",
            "MS[-MS]",
            "with --ephemeral: hold back each response for MS [0]",
        ),
    ],
    ..Command::new(
        "serve",
        "[-- COMMAND...]",
        "run the service until SIGTERM or SIGINT, or with --ephemeral while COMMAND runs; this is the default command",
        run,
    )
}];

/// Pairs of flags that cannot be combined. If the second is set by its environment variable, it is ignored, because the
/// variable may be meant for other starts.
const EXCLUSIVE: &[(&str, &str)] = &[
    ("ephemeral", "database"),
    ("ephemeral", "first-key-file"),
    ("ephemeral", "read-only"),
    ("ephemeral", "require-database"),
    ("read-only", "first-key-file"),
];
/// A key with fewer characters can be guessed.
const SHORT_KEY: usize = 8;
/// The most sample pets.
const MAX_SAMPLE: u32 = 1_000_000;
/// A start that takes longer logs a line, and asks the supervisor for more time at this interval.
const SLOW_START: Duration = Duration::from_secs(2);
/// The time that a slow start asks for, in microseconds. The supervisor ends a process that stops asking.
const MORE_TIME: u32 = 30_000_000;
/// The longest delay of a response, in milliseconds.
const MAX_DELAY: u64 = 60_000;

/// Serves until a signal stops the service, or it fails.
fn run(call: &Invocation) -> CommandResult {
    let mut config = call.config.clone();
    if let Some((one, other)) = EXCLUSIVE
        .iter()
        .find(|(one, other)| call.is_on(one) && call.has(other))
    {
        return command::usage(format!("--{one} and --{other} cannot be combined"));
    }
    let is_tested = !call.child.is_empty();
    if is_tested && !call.is_on("ephemeral") {
        return command::usage("a command after -- needs --ephemeral");
    }
    config.ephemeral = ephemeral(call)?;
    // A read-only or ephemeral service creates no first key in the database.
    let needs_key = config.ephemeral.is_none() && !config.read_only;
    let first_key_file = call
        .setting("first-key-file")
        .filter(|file| needs_key && !file.is_empty())
        .map(Path::new);
    let is_json = call.setting("log-format") == Some("json");
    // Before any file is opened.
    let passed = supervisor::take_socket()?;
    logging::start(is_json)?;
    unknown_variables::warn_unknown();
    config.api_key = petstore::from_environment("PETSTORE_API_KEY")
        .map_err(|error| CommandError::Usage(error.to_string()))?
        .map(Into::into);
    let began = Instant::now();
    // Programs that rotate log files send these signals, which would end the process by default.
    signals::note(&signals::heeded(&[SIGHUP, SIGUSR1, SIGUSR2]))?;
    if is_tested && call.setting("listen").is_none() {
        config.listen = Listen::Tcp(([127, 0, 0, 1], 0).into());
    }
    // The passed socket replaces --listen.
    if let Some(socket) = passed {
        if config.listen.text() != Listen::default().text() {
            log::warn!(
                "--listen (PETSTORE_LISTEN) is ignored, because the supervisor passes a socket"
            );
        }
        config.listen = Listen::Socket(Arc::new(socket));
    }
    let open_files = getrlimit(Resource::Nofile);
    config.open_files = Some(raise_open_files(open_files.maximum)?);
    if call.is_on("require-database") && config.ephemeral.is_none() {
        // A file without tables holds none.
        petstore::api_keys(existing(&config.database)?)?;
    }
    let mut made_key = None;
    // A signal during the start must not leave the temporary database behind.
    let for_child = is_tested.then(child::signals).transpose()?;
    let asked = config
        .ephemeral
        .is_some()
        .then(|| signals::note(&[SIGINT, SIGTERM]))
        .transpose()?;
    if config.ephemeral.is_some() && config.api_key.is_none() {
        made_key = Some(petstore::new_api_key()?);
        config.api_key = made_key.clone().map(Into::into);
    }
    let started = report_slow_start()?;
    let server = Server::start_after(config.clone(), || {
        if needs_key {
            made_key = first_key::prepare(&config, first_key_file)?;
        }
        Ok(())
    })?;
    drop(started);
    let stopper = server.stopper();
    if let Some(signals) = for_child
        && let Some(key) = &config.api_key
    {
        return run_child(call, server, key, signals, open_files);
    }
    let ending = signals::end(stopper.clone(), began)?;
    if asked.is_some_and(|asked| asked.load(Ordering::Relaxed)) {
        stopper.stop();
    }
    supervisor::start_watchdog(server.health_check())?;
    log::info!("{}", server.summary());
    warn_of_short_key(&config);
    let address = server.address();
    supervisor::notify(&[
        NotifyState::Ready,
        NotifyState::Status(&format!("listening on {address}")),
    ]);
    announce(
        address,
        server.admin_address(),
        &config,
        made_key.as_deref(),
    );
    let ended = server.wait();
    let (level, why) = match ended {
        Ok(()) => (Level::Info, ending.get().copied().unwrap_or("no signal")),
        Err(_) => (Level::Warn, "a failure"),
    };
    signals::log_end(level, why, began, &stopper);
    logging::flush();
    Ok(ended?)
}

/// Warns of an API key in the environment that can be guessed. That of a temporary database protects nothing.
fn warn_of_short_key(config: &Config) {
    let key = config
        .api_key
        .as_ref()
        .filter(|_| config.ephemeral.is_none());
    if key.is_some_and(|key| key.len() < SHORT_KEY) {
        log::warn!(
            "the key in PETSTORE_API_KEY has fewer than {SHORT_KEY} characters, so it can be guessed"
        );
    }
}

/// If the start takes long, logs a line, and asks the supervisor for more time again and again. The start has ended when
/// the sender is dropped.
fn report_slow_start() -> Result<Sender<()>, Error> {
    let (started, starting) = channel();
    let report = move || {
        let mut is_reported = false;
        while starting.recv_timeout(SLOW_START) == Err(RecvTimeoutError::Timeout) {
            if !std::mem::replace(&mut is_reported, true) {
                log::warn!(
                    "still starting: a slow disk takes long to flush a new database, and a long log takes long to be read"
                );
            }
            supervisor::notify(&[NotifyState::ExtendTimeoutUsec(MORE_TIME)]);
        }
    };
    start_thread("start", report)?;
    Ok(started)
}

/// Runs the command after `--`, and then stops the service.
fn run_child(
    call: &Invocation,
    server: Server,
    key: &str,
    signals: child::Signals,
    open_files: Rlimit,
) -> CommandResult {
    let code = child::run(&call.child, &server, key, signals, open_files);
    server.stopper().stop();
    let ended = server.wait();
    logging::flush();
    match code? {
        0 => Ok(ended?),
        code => Err(CommandError::Child(code)),
    }
}

/// Raises the soft limit of open files (`ulimit -n`) to the hard limit, and returns it.
fn raise_open_files(maximum: Option<u64>) -> Result<usize, Error> {
    setrlimit(
        Resource::Nofile,
        Rlimit {
            current: maximum,
            maximum,
        },
    )
    .map_err(|error| {
        Error::io(
            "cannot raise the limit of open files (ulimit -n)",
            error.into(),
        )
    })?;
    Ok(maximum
        .and_then(|limit| usize::try_from(limit).ok())
        .unwrap_or(usize::MAX))
}

/// Reads `--ephemeral` and its flags.
fn ephemeral(call: &Invocation) -> Result<Option<Ephemeral>, CommandError> {
    if !call.is_on("ephemeral") {
        let alone = ["sample", "fail", "delay"]
            .into_iter()
            .find(|flag| call.has(flag));
        return alone.map_or(Ok(None), |flag| {
            command::usage(format!("--{flag} needs --ephemeral"))
        });
    }
    let count = |text: &str| text.parse().ok().filter(|count| *count <= MAX_SAMPLE);
    let rate = |text: &str| text.parse().ok().filter(|rate| (0.0..=1.0).contains(rate));
    let sample = call.read("sample", &format!("a number from 0 to {MAX_SAMPLE}"), count)?;
    let fail = call.read("fail", "a number from 0 to 1, such as 0.1", rate)?;
    let expected = format!("milliseconds up to {MAX_DELAY}, such as 300 or 50-300");
    Ok(Some(Ephemeral {
        sample: sample.unwrap_or_default(),
        fail,
        delay: call.read("delay", &expected, delay)?,
    }))
}

/// Reads a number of milliseconds, or two numbers with a hyphen between them.
fn delay(text: &str) -> Option<RangeInclusive<Duration>> {
    let (least, most) = text.split_once('-').unwrap_or((text, text));
    let [least, most] = [least.parse().ok()?, most.parse().ok()?];
    (least <= most && most <= MAX_DELAY)
        .then(|| Duration::from_millis(least)..=Duration::from_millis(most))
}

/// Prints the lines that scripts wait for and, for people, examples with a key that was created.
fn announce(address: &Address, admin: Option<&Address>, config: &Config, made_key: Option<&str>) {
    let mut text = format!("petstore listening on {address}\n");
    if let Some(admin) = admin {
        text += &format!("petstore admin on {admin}\n");
        let has_settings =
            cfg!(feature = "site") && !config.read_only && !petstore::is_cluster(&config.database);
        if has_settings && admin.tcp().is_some() {
            text += &format!(
                "petstore settings on {}/settings/domains\n",
                admin.local_url()
            );
        }
    }
    if config.experimental {
        text += "petstore has experimental operations, which may still change\n";
    }
    if let Some(key) = made_key {
        // A first key was shown when it was created.
        if config.ephemeral.is_some() {
            text += "\nThe database and this API key are deleted when the service stops. To choose the key, set PETSTORE_API_KEY:\n";
            text += &format!("\n    {key}\n");
        }
        text += &format!(
            "\n{}\n",
            usage(address, key, std::io::stdout().is_terminal())
        );
    }
    if let Err(error) = print(&text) {
        log::warn!("{error}; the service listens on {address}");
    }
}

/// Returns two `curl` lines with a key and, on a terminal, the URL of the reference with the key after a `#`. A browser
/// does not send that part to the server, and the page removes it from the address bar.
fn usage(address: &Address, key: &str, is_terminal: bool) -> String {
    let url = address.local_url();
    let curl = match address {
        Address::Unix(path) => format!("curl --unix-socket '{}'", path.display()),
        _ => "curl".to_owned(),
    };
    let mut text = format!(
        "To add a pet and to list all pets:\n\n\
         \x20   {curl} -H 'Authorization: Bearer {key}' {url}/v1/pets -d '{{\"name\":\"Rex\",\"categoryId\":1}}' -H 'Content-Type: application/json'\n\
         \x20   {curl} -H 'Authorization: Bearer {key}' {url}/v1/pets\n"
    );
    if cfg!(feature = "site") && address.tcp().is_some() && is_terminal {
        text += &format!(
            "\nTo try it in a browser, which keeps this address in its history:\n\n    {url}/#key={key}\n"
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn curl_line_names_a_unix_socket() {
        let said = |address| usage(&address, "k", false);
        assert!(said(Address::Tcp(([127, 0, 0, 1], 1).into())).contains("    curl -H "));
        assert!(said(Address::Unix("/a b".into())).contains("    curl --unix-socket '/a b' -H "));
    }

    #[test]
    fn address_with_the_key_is_for_a_terminal_and_a_port() {
        let port = Address::Tcp(([127, 0, 0, 1], 1).into());
        let page = cfg!(feature = "site").then_some("    http://127.0.0.1:1/#key=k");
        assert_eq!(
            usage(&port, "k", true)
                .lines()
                .find(|line| line.contains('#')),
            page
        );
        for (address, is_terminal) in [(port, false), (Address::Unix("/s".into()), true)] {
            assert!(
                !usage(&address, "k", is_terminal).contains('#'),
                "{address}"
            );
        }
    }
}
