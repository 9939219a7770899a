//! The log. A separate thread writes the lines to standard error, so that a slow reader never blocks the service. Lines
//! wait in a channel that is bounded by their number and their bytes. If it is full, new lines are dropped and counted,
//! and a later line reports the count.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::time::Duration;

use log::{Level, LevelFilter, Record};
use petstore::{Error, ErrorKind, rfc3339_millis, start_thread, unix_millis};
use rustix::fs::fstat;

use super::json_line;

/// The most lines that can wait to be written, and their most bytes.
const MAX_LINES: usize = 2048;
const MAX_BYTES: usize = 1024 * 1024;
/// The end of the program waits at most this long for the last lines.
const PATIENCE: Duration = Duration::from_secs(1);

static SENDER: OnceLock<SyncSender<Message>> = OnceLock::new();
static DROPPED: AtomicU64 = AtomicU64::new(0);
/// The bytes of the waiting lines.
static WAITING: AtomicUsize = AtomicUsize::new(0);

enum Message {
    Line(Vec<u8>),
    /// The sender is dropped when everything before it is written.
    Flush(Sender<()>),
}

/// The form of the lines.
#[derive(Clone, Copy)]
struct Form {
    is_json: bool,
    /// The lines go to the journal, which has the time. They begin with their priority (`sd-daemon(3)`).
    is_journal: bool,
}

/// Starts the log to standard error. `RUST_LOG` filters it.
pub fn start(is_json: bool) -> Result<(), Error> {
    let form = Form {
        is_json,
        is_journal: is_journal(),
    };
    let (sender, receiver) = sync_channel(MAX_LINES);
    start_thread("log", move || {
        write_lines(&receiver, &mut io::stderr(), form);
    })?;
    let line_end = LineEnd(SENDER.get_or_init(|| sender).clone());
    let filter = std::env::var("RUST_LOG").unwrap_or_default();
    let mut builder = env_logger::Builder::new();
    if !words(&filter).any(|word| word.parse::<LevelFilter>().is_ok()) {
        // Also starts and stops.
        builder
            .filter_level(LevelFilter::Warn)
            .filter_module("petstore::cli", LevelFilter::Info);
    }
    builder
        .parse_filters(&filter)
        .format(move |out, record| write(out, record, form))
        .target(env_logger::Target::Pipe(Box::new(line_end)))
        .try_init()
        .map_err(|error| {
            Error::new(
                ErrorKind::Internal,
                format!("cannot start the log: {error}"),
            )
        })?;
    // At the level trace, ureq_proto logs whole requests to a cluster, with the password.
    log::set_max_level(log::max_level().min(LevelFilter::Debug));
    std::panic::set_hook(Box::new(|panic| {
        log::error!("{}", panic.to_string().replace('\n', " "));
    }));
    if let Some(word) = word_without_effect(&filter) {
        log::warn!(
            "'{word}' in RUST_LOG has no effect: it is neither a level (off, error, warn, info or debug) nor a module of petstore"
        );
    }
    Ok(())
}

/// Returns whether standard error goes to the journal of systemd (`JOURNAL_STREAM`, `systemd.exec(5)`).
pub fn is_journal() -> bool {
    let stream = std::env::var("JOURNAL_STREAM").unwrap_or_default();
    fstat(io::stderr()).is_ok_and(|file| stream == format!("{}:{}", file.st_dev, file.st_ino))
}

/// Returns the first word of `RUST_LOG` that `env_logger` takes for a module, although petstore has none of this name.
fn word_without_effect(filter: &str) -> Option<&str> {
    let is_known = |word: &str| {
        word.is_empty()
            || word.contains('=')
            || word.split("::").next() == Some("petstore")
            || word.parse::<LevelFilter>().is_ok()
    };
    words(filter).find(|word| !is_known(word))
}

/// The words of `RUST_LOG`, before the pattern that a slash separates.
fn words(filter: &str) -> impl Iterator<Item = &str> {
    filter
        .split('/')
        .take(1)
        .flat_map(|filter| filter.split(','))
        .map(str::trim)
}

/// Writes one line.
fn write(out: &mut impl Write, record: &Record, form: Form) -> io::Result<()> {
    if form.is_journal {
        let priority = match record.level() {
            Level::Error => 3,
            Level::Warn => 4,
            Level::Info => 6,
            Level::Debug | Level::Trace => 7,
        };
        write!(out, "<{priority}>")?;
    }
    let (level, target, text) = (record.level(), record.target(), record.args());
    match form {
        Form { is_json: true, .. } => out.write_all(json_line::format(record).as_bytes()),
        Form {
            is_journal: true, ..
        } => writeln!(out, "[{level:<5} {target}] {text}"),
        _ => writeln!(
            out,
            "[{} {level:<5} {target}] {text}",
            rfc3339_millis(unix_millis())
        ),
    }
}

