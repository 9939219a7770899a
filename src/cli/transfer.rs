//! `petstore export` and `petstore import`: pets as NDJSON or CSV.

use std::io::{Write, stderr, stdin};

use petstore::{ErrorKind, Expected, Format, Import, ImportOptions, LinesWritten, Source};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::command::{CREATE, Command, CommandError, CommandResult, Flag, Invocation, usage};
use super::output::{is_control, out};
use super::signals;

/// The most rejected lines that are printed.
const MOST_REJECTED: usize = 20;

pub const COMMANDS: &[Command] = &[
    Command {
        flags: &[Flag::with("format", "FORMAT", "the format, ndjson or csv [ndjson]")],
        ..Command::new("export", "", "print all pets as of one moment", export)
    },
    Command {
        flags: &[
            Flag::with("format", "FORMAT", "the format, ndjson or csv [as the name of the file ends]"),
            Flag::new("keep-ids", "keep the ids of the pets; the database must never have had a pet"),
            Flag::new("skip-invalid", "leave out invalid pets and import the others"),
            Flag::new("resume", "continue an import of the same input that was interrupted or killed"),
            Flag::with("from-line", "NUMBER", "begin at this line [1]"),
            Flag::new("again", "add what an earlier import of the same input has added once more"),
            Flag::new("dry-run", "only check the pets, and add none"),
            CREATE,
        ],
        ..Command::new("import", "[FILE]", "add pets from a file, or standard input; check all first", import)
    },
];

fn export(call: &Invocation) -> CommandResult {
    let format = format(call)?;
    match petstore::export(&call.config.database, format, &mut *out(format == Format::Csv)) {
        // A reader such as `head` has read enough.
        Err(error) if error.kind() == ErrorKind::OutputClosed => Ok(()),
        done => Ok(done?),
    }
}

fn import(call: &Invocation) -> CommandResult {
    let mut options = ImportOptions::default();
    options.format = format(call)?;
    options.again = call.has("again");
    options.dry_run = call.has("dry-run");
    options.keep_ids = call.has("keep-ids");
    options.skip_invalid = call.has("skip-invalid");
    options.resume = call.has("resume");
    if options.resume && (options.again || call.has("from-line")) {
        return usage("--resume cannot be combined with --from-line or --again");
    }
    let line = |text: &str| text.parse().ok().filter(|line| *line > 0);
    options.from_line = call.read("from-line", "a line number, 1 or more", line)?;
    let source = match call.operand(0) {
        "" | "-" => Source::Stream(Box::new(stdin())),
        path => Source::File(path.into()),
    };
    let dry_run = options.dry_run;
    let mut rejected = 0_usize;
    let checked = Import::check(call.writable()?, source, options, |number, why| {
        rejected += 1;
        if rejected <= MOST_REJECTED {
            print_to_stderr(&format!("Line {number}: {}\n", why.replace(is_control, "\u{fffd}")));
        }
    });
    if rejected > MOST_REJECTED {
        print_to_stderr(&format!("and {} more like these\n", rejected - MOST_REJECTED));
    }
    let import = checked?;
    let valid = import.valid();
    let left_out = if rejected > 0 { format!(", left out {rejected}") } else { String::new() };
    if dry_run {
        print_to_stderr(&format!("would import {valid}{left_out}\n"));
        return Ok(());
    }
    // Until here, nothing has been written, and a signal may end the process immediately.
    let stop = signals::note(&[SIGINT, SIGTERM])?;
    let mut has_begun = false;
    let written = import.write(&stop, |LinesWritten { line, lines, .. }| {
        has_begun = true;
        print_to_stderr(&format!("written up to line {line} of {lines}\n"));
    });
    let ids = written
        .map_err(|error| if has_begun { error.followed_by("continue with --resume") } else { error })?;
    let ids = ids.map(|(least, greatest)| format!("; its ids are from {least} to {greatest}"));
    print_to_stderr(&format!("imported {valid}{left_out}{}\n", ids.unwrap_or_default()));
    Ok(())
}

fn format(call: &Invocation) -> Result<Format, CommandError> {
    // An export has no operand, and its default is NDJSON.
    let named = if call.operand(0).to_ascii_lowercase().ends_with(".csv") { "csv" } else { "ndjson" };
    let word = call.flag("format").unwrap_or(named);
    word.parse().map_err(|expected: Expected| CommandError::wrong("--format", expected, word))
}

/// Prints to standard error. A failure to print is ignored: the exit code depends on the pets alone, so that a program
/// that retries after a failure does not add pets twice.
fn print_to_stderr(text: &str) {
    let _ = stderr().write_all(text.as_bytes());
}
