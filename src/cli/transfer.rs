//! `petstore export` and `petstore import`.

use std::fs::File;
use std::io::{IsTerminal, Write, stderr, stdin, stdout};
use std::os::fd::{AsFd, OwnedFd};

use petstore::{Format, Import, ImportOptions, LinesWritten, Source};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::command::{Call, Command, Count, DATABASE, Done, Failure, Flag, Operand};
use super::progress::cells;
use super::{print, say_new, signals};

/// As many refused lines are printed; of more, how many there are.
const MAX_REFUSED: u64 = 20;

const FORMAT: Flag = Flag { name: "format", value: Some("FORMAT"), about: "ndjson or csv [ndjson]" };

pub const COMMANDS: &[Command] = &[
    Command {
        name: "export",
        operands: &[],
        flags: &[FORMAT],
        settings: DATABASE,
        about: "print all animals, as they are at one moment",
        run: export,
    },
    Command {
        name: "import",
        operands: &[Operand { name: "FILE", count: Count::Optional }],
        flags: &[
            FORMAT,
            Flag { name: "keep-ids", value: None, about: "into a database that never had an animal" },
            Flag { name: "skip-invalid", value: None, about: "write the others where some are refused" },
            Flag { name: "from-line", value: Some("NUMBER"), about: "go on with an interrupted import [1]" },
        ],
        settings: DATABASE,
        about: "add the animals of a file or of standard input; all are checked first",
        run: import,
    },
];

fn export(call: &Call) -> Done {
    let format = format(call)?;
    signals::survive_file_limit()?;
    Ok(petstore::export(&call.config.database, format, &mut stdout().lock())?)
}

fn import(call: &Call) -> Done {
    let mut options = ImportOptions::default();
    options.format = format(call)?;
    options.keep_ids = call.has("keep-ids");
    options.skip_invalid = call.has("skip-invalid");
    if let Some(line) = call.flag("from-line") {
        options.from_line = line.parse().ok().filter(|line| *line > 0).ok_or_else(|| {
            Failure::Usage(format!("--from-line must be the number of a line, from 1 on, not '{line}'"))
        })?;
    }
    signals::survive_file_limit()?;
    let source = match call.operand(0) {
        "" | "-" => Source::Stream(Box::new(File::from(standard_input()?))),
        path => Source::File(path.into()),
    };
    let mut refused = 0;
    let checked = Import::check(&call.config.database, source, options, |line, why| {
        refused += 1;
        if refused <= MAX_REFUSED {
            // What stands in the file is not the terminal's to obey.
            let why = why.replace(char::is_control, "\u{fffd}");
            say(&format!("Line {line}: {why}\n"));
        }
    });
    if refused > MAX_REFUSED {
        say(&format!("and {} more\n", refused - MAX_REFUSED));
    }
    let import = checked?;
    let valid = import.valid();
    // Until here nothing is written, so that a signal may end it at once.
    let stop = signals::note(&[SIGINT, SIGTERM])?;
    let (is_terminal, is_new) = (stderr().is_terminal(), !call.config.database.exists());
    let written = import.write(&stop, |progress| {
        say(&if is_terminal { bar(progress) } else { line(progress) });
    });
    if is_terminal {
        // The bar makes room for what comes.
        say("\r\x1b[K");
    }
    if is_new && call.config.database.exists() {
        say_new(&call.config.database);
    }
    written?;
    let skipped = if refused > 0 { format!(", left out {refused}") } else { String::new() };
    Ok(print(&format!("imported {valid}{skipped}\n"))?)
}

/// Without the buffer of the standard library, as it is read in large pieces.
fn standard_input() -> Result<OwnedFd, String> {
    stdin().as_fd().try_clone_to_owned().map_err(|error| format!("cannot read standard input: {error}"))
}

fn format(call: &Call) -> Result<Format, Failure> {
    let word = call.flag("format").unwrap_or("ndjson");
    word.parse().map_err(|expected| Failure::Usage(format!("--format must be {expected}, not '{word}'")))
}

/// Where nobody reads it any more, the work goes on.
fn say(text: &str) {
    let _ = stderr().write_all(text.as_bytes());
}

fn line(progress: LinesWritten) -> String {
    format!("written up to line {} of {}\n", progress.line, progress.lines)
}

/// The same line of a terminal again and again.
fn bar(progress: LinesWritten) -> String {
    let LinesWritten { line, lines, .. } = progress;
    format!("\r{} written up to line {line} of {lines}\x1b[K", cells(line, lines))
}
