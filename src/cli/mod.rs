//! The command line: parses it, runs a command, and returns an exit code.
//!
//! `args` parses the words and the environment, the file of a command calls the library, and `hints` adds advice to a
//! failure.
//!
//! It does not use clap, whose cost `src/DESIGN.md` has. It would also be a second source of each flag, its environment
//! variable and its help text, besides the library's table of settings, which the guide needs. `args`, `command`, `help`
//! and `manual` use that table, and lexopt, which has no dependencies, splits the words.

mod args;
mod changes;
mod child;
mod command;
mod first_key;
mod healthcheck;
mod help;
mod hints;
mod json_line;
mod keys;
mod logging;
mod maintenance;
mod manual;
mod output;
mod pets;
#[cfg(feature = "site")]
mod project;
mod serve;
mod signals;
mod supervisor;
mod transfer;
mod unknown_variables;

use std::process::ExitCode;

use args::Action;
use command::{Command, CommandError, Invocation};
use output::{print, print_error};
use petstore::ErrorKind;
use signal_hook::consts::{SIGCHLD, SIGXFSZ};

/// Every command, in the order of the help text. The first is the default command.
const COMMANDS: &[&[Command]] = &[
    serve::COMMANDS,
    healthcheck::COMMANDS,
    keys::COMMANDS,
    maintenance::COMMANDS,
    pets::COMMANDS,
    transfer::COMMANDS,
    changes::COMMANDS,
    #[cfg(feature = "site")]
    project::SITE,
    #[cfg(feature = "site")]
    project::DOMAINS,
    manual::COMMANDS,
];

/// Every command.
fn all() -> impl Iterator<Item = &'static Command> + Clone {
    COMMANDS.iter().copied().flatten()
}

/// Reads the command line and the environment, runs the command, and reports a failure on standard error.
///
/// The exit code is 0 after success, 1 after a failure, and 2 for a wrong command line.
pub fn run() -> ExitCode {
    let action = args::parse(lexopt::Parser::from_env(), |variable| {
        std::env::var_os(variable)
    });
    let show = |text: &str| print(text).map_err(|error| (1, Some(error.to_string())));
    let done = match action {
        Ok(Action::Help(words)) => show(&help::text(&words)),
        Ok(Action::Version) => show(VERSION),
        Ok(Action::Run(command, call)) => {
            if call.command != "serve" {
                logging::warn_plainly();
                unknown_variables::warn_unknown();
            }
            // A write beyond the file size limit (ulimit -f) fails instead of killing the process. While SIGCHLD is ignored,
            // which a parent may pass on, no process learns how another one ends.
            let caught = signals::end_as_first().and_then(|()| signals::note(&[SIGXFSZ, SIGCHLD]));
            let done = caught
                .map_err(CommandError::from)
                .and_then(|_| (command.run)(&call));
            done.map_err(|failure| describe(failure, &call))
        }
        Err(misuse) => Err(usage(&misuse.line, &misuse.words)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err((code, line)) => {
            if let Some(line) = line {
                print_error(&line);
            }
            ExitCode::from(code)
        }
    }
}

const VERSION: &str = concat!("petstore ", env!("CARGO_PKG_VERSION"), "\n");

/// Returns the exit code of a failure, and the line that describes it; `None` if the failed command has printed it.
fn describe(failure: CommandError, call: &Invocation) -> (u8, Option<String>) {
    match failure {
        CommandError::Usage(line) => usage(&line, &[call.command.to_owned()]),
        CommandError::Child(code) => (code, None),
        CommandError::Failed(error) if error.kind() == ErrorKind::Config("api_key") => {
            let is_file = std::env::var_os("PETSTORE_API_KEY").is_none_or(|key| key.is_empty());
            let name = if is_file {
                "PETSTORE_API_KEY_FILE"
            } else {
                "PETSTORE_API_KEY"
            };
            usage(&error.context(name).to_string(), &[])
        }
        CommandError::Failed(error) => (1, Some(hints::line(&error, call))),
    }
}

/// The exit code and the line for a fault of the command line, with the command that prints the help for these words.
fn usage(line: &str, words: &[String]) -> (u8, Option<String>) {
    let typed = words.join(" ");
    let part = all()
        .map(|command| command.name)
        .find(|name| format!("{typed} ").starts_with(&format!("{name} ")));
    let part = part.map(|name| format!(" {name}")).unwrap_or_default();
    (2, Some(format!("{line} (see petstore{part} --help)")))
}
