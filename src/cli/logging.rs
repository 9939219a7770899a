//! Log lines go through a bounded channel to a thread of their own, so that whoever reads them slowly
//! holds up nobody. What had to be dropped is counted, and said.

use std::io::{self, Write};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::time::Duration;

use petstore::Error;

/// The most lines that wait to be written.
const MAX_LINES: usize = 8192;
/// How long the end of the program waits for the last lines.
pub const PATIENCE: Duration = Duration::from_secs(1);
/// How long an end at once waits for them.
pub const SHORT_PATIENCE: Duration = Duration::from_millis(100);

static SENDER: OnceLock<SyncSender<Message>> = OnceLock::new();
static DROPPED: AtomicU64 = AtomicU64::new(0);

enum Message {
    Line(Vec<u8>),
    /// Everything before this is to be written, and then word given.
    Flush(SyncSender<()>),
}

/// Starts logging to standard error, as `RUST_LOG` says; `warn` where it says nothing.
///
/// # Errors
/// One plain line.
pub fn start() -> Result<(), Error> {
    let (sender, receiver) = sync_channel(MAX_LINES);
    std::thread::Builder::new()
        .name("log".to_owned())
        .spawn(move || write_lines(&receiver, &mut io::stderr(), &DROPPED))
        .map_err(|error| Error::no_thread(&error))?;
    let line_end = LineEnd(SENDER.get_or_init(|| sender).clone());
    env_logger::Builder::from_env(env_logger::Env::default().default_filter_or("warn"))
        .target(env_logger::Target::Pipe(Box::new(line_end)))
        .try_init()
        .map_err(|error| format!("cannot start the log: {error}").into())
}

/// Waits until the lines so far are written, for so long at the most.
pub fn flush(patience: Duration) {
    let (word, given) = sync_channel(1);
    if let Some(sender) = SENDER.get()
        && sender.try_send(Message::Flush(word)).is_ok()
    {
        // Where nobody reads standard error, the lines are lost with the program.
        let _ = given.recv_timeout(patience);
    }
}

/// Where `env_logger` writes: one whole line a call.
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

fn write_lines(receiver: &Receiver<Message>, out: &mut impl Write, dropped: &AtomicU64) {
    for message in receiver {
        // A failing standard error leaves nowhere to say so.
        match message {
            Message::Line(line) => drop(out.write_all(&line)),
            Message::Flush(word) => drop(word.try_send(())),
        }
        let lost = dropped.swap(0, Ordering::Relaxed);
        if lost > 0 {
            let _ = writeln!(out, "petstore: {lost} log lines were dropped, as nobody took them in time");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dropped_lines_are_counted() {
        let (sender, receiver) = sync_channel(2);
        let mut end = LineEnd(sender);
        for line in ["a\n", "b\n", "c\n", "d\n"] {
            end.write_all(line.as_bytes()).unwrap();
        }
        drop(end);
        let mut out = Vec::new();
        write_lines(&receiver, &mut out, &DROPPED);
        let text = String::from_utf8(out).unwrap();
        assert_eq!(text, "a\npetstore: 2 log lines were dropped, as nobody took them in time\nb\n");
    }
}
