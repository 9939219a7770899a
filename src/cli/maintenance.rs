//! `petstore backup`, `petstore check` and `petstore restore`.

use std::fs::{self, File};
use std::io::{self, IsTerminal};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::atomic::Ordering;

use petstore::{Backup, Error, ErrorKind, PetCounts, RestoredKeys};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use super::command::{Command, CommandError, CommandResult, Flag, Invocation, usage};
use super::hints::database_of_service;
use super::output::{absolute, count, existing, print, print_to_stderr, report};
use super::signals;

pub const COMMANDS: &[Command] = &[
    Command {
        flags: &[
            Flag::with("to", "FOLDER", "create a dated backup in FOLDER"),
            Flag::with(
                "keep",
                "NUMBER",
                "with --to: then delete the oldest backups beyond NUMBER",
            ),
        ],
        ..Command::new(
            "backup",
            "[FILE]",
            "back up the database to a new file, or to standard output with -, and check it",
            backup,
        )
    },
    Command {
        flags: &[
            Flag::new(
                "strict",
                "also fail if other programs have added tables, indexes or triggers",
            ),
            Flag::new(
                "restored",
                "also restore FILE to a folder in TMPDIR, and start a service on it",
            ),
        ],
        ..Command::new(
            "check",
            "[FILE]",
            "check whether the database or a backup is sound",
            check,
        )
    },
    Command {
        flags: &[Flag::with(
            "keys",
            "WHOSE",
            "whose keys are valid then: current or from-backup [current, if FILE is of this database]",
        )],
        ..Command::new(
            "restore",
            "FILE",
            "replace the database with a backup, and keep the old one",
            restore,
        )
    },
];

fn backup(call: &Invocation) -> CommandResult {
    let number = |text: &str| text.parse::<NonZeroUsize>().ok();
    let keep = call.read("keep", "a number of backups, at least 1", number)?;
    let database = &call.config.database;
    let made = match (call.operands.first(), call.flag("to")) {
        (_, None) if keep.is_some() => return usage("--keep needs --to FOLDER"),
        (None, None) => return usage("backup needs a FILE, or --to FOLDER"),
        (Some(_), Some(_)) => return usage("backup takes a FILE or --to FOLDER, not both"),
        (Some(file), None) if file == "-" => return print_backup(database),
        (Some(file), None) => petstore::backup(database, file.as_ref(), &stop()?)?,
        (None, Some("")) => return Err(CommandError::wrong("--to", "a folder", "")),
        (None, Some(folder)) => petstore::backup_to(database, folder.as_ref(), keep, &stop()?)?,
    };
    report(&about(&made, &made.file));
    Ok(())
}

/// Writes a backup to standard output, as for `ssh` or `gzip`. It is checked in the temporary folder before.
fn print_backup(database: &Path) -> CommandResult {
    let mut out = io::stdout();
    if out.is_terminal() {
        return usage("backup - needs a program or a file as its standard output");
    }
    let name = format!("petstore-backup-{}.db", std::process::id());
    let copy = std::env::temp_dir().join(name);
    let made = petstore::backup(database, &copy, &stop()?)?;
    // Nothing is left, whatever comes of it.
    let file = File::open(&copy);
    let printed = fs::remove_file(&copy)
        .and(file)
        .and_then(|mut file| io::copy(&mut file, &mut out));
    printed.map_err(|error| Error::io("cannot write to standard output", error))?;
    print_to_stderr(&about(&made, "standard output".as_ref()));
    Ok(())
}

fn about(made: &Backup, file: &Path) -> String {
    let file = file.display();
    let pets = count(made.pets, "pet");
    let how = match made.faults.len() {
        0 => "complete and sound",
        _ => "complete, but not sound (petstore check says why)",
    };
    let mut text = format!("{file} is {how}: {pets}, {} bytes\n", made.bytes);
    for file in &made.removed {
        text += &format!("removed {}\n", file.display());
    }
    text
}

