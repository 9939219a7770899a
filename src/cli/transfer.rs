//! `petstore export` and `petstore import`: pets as NDJSON or CSV.

use std::io::{Write, stderr, stdin, stdout};

use petstore::{ErrorKind, Format, Import, ImportOptions, LinesWritten, Source};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::command::{Call, Command, Done, Failure, Flag};
use super::output::{print, say_new};
use super::signals;

/// The most refused lines that are printed one by one; the rest is counted.
const MAX_REFUSED: u64 = 20;

const FORMAT: Flag = Flag::with("format", "FORMAT", "the format, ndjson or csv [ndjson]");

pub const COMMANDS: &[Command] = &[
    Command { flags: &[FORMAT], ..Command::new("export", "", "print all pets as of one moment", export) },
    Command {
        flags: &[
            FORMAT,
            Flag::new("keep-ids", "keep the ids of the pets; the database must never have had a pet"),
            Flag::new("skip-invalid", "leave out invalid pets and import the others"),
            Flag::with("from-line", "NUMBER", "continue an interrupted import at this line [1]"),
        ],
        ..Command::new(
            "import",
            "[FILE]",
            "add pets from a file or standard input; all are checked first",
            import,
        )
    },
];

fn export(call: &Call) -> Done {
    let format = format(call)?;
    match petstore::export(&call.config.database, format, &mut stdout().lock()) {
        // A reader such as `head` has read enough.
        Err(error) if error.kind() == ErrorKind::OutputClosed => Ok(()),
        done => Ok(done?),
    }
}

fn import(call: &Call) -> Done {
    let mut options = ImportOptions::default();
    options.format = format(call)?;
    options.keep_ids = call.has("keep-ids");
    options.skip_invalid = call.has("skip-invalid");
    if let Some(line) = call.flag("from-line") {
        let wrong = || Failure::wrong("--from-line", "a line number, 1 or more", line);
        options.from_line = line.parse().ok().filter(|line| *line > 0).ok_or_else(wrong)?;
    }
    let from_line = options.from_line;
    let source = match call.operand(0) {
        "" | "-" => Source::Stream(Box::new(stdin())),
        path => Source::File(path.into()),
    };
    let mut refused = 0;
    let checked = Import::check(&call.config.database, source, options, |number, why| {
        refused += 1;
        if refused <= MAX_REFUSED {
            // The terminal must not obey what the file says.
            let why = why.replace(char::is_control, "\u{fffd}");
            say(&format!("Line {number}: {why}\n"));
        }
    });
    if refused > MAX_REFUSED {
        say(&format!("and {} more\n", refused - MAX_REFUSED));
    }
    let import = checked?;
    let valid = import.valid();
    // Nothing has been written yet, so until here a signal could end the process at once.
    let stop = signals::note(&[SIGINT, SIGTERM])?;
    let is_new = !petstore::database_exists(&call.config.database);
    let mut next_line = Some(from_line).filter(|line| *line > 1);
    let written = import.write(&stop, |progress| {
        next_line = Some(progress.line + 1);
        let LinesWritten { line, lines, .. } = progress;
        say(&format!("written up to line {line} of {lines}\n"));
    });
    if is_new && call.config.database.exists() {
        say_new(&call.config.database);
    }
    written.map_err(|error| match next_line {
        Some(next_line) => error.followed_by(format!("continue with --from-line {next_line}")),
        None => error,
    })?;
    let skipped = if refused > 0 { format!(", left out {refused}") } else { String::new() };
    Ok(print(&format!("imported {valid}{skipped}\n"))?)
}

fn format(call: &Call) -> Result<Format, Failure> {
    let word = call.flag("format").unwrap_or("ndjson");
    word.parse().map_err(|expected: String| Failure::wrong("--format", expected, word))
}

/// Prints to standard error. If nobody reads it, the import goes on.
fn say(text: &str) {
    let _ = stderr().write_all(text.as_bytes());
}