/// Makes a command print the library's warnings to standard error.
pub fn warn_plainly() {
    let _ = env_logger::Builder::new()
        .filter_level(LevelFilter::Warn)
        .format(|out, record| writeln!(out, "petstore: warning: {}", record.args()))
        .try_init();
}

/// Waits until the lines so far are written, at most a second.
pub fn flush() {
    let (pending, written) = channel();
    if let Some(sender) = SENDER.get()
        && sender.try_send(Message::Flush(pending)).is_ok()
    {
        // If nobody reads standard error, the lines are lost.
        let _ = written.recv_timeout(PATIENCE);
    }
}

/// The output of `env_logger`. Each call of `write` gets one whole line.
struct LineEnd(SyncSender<Message>);

impl Write for LineEnd {
    fn write(&mut self, line: &[u8]) -> io::Result<usize> {
        // Counted before it is sent, because it may be written immediately.
        let has_room = WAITING.fetch_add(line.len(), Ordering::Relaxed) + line.len() <= MAX_BYTES;
        if !has_room || self.0.try_send(Message::Line(line.to_vec())).is_err() {
            WAITING.fetch_sub(line.len(), Ordering::Relaxed);
            DROPPED.fetch_add(1, Ordering::Relaxed);
        }
        Ok(line.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn write_lines(receiver: &Receiver<Message>, out: &mut impl Write, form: Form) {
    for message in receiver {
        // A failure of standard error cannot be reported anywhere.
        match message {
            Message::Line(line) => {
                let _ = out.write_all(&line);
                WAITING.fetch_sub(line.len(), Ordering::Relaxed);
            }
            Message::Flush(pending) => drop(pending),
        }
        let lost = DROPPED.swap(0, Ordering::Relaxed);
        if lost > 0 {
            petstore::note_dropped_log_lines(lost);
            let said = format_args!(
                "{lost} log lines were dropped, because standard error was not read in time"
            );
            let record = Record::builder()
                .level(Level::Warn)
                .target(module_path!())
                .args(said)
                .build();
            let _ = write(out, &record, form);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Mutex;

    /// Held by a test that uses the counters.
    static COUNTERS: Mutex<()> = Mutex::new(());

    #[test]
    fn lines_that_wait_have_bounded_bytes() {
        let _counters = COUNTERS.lock();
        let (sender, receiver) = sync_channel(MAX_LINES);
        let mut end = LineEnd(sender);
        let line = [b'a'; 16 * 1024];
        (0..MAX_LINES).for_each(|_| end.write_all(&line).unwrap());
        drop(end);
        let waiting = receiver.iter().count();
        WAITING.fetch_sub(waiting * line.len(), Ordering::Relaxed);
        assert_eq!(waiting, 64);
        DROPPED.store(0, Ordering::Relaxed);
    }

    #[test]
    fn lines_of_the_journal_have_a_priority_and_no_date() {
        let record = Record::builder()
            .level(Level::Info)
            .target("petstore::cli")
            .args(format_args!("a"))
            .build();
        let written = |is_json| {
            let mut out = Vec::new();
            write(
                &mut out,
                &record,
                Form {
                    is_json,
                    is_journal: true,
                },
            )
            .unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(false), "<6>[INFO  petstore::cli] a\n");
        assert!(written(true).starts_with("<6>{\"time\":"));
    }

    #[test]
    fn word_that_filters_nothing_is_found() {
        for (filter, word) in [
            ("verbose", Some("verbose")),
            ("info, petstor", Some("petstor")),
            ("info", None),
            ("petstore=debug,WARN,petstore::access", None),
            ("", None),
        ] {
            assert_eq!(word_without_effect(filter), word, "{filter}");
        }
    }

    #[test]
    fn dropped_lines_are_counted() {
        let _counters = COUNTERS.lock();
        let written = |is_json| {
            let (sender, receiver) = sync_channel(2);
            let mut end = LineEnd(sender);
            for line in ["a\n", "b\n", "c\n", "d\n"] {
                end.write_all(line.as_bytes()).unwrap();
            }
            drop(end);
            let mut out = Vec::new();
            write_lines(
                &receiver,
                &mut out,
                Form {
                    is_json,
                    is_journal: false,
                },
            );
            String::from_utf8(out).unwrap()
        };
        let text = written(false);
        let dropped = "petstore::cli::logging] 2 log lines were dropped, because standard error was not read in time\nb\n";
        assert!(
            text.starts_with("a\n[") && text.ends_with(dropped),
            "{text}"
        );
        let text = written(true);
        let [_, line, _] = text.lines().collect::<Vec<_>>()[..] else {
            panic!("{text}")
        };
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        assert_eq!(line["level"], "warn");
        assert!(
            line["message"]
                .as_str()
                .unwrap()
                .starts_with("2 log lines were dropped, "),
            "{line}"
        );
    }
}
