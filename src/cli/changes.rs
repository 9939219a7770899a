//! `petstore changes`: prints what has happened to pets, and has it recorded.

use std::io::{self, BufWriter, Write};
use std::mem;
use std::ops::ControlFlow;
use std::time::Duration;

use petstore::{ChangeOptions, Error, ErrorKind, Format};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::command::{Command, CommandError, CommandResult, Flag, Invocation};
use super::output::{count, existing, moment, out, print_error, report};
use super::transfer::format;

pub const COMMANDS: &[Command] = &[
    Command {
        flags: &[
            Flag::with(
                "since",
                "TIME",
                "only from this time on, or from a time span such as 30d before now",
            ),
            Flag::with("pet", "ID", "only of this pet"),
            Flag::with("kind", "KIND", "only created, updated or deleted"),
            Flag::with("after", "ID", "only after the change with this id"),
            Flag::new(
                "follow",
                "go on with each change within a second of its commit; without --after or --since, begin with the next",
            ),
            Flag::with(
                "format",
                "FORMAT",
                "the format: ndjson, csv, excel or excel-semicolon [ndjson]",
            ),
        ],
        ..Command::new(
            "changes",
            "",
            "print the recorded changes of pets, in the order of their commits",
            changes,
        )
    },
    Command::new(
        "changes keep",
        "[DURATION|off]",
        "have changes of pets recorded, each for a time such as 90d; or say whether they are",
        keep,
    ),
];

/// The seconds of a day.
const SINCE: &str = "a time such as 2027-01-31 or 2027-01-31T18:00:00Z, or a time span such as 30d";
/// The time between two looks at the database.
const EVERY: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 400_000_000,
};

fn keep(call: &Invocation) -> CommandResult {
    let (word, database) = (call.operand(0), existing(&call.config.database)?);
    if word.is_empty() {
        let kept = petstore::changes_kept(database)?;
        let kept = kept.map(|kept| format!("changes are kept for {}\n", words(kept)));
        report(&kept.unwrap_or_else(|| "changes are not recorded\n".to_owned()));
        return Ok(());
    }
    let wrong = || {
        CommandError::wrong(
            "DURATION",
            "a time of at least a second such as 90d, or off",
            word,
        )
    };
    let keep = match word {
        "off" => None,
        _ => {
            let keep = humantime::parse_duration(word).ok();
            Some(keep.filter(|keep| keep.as_secs() > 0).ok_or_else(wrong)?)
        }
    };
    let removed = petstore::keep_changes(database, keep)?;
    let older = match removed {
        0 => String::new(),
        removed => format!("; removed {}", count(removed as u64, "older change")),
    };
    report(&match keep {
        Some(keep) => format!(
            "each change of a pet is recorded now, and kept for {}, unless another program makes it{older}\n",
            words(keep)
        ),
        None => "changes are no longer recorded; those that were stay\n".to_owned(),
    });
    Ok(())
}

/// A duration in the largest unit of which it is a multiple: `3m` is 3 minutes, not months.
fn words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    let units = [
        (24 * 3600, "day"),
        (3600, "hour"),
        (60, "minute"),
        (1, "second"),
    ];
    let unit = units
        .iter()
        .find(|(length, _)| seconds.is_multiple_of(*length));
    unit.map_or_else(String::new, |(length, name)| count(seconds / length, name))
}

fn changes(call: &Invocation) -> CommandResult {
    let mut options = ChangeOptions {
        after: call.read("after", "the id of a change", |text| text.parse().ok())?,
        since: call.read("since", SINCE, since)?,
        pet: call.read("pet", "the id of a pet", |text| text.parse().ok())?,
        kind: call.read("kind", "created, updated or deleted", |text| {
            text.parse().ok()
        })?,
    };
    let (database, format) = (existing(&call.config.database)?, format(call)?);
    let is_followed = call.has("follow");
    if is_followed && options.after.is_none() && options.since.is_none() {
        options.after = Some(petstore::newest_change(database)?);
    }
    let mut out = BufWriter::new(out(format != Format::Ndjson));
    let mut printed = petstore::change_head(format, &mut out);
    let mut is_away = false;
    loop {
        let mut last = options.after;
        let read = petstore::changes(database, &options, |change| {
            last = Some(change.id);
            printed = petstore::print_change(change, format, &mut out);
            match printed {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            }
        });
        let printed = mem::replace(&mut printed, Ok(())).and_then(|()| out.flush());
        match printed {
            // A reader such as `head` has read enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => return Ok(()),
            printed => printed.map_err(|error| Error::io("cannot print the changes", error))?,
        }
        match read {
            Ok(newest) => {
                options.after = Some(newest);
                is_away = false;
            }
            Err(error) if is_followed && comes_back(error.kind()) => {
                options.after = last;
                if !mem::replace(&mut is_away, true) {
                    print_error(&format!("{error}; trying again"));
                }
            }
            Err(error) => return Err(error.into()),
        }
        if !is_followed || is_closed() {
            return Ok(());
        }
    }
}

/// Returns whether a database that was there may come back: during a restart, a restore or a move.
fn comes_back(kind: ErrorKind) -> bool {
    !matches!(kind, ErrorKind::ChangesGone | ErrorKind::ChangesNotKept)
}

/// Waits until the next look at the database. Returns whether the reader of standard output has ended meanwhile.
fn is_closed() -> bool {
    let stdout = io::stdout();
    let mut files = [PollFd::new(&stdout, PollFlags::empty())];
    let waited = poll(&mut files, Some(&EVERY));
    waited.is_ok() && files[0].revents().contains(PollFlags::ERR)
}

/// Reads a day, a time, or a time span before now.
fn since(text: &str) -> Option<i64> {
    if let Ok(span) = humantime::parse_duration(text) {
        let span = i64::try_from(span.as_millis()).ok()?;
        return Some(petstore::unix_millis() - span);
    }
    moment(text)
}
