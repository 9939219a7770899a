//! The rows of the table of commands. Each file of `cli/` has the rows of its commands. The parser, the help text, the
//! manual page and the shell completions use them.

use std::ffi::OsString;
use std::fmt;
use std::path::Path;

use petstore::{Config, Error, SETTINGS, Setting};

use super::output::existing;

/// One command of the program.
pub struct Command {
    /// Its words, such as `key add`.
    pub name: &'static str,
    /// The operands, as the help text shows them, such as `NAME`. The last one may be optional, such as `[FILE]`, or given
    /// once or more, such as `ID...`, as may the one before the last. Those of `serve` are a command after `--`.
    pub operands: &'static str,
    pub flags: &'static [Flag],
    pub takes: Takes,
    /// Its purpose, in one line.
    pub about: &'static str,
    pub run: fn(&Invocation) -> CommandResult,
}

impl Command {
    /// A command that works on a database and has no flags of its own.
    pub const fn new(
        name: &'static str,
        operands: &'static str,
        about: &'static str,
        run: fn(&Invocation) -> CommandResult,
    ) -> Self {
        Self {
            name,
            operands,
            flags: &[],
            takes: Takes::Only(&["database"]),
            about,
            run,
        }
    }

    /// The settings of the command.
    pub fn settings(&self) -> impl Iterator<Item = &'static Setting> {
        let takes = self.takes;
        SETTINGS.iter().filter(move |setting| match takes {
            Takes::All => true,
            Takes::Only(flags) => flags.contains(&setting.flag),
        })
    }

    /// The name and the operands, such as `key add NAME`.
    pub fn usage(&self) -> String {
        [self.name, self.operands].join(" ").trim_end().to_owned()
    }
}

/// The settings that a command takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Takes {
    /// All settings, and the variables that have no flag.
    All,
    /// The settings with these flags.
    Only(&'static [&'static str]),
}

/// A flag of one command. It may have the name of a setting that the command does not take.
pub struct Flag {
    pub name: &'static str,
    /// The placeholder for the value in the help text; `None` for a flag without a value.
    pub value: Option<&'static str>,
    pub about: &'static str,
}

impl Flag {
    /// A flag without a value.
    pub const fn new(name: &'static str, about: &'static str) -> Self {
        Self {
            name,
            value: None,
            about,
        }
    }

    /// A flag with a value.
    pub const fn with(name: &'static str, value: &'static str, about: &'static str) -> Self {
        Self {
            name,
            value: Some(value),
            about,
        }
    }

    /// The flag and its value, such as `--expires DATE`.
    pub fn usage(&self) -> String {
        format!("--{} {}", self.name, self.value.unwrap_or_default())
            .trim_end()
            .to_owned()
    }
}

/// The flag that lets a command create the database that it writes to.
pub const CREATE: Flag = Flag::new("create", "create the database if it does not exist");

/// The result of a command.
pub type CommandResult = Result<(), CommandError>;

/// The failure of a command.
#[derive(Debug)]
pub enum CommandError {
    /// The command line is wrong: exit code 2.
    Usage(String),
    /// The work failed: exit code 1.
    Failed(Error),
    /// The command that `serve` ran ended with this exit code, which is not 0.
    Child(u8),
}

impl CommandError {
    /// The error for a wrong value.
    pub fn wrong(name: &str, expected: impl fmt::Display, value: &str) -> Self {
        Self::Usage(format!("{name} must be {expected}, not '{value}'"))
    }
}

/// A fault of the command line.
pub fn usage<T>(line: impl Into<String>) -> Result<T, CommandError> {
    Err(CommandError::Usage(line.into()))
}

impl From<Error> for CommandError {
    fn from(error: Error) -> Self {
        Self::Failed(error)
    }
}

/// A parsed command line, with only the flags and operands that the command's row has.
#[derive(Debug)]
pub struct Invocation {
    /// The words of the command.
    pub command: &'static str,
    pub config: Config,
    /// The given settings as text, including those that have no field in the library, but not switches that are off.
    pub settings: Vec<(&'static str, String)>,
    pub operands: Vec<String>,
    /// The command after `--`, for `serve`.
    pub child: Vec<OsString>,
    /// The given flags, including those of settings.
    pub flags: Vec<(&'static str, String)>,
}

impl Invocation {
    /// Returns the operand at an index; empty if it was not given.
    pub fn operand(&self, place: usize) -> &str {
        self.operands.get(place).map_or("", String::as_str)
    }

    /// Returns the value of a flag; the last one if it was given more than once.
    pub fn flag(&self, name: &str) -> Option<&str> {
        self.flags
            .iter()
            .rfind(|(flag, _)| *flag == name)
            .map(|(_, value)| value.as_str())
    }

    /// The value of a flag as `parse` returns it.
    ///
    /// # Errors
    /// A fault of the command line, which names the `expected` value, if `parse` returns `None`.
    pub fn read<T>(
        &self,
        name: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, CommandError> {
        let Some(text) = self.flag(name) else {
            return Ok(None);
        };
        let wrong = || CommandError::wrong(&format!("--{name}"), expected, text);
        parse(text).map(Some).ok_or_else(wrong)
    }

    /// Returns whether a flag is given.
    pub fn has(&self, name: &str) -> bool {
        self.flag(name).is_some()
    }

    /// Returns the value of a setting, from its flag or its variable.
    pub fn setting(&self, name: &str) -> Option<&str> {
        let given = self.settings.iter().find(|(flag, _)| *flag == name);
        given.map(|(_, text)| text.as_str())
    }

    /// Returns whether a switch is on, by its flag or its variable.
    pub fn is_on(&self, name: &str) -> bool {
        self.setting(name).is_some()
    }

    /// Returns the path of the database, which must exist unless `--create` is given.
    pub fn writable(&self) -> Result<&Path, Error> {
        let database = &self.config.database;
        if self.has("create") {
            Ok(database)
        } else {
            existing(database)
        }
    }
}
