//! The log. Lines go through a bounded channel to a thread of their own, so that a slow reader of standard error
//! never blocks the service. Lines that find the channel full are dropped and counted, and a line reports it.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, TrySendError, channel, sync_channel};
use std::time::Duration;

use log::LevelFilter;
use petstore::{Error, ErrorKind};

use super::command::Failure;
use super::json_line;
use super::output::{say, start_thread};
use super::own::LogFormat;

/// The most lines that can wait to be written.
const MAX_LINES: usize = 8192;
/// How long the end of the program waits for the last lines.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// How long an immediate end waits for the last lines.
pub const SHORT_PATIENCE: Duration = Duration::from_millis(100);

static SENDER: OnceLock<SyncSender<Message>> = OnceLock::new();
static DROPPED: AtomicU64 = AtomicU64::new(0);

enum Message {
    Line(Vec<u8>),
    /// Dropped once everything before it is written.
    Flush(Sender<()>),
}

/// Starts to log to standard error what `RUST_LOG` asks for.
pub fn start(format: LogFormat) -> Result<(), Failure> {
    let text = std::env::var_os("RUST_LOG").unwrap_or_default();
    let filters = text.to_str().and_then(filters).ok_or_else(|| {
        let expected = "off, error, warn, info or debug, or a list such as warn,petstore::access=info";
        Failure::wrong("RUST_LOG", expected, &text.to_string_lossy())
    })?;
    let (sender, receiver) = sync_channel(MAX_LINES);
    start_thread("log", Box::new(move || write_lines(&receiver, &mut io::stderr(), &DROPPED, format)))?;
    let line_end = LineEnd(SENDER.get_or_init(|| sender).clone());
    let mut builder = env_logger::Builder::new();
    let mut unknown = Vec::new();
    for (target, level) in filters {
        builder.filter(target, level);
        unknown.extend(target.filter(|target| !is_part(target)));
    }
    match format {
        LogFormat::Json => builder.format(|out, record| out.write_all(json_line::of(record).as_bytes())),
        LogFormat::Text => builder.format(|out, record| {
            let (level, target) = (record.level(), record.target());
            writeln!(out, "[{} {level:<5} {target}] {}", json_line::now(), record.args())
        }),
    };
    builder
        .target(env_logger::Target::Pipe(Box::new(line_end)))
        .try_init()
        .map_err(|error| Error::new(ErrorKind::Internal, format!("cannot start the log: {error}")))?;
    for target in unknown {
        log::warn!(
            "RUST_LOG names {target}, which logs nothing; the targets below petstore:: are: {}",
            PARTS.join(", ")
        );
    }
    Ok(())
}

/// Has a command print the library's warnings to standard error.
pub fn warn_plainly() {
    if log::set_logger(&Plain).is_ok() {
        log::set_max_level(LevelFilter::Warn);
    }
}

struct Plain;

impl log::Log for Plain {
    fn enabled(&self, metadata: &log::Metadata) -> bool {
        metadata.level() <= log::Level::Warn
    }

    fn log(&self, record: &log::Record) {
        if self.enabled(record.metadata()) {
            say(&format!("warning: {}", record.args()));
        }
    }

    fn flush(&self) {}
}

/// The targets below `petstore::` that log.
const PARTS: &[&str] =
    &["access", "admin", "cli", "gate", "keys", "project", "server", "service", "store", "worker"];

/// Whether a target logs, or is the beginning or a part of one that does.
fn is_part(target: &str) -> bool {
    let part = target.strip_prefix("petstore").map(|rest| rest.strip_prefix("::").unwrap_or(rest));
    part.is_some_and(|part| match part.split_once("::") {
        Some((part, _)) => PARTS.contains(&part),
        None => PARTS.iter().any(|known| known.starts_with(part)),
    }) || target.starts_with("tiny_http")
}

/// What to log, by target, after the level for all other targets, which is `warn` by default. `None` if a part of
/// the text has no meaning: `env_logger` itself would log nothing then.
fn filters(text: &str) -> Option<Vec<(Option<&str>, LevelFilter)>> {
    let mut filters = vec![(None, LevelFilter::Warn)];
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        if part.contains('/') {
            return None;
        }
        filters.push(match part.split_once('=') {
            Some(("", _)) => return None,
            Some((target, level)) => (Some(target), level.parse().ok()?),
            None if part.starts_with("petstore") => (Some(part), LevelFilter::Debug),
            None => (None, part.parse().ok()?),
        });
    }
    // At the level trace, ureq_proto logs requests to a cluster as they are, with the password.
    Some(filters.into_iter().map(|(target, level)| (target, level.min(LevelFilter::Debug))).collect())
}

