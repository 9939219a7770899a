//! `petstore export` and `petstore import`: pets as NDJSON or CSV.

use std::io::stdin;
use std::sync::atomic::Ordering;

use petstore::{ErrorKind, Expected, Format, Import, ImportIds, ImportOptions, Imported, Source};
use signal_hook::consts::SIGTSTP;
use signal_hook::low_level::emulate_default_handler;

use super::command::{CREATE, Command, CommandError, CommandResult, Flag, Invocation, usage};
use super::hints::database_flag;
use super::output::{is_control, out, print_to_stderr};
use super::signals;

/// The most rejected lines, or changed pets, that are printed.
const MOST_REJECTED: usize = 20;

pub const COMMANDS: &[Command] = &[
    Command {
        flags: &[Flag::with(
            "format",
            "FORMAT",
            "the format: ndjson, csv, or for a spreadsheet excel or excel-semicolon [ndjson]",
        )],
        ..Command::new("export", "", "print all pets as of one moment", export)
    },
    Command {
        flags: &[
            Flag::with(
                "format",
                "FORMAT",
                "the format, ndjson or csv [as the name of the file ends]",
            ),
            Flag::new(
                "keep-ids",
                "keep the ids of the pets; the database must never have had a pet",
            ),
            Flag::new(
                "new-ids",
                "add the pets with new ids, whatever ids the input has",
            ),
            Flag::new(
                "update",
                "change the pets with the ids of the input, instead of adding pets",
            ),
            Flag::new(
                "skip-invalid",
                "leave out invalid pets and import the others",
            ),
            Flag::new(
                "again",
                "add what an earlier import of the same input has added once more",
            ),
            Flag::with(
                "ignore-columns",
                "NAMES",
                "leave out these columns of CSV, separated by commas",
            ),
            Flag::new("dry-run", "only check the pets; needs no database"),
            CREATE,
        ],
        ..Command::new(
            "import",
            "[FILE]",
            "add pets from a file, or standard input: all or none",
            import,
        )
    },
];

fn export(call: &Invocation) -> CommandResult {
    let format = format(call)?;
    match petstore::export(
        &call.config.database,
        format,
        &mut *out(format != Format::Ndjson),
    ) {
        // A reader such as `head` has read enough.
        Err(error) if error.kind() == ErrorKind::OutputClosed => Ok(()),
        done => Ok(done?),
    }
}

/// What the flags of an import ask for.
fn options(call: &Invocation) -> Result<ImportOptions, CommandError> {
    let ids = match ["keep-ids", "new-ids", "update"].map(|flag| call.has(flag)) {
        [false, false, false] => ImportIds::default(),
        [true, false, false] => ImportIds::Keep,
        [false, true, false] => ImportIds::New,
        [false, false, true] => ImportIds::Update,
        _ => return usage("only one of --keep-ids, --new-ids and --update can be given"),
    };
    let options = ImportOptions {
        format: format(call)?,
        again: call.has("again"),
        dry_run: call.has("dry-run"),
        skip_invalid: call.has("skip-invalid"),
        ignore_columns: call.flag("ignore-columns").map_or_else(Vec::new, |names| {
            names.split(',').map(str::to_owned).collect()
        }),
        ids,
    };
    if options.format == Format::Ndjson && !options.ignore_columns.is_empty() {
        return usage("--ignore-columns is for CSV: NDJSON has no columns");
    }
    if options.ids == ImportIds::Update && call.has("create") {
        return usage(
            "--update changes pets of a database that exists, so it cannot be given with --create",
        );
    }
    Ok(options)
}

fn import(call: &Invocation) -> CommandResult {
    let options = options(call)?;
    let source = match call.operand(0) {
        "" | "-" => Source::Stream(Box::new(stdin())),
        path => Source::File(path.into()),
    };
    let (dry_run, ids) = (options.dry_run, options.ids);
    let database = if dry_run {
        &*call.config.database
    } else {
        call.writable()?
    };
    let mut rejected = 0_usize;
    let checked = Import::check(database, source, options, |number, why| {
        rejected += 1;
        if rejected <= MOST_REJECTED {
            print_to_stderr(&format!(
                "Line {number}: {}\n",
                why.replace(is_control, "\u{fffd}")
            ));
        }
    });
    if rejected > MOST_REJECTED {
        print_to_stderr(&format!(
            "and {} more like these\n",
            rejected - MOST_REJECTED
        ));
    }
    let import = checked?;
    let left_out = if rejected > 0 {
        if !dry_run {
            print_to_stderr("These lines are left out. Correct them, and import them alone.\n");
        }
        format!(", left out {rejected}")
    } else {
        String::new()
    };
    let new = if ids == ImportIds::NewUnlessTaken && import.has_ids() {
        ", with new ids in place of those of the input"
    } else {
        ""
    };
    let database = call.config.database.as_path();
    if dry_run {
        let would = outcome(
            import.preview(),
            ids,
            ["would import", "would change"],
            &left_out,
        );
        let compared = if petstore::database_exists(database) {
            String::new()
        } else {
            format!(
                "; compared with no database, as there is no {}",
                database.display()
            )
        };
        print_to_stderr(&format!("{would}{new}{compared}\n"));
        return Ok(());
    }
    // A stopped process would keep the lock of the database, and creates of the service would wait for it.
    let stopped = signals::note(&signals::heeded(&[SIGTSTP]))?;
    let written = import.write()?;
    let mut said = outcome(&written, ids, ["imported", "changed"], &left_out);
    if let Some((least, greatest)) = written.ids {
        let range = if least == greatest {
            least.to_string()
        } else {
            format!("{least}..{greatest}")
        };
        let database = database_flag(call);
        said += &format!(
            "{new}; its ids are from {least} to {greatest}\nto undo it: petstore pet delete {range}{database}"
        );
    }
    print_to_stderr(&format!("{said}\n"));
    if stopped.load(Ordering::Relaxed) {
        let _ = emulate_default_handler(SIGTSTP);
    }
    Ok(())
}

/// What an import has done or would do, in words: the second of the two if it changes pets.
fn outcome(
    done: &Imported,
    ids: ImportIds,
    [imported, changes]: [&str; 2],
    left_out: &str,
) -> String {
    let Imported {
        added,
        changed,
        same,
        ..
    } = done;
    if ids != ImportIds::Update {
        return format!("{imported} {added}{left_out}");
    }
    let shown: Vec<String> = changed
        .iter()
        .take(MOST_REJECTED)
        .map(ToString::to_string)
        .collect();
    let named = match changed.len() {
        0 => String::new(),
        count if count > shown.len() => format!(": {}, …", shown.join(", ")),
        _ => format!(": {}", shown.join(", ")),
    };
    format!(
        "{same} the same{left_out}, {} {changes}{named}",
        changed.len()
    )
}

pub fn format(call: &Invocation) -> Result<Format, CommandError> {
    // An export has no operand, and its default is NDJSON.
    let named = if call.operand(0).to_ascii_lowercase().ends_with(".csv") {
        "csv"
    } else {
        "ndjson"
    };
    let word = call.flag("format").unwrap_or(named);
    word.parse()
        .map_err(|expected: Expected| CommandError::wrong("--format", expected, word))
}