fn check(call: &Invocation) -> CommandResult {
    let file = match call.operands.first() {
        Some(file) => file.as_ref(),
        None if call.has("restored") => return usage("check --restored needs a FILE"),
        None => existing(&call.config.database)?,
    };
    let name = file.display();
    let found = petstore::check(file)?;
    let mut text: String = found
        .faults
        .iter()
        .map(|fault| format!("{fault}\n"))
        .collect();
    if found.kind.is_none() {
        let pets = count(found.pets, "pet") + &by_status(&found.counts);
        text += &format!("{name} is sound: {pets}, version {}\n", found.version);
    }
    for foreign in &found.foreign {
        text += &format!("it also has {foreign}\n");
    }
    print(&text)?;
    match found.kind {
        Some(kind) => Err(Error::new(kind, format!("{name} is not sound")).into()),
        None if call.has("strict") && !found.foreign.is_empty() => {
            let line = format!("other programs have added objects to {name}");
            Err(Error::new(ErrorKind::InvalidInput, line).into())
        }
        None if call.has("restored") => drill(file),
        None => Ok(()),
    }
}

fn restore(call: &Invocation) -> CommandResult {
    let file = call.operand(0);
    let database = call.config.database.as_path();
    // A service would not serve what is restored to a wrong folder.
    if !call.is_on("database") && database_of_service().is_some() {
        existing(database)?;
    }
    let keys = match call.flag("keys") {
        None => RestoredKeys::Automatic,
        Some("current") => RestoredKeys::Current,
        Some("from-backup") => RestoredKeys::FromBackup,
        Some(other) => {
            return Err(CommandError::wrong(
                "--keys",
                "current or from-backup",
                other,
            ));
        }
    };
    let restored = petstore::restore(file.as_ref(), database, keys, &stop()?)?;
    let mut text = format!(
        "{} is restored from {file}: {}\n",
        database.display(),
        count(restored.pets, "pet")
    );
    text += &if restored.has_old_keys {
        "the API keys are the same as before\n".to_owned()
    } else {
        let mut keys = petstore::api_keys(database)?;
        keys.retain(|key| !key.is_expired(petstore::unix_time()));
        keys.dedup_by(|next, key| next.name == key.name);
        let names: Vec<String> = keys.into_iter().map(|key| key.name).collect();
        let names = if names.is_empty() {
            "none".to_owned()
        } else {
            names.join(", ")
        };
        format!(
            "valid API keys, as the backup has them: {names}; revoke again those that were revoked since\n"
        )
    };
    for served in restored.served_again {
        text += &format!("served again, as the backup has it: {served}\n");
    }
    text += &match restored.kept {
        Some(kept) => format!("the old database is kept as {}\n", kept.display()),
        None => format!(
            "there was no database at {} before\n",
            absolute(database).display()
        ),
    };
    report(&text);
    Ok(())
}

/// The numbers of pets by status, such as ` (2 available, 1 sold)`.
fn by_status(counts: &PetCounts) -> String {
    let numbers = counts.by_word().into_iter().filter(|(_, pets)| *pets > 0);
    let words: Vec<String> = numbers
        .map(|(word, pets)| format!("{pets} {word}"))
        .collect();
    if words.is_empty() {
        String::new()
    } else {
        format!(" ({})", words.join(", "))
    }
}

fn drill(file: &Path) -> CommandResult {
    let pets = count(petstore::drill(file, &stop()?)?, "pet");
    Ok(print(&format!(
        "{} can be restored: a service runs on it, with {pets}\n",
        file.display()
    ))?)
}

/// Catches signals, and returns a function that returns true after the first of them.
fn stop() -> Result<impl Fn() -> bool, Error> {
    let noted = signals::note(&[SIGHUP, SIGINT, SIGTERM])?;
    Ok(move || noted.load(Ordering::SeqCst))
}