/// Waits until the lines so far are written, for `patience` at most.
pub fn flush(patience: Duration) {
    let (pending, written) = channel();
    if let Some(sender) = SENDER.get()
        && sender.try_send(Message::Flush(pending)).is_ok()
    {
        // If nobody reads standard error, the lines are lost.
        let _ = written.recv_timeout(patience);
    }
}

/// The writer of `env_logger`, which gets one whole line in each call.
struct LineEnd(SyncSender<Message>);

impl Write for LineEnd {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        if let Err(TrySendError::Full(_)) = self.0.try_send(Message::Line(line.to_vec())) {
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_lines(receiver: &Receiver<Message>, out: &mut impl Write, dropped: &AtomicU64, format: LogFormat) {
    for message in receiver {
        // If standard error fails, there is nowhere to report it.
        match message {
            Message::Line(line) => drop(out.write_all(&line)),
            Message::Flush(pending) => drop(pending),
        }
        let lost = dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            petstore::note_dropped_log_lines(lost);
            let message =
                format!("{lost} log lines were dropped, because standard error was not read in time");
            let line = match format {
                LogFormat::Json => json_line::warning(&message),
                LogFormat::Text => format!("petstore: {message}\n"),
            };
            let _ = out.write_all(line.as_bytes());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_lines_are_counted() {
        let written = |format| {
            let (sender, receiver) = sync_channel(2);
            let mut end = LineEnd(sender);
            for line in ["a\n", "b\n", "c\n", "d\n"] {
                end.write_all(line.as_bytes()).unwrap();
            }
            drop(end);
            let mut out = Vec::new();
            write_lines(&receiver, &mut out, &DROPPED, format);
            String::from_utf8(out).unwrap()
        };
        assert_eq!(
            written(LogFormat::Text),
            "a\npetstore: 2 log lines were dropped, because standard error was not read in time\nb\n"
        );
        let text = written(LogFormat::Json);
        let [_, line, _] = text.lines().collect::<Vec<_>>()[..] else { panic!("{text}") };
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["level"], "warn");
        assert!(line["message"].as_str().unwrap().starts_with("2 log lines were dropped, "), "{line}");
    }

    #[test]
    fn targets_that_log_nothing_are_recognised() {
        for target in ["petstore", "petstore::access", "petstore::gate::listener", "petstore::a", "tiny_http"]
        {
            assert!(is_part(target), "{target}");
        }
        for target in
            ["petstore::acess", "petstore::gates", "petstore::gat::x", "petstor", "mio", "petstoree"]
        {
            assert!(!is_part(target), "{target}");
        }
    }

    #[test]
    fn requests_to_a_cluster_are_never_logged_as_they_are() {
        for text in ["trace", "ureq_proto=trace", "ureq_proto::util=TRACE", "petstore=trace"] {
            let most = filters(text).unwrap().into_iter().map(|(_, level)| level).max();
            assert_eq!(most, Some(LevelFilter::Debug), "{text}");
        }
    }

    #[test]
    fn unclear_filters_never_silence_the_log() {
        let warn = (None, LevelFilter::Warn);
        for text in ["", " ", ","] {
            assert_eq!(filters(text), Some(vec![warn]), "{text:?}");
        }
        assert_eq!(filters("info"), Some(vec![warn, (None, LevelFilter::Info)]));
        let access = (Some("petstore::access"), LevelFilter::Info);
        assert_eq!(filters("petstore::access=info"), Some(vec![warn, access]));
        assert_eq!(filters("OFF, petstore::access=info"), Some(vec![warn, (None, LevelFilter::Off), access]));
        assert_eq!(filters("petstore"), Some(vec![warn, (Some("petstore"), LevelFilter::Debug)]));
        for text in ["warning", "verbose", "petstore=loud", "=info", "1", "info/x"] {
            assert_eq!(filters(text), None, "{text}");
        }
    }
}
