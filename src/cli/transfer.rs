//! `petstore export` and `petstore import`: pets as NDJSON or CSV.

use std::io::{Write, stderr, stdin};

use petstore::{ErrorKind, Format, Import, ImportOptions, LinesWritten, Source};
use signal_hook::consts::{SIGINT, SIGTERM};

use super::command::{Call, Command, Done, Failure, Flag};
use super::output::{is_obeyed, out, say_new};
use super::signals;

const FORMAT: Flag = Flag::with("format", "FORMAT", "the format, ndjson or csv [ndjson]");

pub const COMMANDS: &[Command] = &[
    Command { flags: &[FORMAT], ..Command::new("export", "", "print all pets as of one moment", export) },
    Command {
        flags: &[
            FORMAT,
            Flag::new("keep-ids", "keep the ids of the pets; the database must never have had a pet"),
            Flag::new("skip-invalid", "leave out invalid pets and import the others"),
            Flag::new("resume", "continue an import of the same input that was interrupted or killed"),
            Flag::with("from-line", "NUMBER", "begin at this line, whatever was written earlier [1]"),
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
    match petstore::export(&call.config.database, format, &mut *out(format == Format::Csv)) {
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
    options.resume = call.has("resume");
    if let Some(line) = call.flag("from-line") {
        if options.resume {
            return Err(Failure::Usage("--resume and --from-line cannot be combined".to_owned()));
        }
        let wrong = || Failure::wrong("--from-line", "a line number, 1 or more", line);
        options.from_line = Some(line.parse().ok().filter(|line| *line > 0).ok_or_else(wrong)?);
    }
    let source = match call.operand(0) {
        "" | "-" => Source::Stream(Box::new(stdin())),
        path => Source::File(path.into()),
    };
    let mut refused = 0;
    let import = Import::check(&call.config.database, source, options, |number, why| {
        refused += 1;
        let why = why.replace(is_obeyed, "\u{fffd}");
        say(&format!("Line {number}: {why}\n"));
    })?;
    let valid = import.valid();
    // Nothing has been written yet, so until here a signal could end the process at once.
    let stop = signals::note(&[SIGINT, SIGTERM])?;
    let (is_new, mut has_begun) = (!petstore::database_exists(&call.config.database), false);
    let written = import.write(&stop, |LinesWritten { line, lines, .. }| {
        if is_new && !has_begun {
            say_new(&call.config.database);
        }
        has_begun = true;
        say(&format!("written up to line {line} of {lines}\n"));
    });
    written.map_err(|error| if has_begun { error.followed_by("continue with --resume") } else { error })?;
    let skipped = if refused > 0 { format!(", left out {refused}") } else { String::new() };
    say(&format!("imported {valid}{skipped}\n"));
    Ok(())
}

fn format(call: &Call) -> Result<Format, Failure> {
    let word = call.flag("format").unwrap_or("ndjson");
    word.parse().map_err(|expected: String| Failure::wrong("--format", expected, word))
}

/// Prints to standard error. If nobody reads it, the import goes on: the exit code tells of the pets alone, so that a
/// program that repeats what failed adds none twice.
fn say(text: &str) {
    let _ = stderr().write_all(text.as_bytes());
}
